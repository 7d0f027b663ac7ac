//! Order, weight and depth of JSON values.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::number;
use crate::canonical::sorted_members;

/// A total order in which values that are equal as JSON, and no others, compare as equal.
///
/// Recursive, so only for values whose depth was checked.
pub(super) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => number::compare(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => a.len().cmp(&b.len()).then_with(|| {
            a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }),
        (Value::Object(a), Value::Object(b)) => a.len().cmp(&b.len()).then_with(|| compare_members(a, b)),
        _ => rank(left).cmp(&rank(right)),
    }
}

fn compare_members(left: &Map<String, Value>, right: &Map<String, Value>) -> Ordering {
    sorted_members(left.iter())
        .into_iter()
        .zip(sorted_members(right.iter()))
        .map(|((a_key, a), (b_key, b))| a_key.cmp(b_key).then_with(|| compare(a, b)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

/// What looking at all of `value` once costs, in steps.
pub(super) fn weight(value: &Value) -> u64 {
    let mut total = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        total += 1;
        match value {
            Value::String(text) => total += text_weight(text),
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                total += members.keys().map(|key| text_weight(key)).sum::<u64>();
                open.extend(members.values());
            }
            _ => {}
        }
    }
    total
}

/// How many bytes a copy of `value` takes, about.
pub(super) fn bytes(value: &Value) -> usize {
    let mut total = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        total += size_of::<Value>();
        match value {
            Value::String(text) => total += text.len(),
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                total += members.keys().map(|key| size_of::<String>() + key.len()).sum::<usize>();
                open.extend(members.values());
            }
            _ => {}
        }
    }
    total
}

/// What finding `name` in an ordered map of so many members costs, in steps.
pub(super) fn lookup_weight(name: &str, members: usize) -> u64 {
    let comparisons = u64::from(members.checked_ilog2().unwrap_or(0)) + 1;
    text_weight(name).saturating_mul(comparisons).saturating_add(1)
}

/// What looking at all of `text` once costs, in steps.
pub(super) fn text_weight(text: &str) -> u64 {
    count(text.len()) / 64
}

/// A length as the number type of limits.
pub(super) fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Whether `value` is nested deeper than `limit`; itself not recursive.
pub(super) fn is_deeper_than(value: &Value, limit: usize) -> bool {
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        let below: &mut dyn Iterator<Item = &Value> = match value {
            Value::Array(items) => &mut items.iter(),
            Value::Object(members) => &mut members.values(),
            _ => continue,
        };
        if depth > limit {
            return true;
        }
        // Only what can hold others is looked at again.
        let below = below.filter(|value| value.is_array() || value.is_object());
        open.extend(below.map(|value| (value, depth + 1)));
    }
    false
}
