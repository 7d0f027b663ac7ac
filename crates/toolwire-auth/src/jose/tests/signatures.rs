//! Signatures and keys that verifiers have taken by mistake: the classes of faults that the vectors of Project Wycheproof have
//! for these algorithms, made here from keys of our own.
//!
//! - ECDSA (P-256 and P-384, both halves of fixed length): r or s of zero, one, the order, one less and the field prime; a
//!   half plus the order, negated, swapped, with another s; high and low s, which both count; leading zeros kept, added and
//!   left out; cut short, too long, empty, of another curve, in DER; keys beside the curve or out of range.
//! - Ed25519: S plus multiples of the order, not reduced, reversed, zero; R of zero, of small order, not canonical; halves
//!   swapped; wrong lengths; keys of small order in all their encodings.
//! - RSA, PKCS #1 v1.5 and PSS: modified padding, block type, separator, trailer and top bit; bytes after the hash; other, missing
//!   and differently encoded algorithms of the hash; salts and masks of other lengths and hashes; no, one and all of the modulus;
//!   a representative that is not reduced; wrong lengths.
//!
//! No library signs most of the RSA cases, so `rsa-classes.txt` has them: each line is an algorithm, a class and a
//! signature that is the encoded message of that class to the power of the private exponent of `keys/rsa.pem`.

use serde_json::json;

use super::{super::*, RSA, changed, private};

/// A curve of ECDSA: its algorithm, and its order and prime.
struct Curve {
    algorithm: Algorithm,
    order: Vec<u8>,
    prime: Vec<u8>,
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn curves() -> [Curve; 2] {
    let p256 = (
        "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551",
        "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff",
    );
    let p384 = (
        "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973",
        "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffeffffffff0000000000000000ffffffff",
    );
    [(Algorithm::Es256, p256), (Algorithm::Es384, p384)].map(|(algorithm, (order, prime))| Curve {
        algorithm,
        order: hex(order),
        prime: hex(prime),
    })
}

/// The sum of two numbers of one length, the last byte first, with a byte for what is carried.
fn sum(one: &[u8], other: &[u8]) -> Vec<u8> {
    let mut carry = 0_u16;
    let mut bytes: Vec<u8> = Vec::new();
    for (one, other) in one.iter().zip(other) {
        carry += u16::from(*one) + u16::from(*other);
        bytes.push(carry.to_le_bytes()[0]);
        carry >>= 8;
    }
    bytes.push(carry.to_le_bytes()[0]);
    bytes
}

/// The difference of two numbers of one length, the first byte first.
fn difference(one: &[u8], other: &[u8]) -> Vec<u8> {
    let complement: Vec<u8> = other.iter().rev().map(|byte| !byte).collect();
    let reversed: Vec<u8> = one.iter().rev().copied().collect();
    let mut one = vec![0; complement.len()];
    one[0] = 1;
    let sum = sum(&sum(&reversed, &complement)[..complement.len()], &one);
    sum[..complement.len()].iter().rev().copied().collect()
}

/// Signs anew, which gives another signature of ECDSA each time.
fn signed(key: &PrivateKey) -> (String, Vec<u8>) {
    let token = key.sign("at+jwt", &json!({ "sub": "ada" })).unwrap();
    let (message, signature) = token.rsplit_once('.').unwrap();
    (message.to_owned(), decode(signature).unwrap())
}

fn takes(key: &PublicKey, message: &str, signature: &[u8]) -> bool {
    let token = format!("{message}.{}", encode(signature));
    Compact::parse(&token).is_ok_and(|token| key.verify(&token).is_ok())
}

/// An integer in DER, and two of them as a signature.
fn der(r: &[u8], s: &[u8]) -> Vec<u8> {
    let integer = |number: &[u8]| {
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        let mut bytes = number[zeros..].to_vec();
        if bytes.first().is_none_or(|first| *first >= 0x80) {
            bytes.insert(0, 0);
        }
        [&[2, u8::try_from(bytes.len()).unwrap()], &bytes[..]].concat()
    };
    let both = [integer(r), integer(s)].concat();
    [&[0x30, u8::try_from(both.len()).unwrap()], &both[..]].concat()
}

#[test]
fn ecdsa_takes_no_signature_of_a_class_that_was_taken_elsewhere() {
    for Curve { algorithm, order, prime } in curves() {
        let key = private(algorithm);
        let (message, good) = signed(&key);
        let (_, other) = signed(&key);
        assert!(takes(key.public_key(), &message, &good) && takes(key.public_key(), &message, &other));
        let half = good.len() / 2;
        let (r, s) = good.split_at(half);
        let with = |r: &[u8], s: &[u8]| takes(key.public_key(), &message, &[r, s].concat());
        // Low and high: every signature is one of a pair, and neither is preferred in tokens.
        assert!(with(r, &difference(&order, s)), "{algorithm}");
        assert!(!with(&difference(&order, r), s) && !with(s, r) && !with(r, &other[half..]), "{algorithm}");
        let number = |last: u8| [&vec![0; half - 1][..], &[last]].concat();
        let edges =
            [number(0), number(1), order.clone(), difference(&order, &number(1)), prime, vec![0xff; half]];
        for edge in &edges {
            assert!(!with(edge, s) && !with(r, edge), "{algorithm} {edge:02x?}");
            assert!(edges.iter().all(|other| !with(edge, other)), "{algorithm} {edge:02x?}");
        }
        let more = |number: &[u8]| -> Vec<u8> {
            let reversed = |bytes: &[u8]| bytes.iter().rev().copied().collect::<Vec<_>>();
            reversed(&sum(&reversed(number), &reversed(&order)))
        };
        assert_eq!((more(r).len(), &difference(&more(r)[1..], &order)[..]), (half + 1, r));
        assert!(!with(&more(r), s) && !with(r, &more(s)) && !with(&more(r), &more(s)), "{algorithm}");
        let padded = |number: &[u8]| [&[0], number].concat();
        assert!(!with(&padded(r), &padded(s)) && !with(&padded(r), s) && !with(r, &padded(s)));
        assert!(
            !with(r, &[s, &[0]].concat()) && !with(r, &s[..half - 1]) && !with(&r[1..], s) && !with(r, &[])
        );
        assert!(!with(&der(r, s), &[]) && !with(&[], &[]) && !with(&good, &good), "{algorithm}");
    }
}

#[test]
fn ecdsa_counts_leading_zeros_of_its_halves() {
    for Curve { algorithm, .. } in curves() {
        let key = private(algorithm);
        // One in 256 begins with a zero; that none of so many does is less likely than a fault of the machine.
        let (message, good) = (0..20_000)
            .map(|_| signed(&key))
            .find(|(_, signature)| signature[0] == 0)
            .expect("a signature that begins with a zero");
        assert!(takes(key.public_key(), &message, &good));
        assert!(!takes(key.public_key(), &message, &good[1..]), "{algorithm}");
    }
}

#[test]
fn a_key_of_another_curve_or_beside_its_own_takes_nothing() {
    let keys = curves().map(|curve| (private(curve.algorithm), curve));
    for (key, Curve { algorithm, prime, .. }) in &keys {
        let (message, good) = signed(key);
        for (other, curve) in &keys {
            let is_own = curve.algorithm == *algorithm;
            assert_eq!(takes(other.public_key(), &message, &good), is_own, "{algorithm}");
        }
        let jwk = key.public_key().to_jwk();
        let coordinate = |name: &str| decode(jwk[name].as_str().unwrap()).unwrap();
        let (x, y) = (coordinate("x"), coordinate("y"));
        let mut next = y.clone();
        *next.last_mut().unwrap() ^= 1;
        let zero = vec![0; x.len()];
        let negated = difference(prime, &y);
        let strange = [
            (&x, &next),
            (&y, &x),
            (&x, &x),
            (&zero, &zero),
            (&x, &zero),
            (prime, &y),
            (&x, prime),
            (&x, &negated),
        ];
        for (x, y) in strange {
            let changes = [("x", json!(encode(x))), ("y", json!(encode(y)))];
            let key = PublicKey::parse(&changed(key.public_key(), &changes)).unwrap();
            assert!(!takes(&key, &message, &good), "{algorithm}");
        }
    }
}

/// The order of Ed25519, the last byte first.
const L: &str = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";

/// The eight points of small order, with a sign that is none and not reduced as well; the last byte first.
const SMALL: [&str; 14] = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
];

#[test]
fn ed25519_takes_no_signature_of_a_class_that_was_taken_elsewhere() {
    let key = private(Algorithm::EdDsa);
    let (message, good) = signed(&key);
    assert!(takes(key.public_key(), &message, &good));
    let (r, s) = good.split_at(32);
    let with = |r: &[u8], s: &[u8]| takes(key.public_key(), &message, &[r, s].concat());
    let order = hex(L);
    let mut more = s.to_vec();
    for times in 1..=14 {
        more = sum(&more, &order);
        assert_eq!(more.pop(), Some(0), "there is room for it");
        assert!(!with(r, &more), "S and {times} times the order");
    }
    for bit in [0x20, 0x40, 0x80] {
        let mut high = s.to_vec();
        high[31] |= bit;
        assert!(!with(r, &high), "{bit:x}");
    }
    let reversed: Vec<u8> = s.iter().rev().copied().collect();
    let zero = [0; 32];
    for s in [&zero[..], &order, &[0xff; 32], &reversed, r] {
        assert!(!with(r, s) && !with(&zero, s) && !with(&[0xff; 32], s), "{s:02x?}");
    }
    for point in SMALL.map(hex) {
        assert!(!with(&point, s) && !with(&point, &zero) && !with(&point, &order), "{point:02x?}");
    }
    let mut negated = r.to_vec();
    negated[31] ^= 0x80;
    assert!(!with(&negated, s) && !with(s, r));
    for length in [1, 31, 32, 33, 63] {
        assert!(!with(&good[..length], &[]), "{length}");
    }
    assert!(!with(&good, &[0]) && !with(&[0], &good) && !with(&good, &good));
}

#[test]
fn a_key_of_ed25519_of_small_order_which_fits_signatures_of_others_is_refused() {
    let key = private(Algorithm::EdDsa);
    for point in SMALL.map(hex) {
        let refused = PublicKey::parse(&changed(key.public_key(), &[("x", json!(encode(&point)))]));
        assert_eq!(refused.unwrap_err(), JwkError::Member("x"), "{point:02x?}");
    }
    let set = json!({ "keys": [key.public_key().to_jwk(), { "kty": "OKP", "crv": "Ed25519", "x": encode(hex(SMALL[2])) }] });
    let set = KeySet::parse(&set.to_string()).unwrap();
    assert_eq!((set.keys().len(), set.skipped()), (1, 1));
}

#[test]
fn rsa_takes_no_signature_of_a_class_that_was_taken_elsewhere() {
    let mut message = "";
    let mut seen = 0;
    for line in include_str!("rsa-classes.txt").lines() {
        let [algorithm, class, text] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let algorithm = Algorithm::from_name(algorithm).unwrap();
        let key = PrivateKey::pem(RSA, algorithm).unwrap().public_key().clone();
        if class == "signed" {
            message = text;
            continue;
        }
        let signature = decode(text).unwrap();
        assert_eq!(signature.len(), 256, "{algorithm} {class}");
        let is_good = class.starts_with("valid");
        assert_eq!(takes(&key, message, &signature), is_good, "{algorithm} {class}");
        seen += 1;
        if is_good {
            for other in strange_numbers(&key, &signature) {
                assert!(!takes(&key, message, &other), "{algorithm} {other:02x?}");
            }
        }
    }
    assert_eq!(seen, 40);
}

/// Numbers that are no signatures, whatever was signed, and a good one in other lengths.
fn strange_numbers(key: &PublicKey, good: &[u8]) -> Vec<Vec<u8>> {
    let modulus = decode(key.to_jwk()["n"].as_str().unwrap()).unwrap();
    let one = [&[0; 255][..], &[1]].concat();
    vec![
        vec![0; 256],
        one.clone(),
        difference(&modulus, &one),
        modulus.clone(),
        difference(&modulus, good),
        vec![0xff; 256],
        vec![0],
        vec![1],
        good[1..].to_vec(),
        good[..255].to_vec(),
        [&[0], good].concat(),
        [good, &[0]].concat(),
        [good, good].concat(),
    ]
}
