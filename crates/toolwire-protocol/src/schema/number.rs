//! Exact comparison and divisibility of JSON numbers.
//!
//! A float stands for the decimal a person wrote, so 19.99 is a multiple of 0.01 although no binary
//! fraction is.

use std::cmp::Ordering;

use serde_json::Number;

#[derive(Debug, Clone, Copy)]
enum Exact {
    Integer(i128),
    Float(f64),
}

/// A decimal number without its sign: `digits * 10^exponent`.
#[derive(Debug, Clone, Copy)]
struct Decimal {
    digits: u128,
    exponent: i64,
}

fn exact(number: &Number) -> Exact {
    if let Some(unsigned) = number.as_u64() {
        Exact::Integer(unsigned.into())
    } else if let Some(signed) = number.as_i64() {
        Exact::Integer(signed.into())
    } else {
        Exact::Float(number.as_f64().unwrap_or(f64::MAX))
    }
}

/// Whether the number has no fraction; 1.0 has none.
pub(super) fn is_integer(number: &Number) -> bool {
    match exact(number) {
        Exact::Integer(_) => true,
        Exact::Float(float) => float.fract() == 0.0,
    }
}

/// The number as a count, when it is one.
pub(super) fn as_count(number: &Number) -> Option<u64> {
    match exact(number) {
        Exact::Integer(integer) => u64::try_from(integer).ok(),
        Exact::Float(float) if float.fract() == 0.0 && float >= 0.0 => {
            // The cast saturates, and a count beyond that cannot be reached anyway.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked to be whole and not negative"
            )]
            Some(float as u64)
        }
        Exact::Float(_) => None,
    }
}

/// Compares by value: 1 and 1.0 are equal.
pub(super) fn compare(left: &Number, right: &Number) -> Ordering {
    match (exact(left), exact(right)) {
        (Exact::Integer(a), Exact::Integer(b)) => a.cmp(&b),
        (Exact::Float(a), Exact::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (Exact::Integer(a), Exact::Float(b)) => compare_mixed(a, b),
        (Exact::Float(a), Exact::Integer(b)) => compare_mixed(b, a).reverse(),
    }
}

/// Returns a key that two numbers share exactly when they are equal by value.
pub(super) fn identity(number: &Number) -> (i128, u64) {
    // No integer has as many as 65 bits.
    const BEYOND_INTEGERS: f64 = 36_893_488_147_419_103_232.0;
    match exact(number) {
        Exact::Integer(integer) => (integer, 0),
        #[expect(clippy::cast_possible_truncation, reason = "whole and far within range")]
        Exact::Float(float) if float.fract() == 0.0 && float.abs() < BEYOND_INTEGERS => (float as i128, 0),
        Exact::Float(float) => (0, float.to_bits()),
    }
}

fn compare_mixed(integer: i128, float: f64) -> Ordering {
    // The cast saturates far outside the 64-bit numbers that JSON integers have here, so it is exact
    // wherever it could decide.
    #[expect(clippy::cast_possible_truncation, reason = "saturation is what is wanted")]
    let whole = float.trunc() as i128;
    integer.cmp(&whole).then_with(|| 0.0_f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal))
}

/// Whether `number` is a whole multiple of `divisor`, as decimals.
pub(super) fn is_multiple(number: &Number, divisor: &Number) -> bool {
    let (number, divisor) = (decimal(number), decimal(divisor));
    if number.digits == 0 {
        return true;
    }
    if divisor.digits == 0 {
        return false;
    }
    let shift = number.exponent - divisor.exponent;
    if shift >= 0 {
        // Both factors stay below the divisor, which has at most 64 bits, so the product has at most 128.
        let power = power_of_ten_modulo(shift.unsigned_abs(), divisor.digits);
        return (number.digits % divisor.digits * power).is_multiple_of(divisor.digits);
    }
    let scale = u32::try_from(shift.unsigned_abs()).ok().and_then(|power| 10_u128.checked_pow(power));
    let scaled = scale.and_then(|scale| divisor.digits.checked_mul(scale));
    scaled.is_some_and(|scaled| number.digits.is_multiple_of(scaled))
}

fn power_of_ten_modulo(mut power: u64, modulus: u128) -> u128 {
    let (mut result, mut base) = (1 % modulus, 10 % modulus);
    while power > 0 {
        if power % 2 == 1 {
            result = result * base % modulus;
        }
        base = base * base % modulus;
        power /= 2;
    }
    result
}

fn decimal(number: &Number) -> Decimal {
    match exact(number) {
        Exact::Integer(integer) => Decimal { digits: integer.unsigned_abs(), exponent: 0 },
        Exact::Float(float) => shortest_decimal(float.abs()),
    }
}

/// The shortest decimal that reads back as the same float, which has at most 17 digits.
fn shortest_decimal(float: f64) -> Decimal {
    let text = format!("{float:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}").parse().unwrap_or(0);
    let places = i64::try_from(fraction.len()).unwrap_or(0);
    Decimal { digits, exponent: exponent.parse::<i64>().unwrap_or(0) - places }
}
