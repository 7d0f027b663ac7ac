//! Equality, weight and depth of JSON values.

use std::{
    hash::{Hash, Hasher},
    mem::discriminant,
};

use serde_json::Value;

use super::number;
use crate::canonical::sorted_members;

/// Returns whether two values are equal as JSON, where 1 and 1.0 are.
///
/// It reads no more of `right` than there is of `left`, so the weight of `left` pays for it. Recursive, so only for
/// values whose depth was checked.
pub(super) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => number::compare(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|((name, value), (other, at_its_place))| {
                    // A map may keep the order of insertion, which says nothing about equality.
                    let found = if name == other { Some(at_its_place) } else { b.get(name) };
                    found.is_some_and(|found| equal(value, found))
                })
        }
        (Value::Number(_) | Value::Array(_) | Value::Object(_), _) => false,
        _ => left == right,
    }
}

/// A value as the key of a hash table, where values are equal as JSON.
///
/// Recursive, so only for values whose depth was checked.
pub(super) struct ByValue<'v>(pub(super) &'v Value);

impl PartialEq for ByValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        equal(self.0, other.0)
    }
}

impl Eq for ByValue<'_> {}

impl Hash for ByValue<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self.0).hash(state);
        match self.0 {
            Value::Null => {}
            Value::Bool(truth) => truth.hash(state),
            Value::Number(number) => number::identity(number).hash(state),
            Value::String(text) => text.hash(state),
            Value::Array(items) => {
                items.len().hash(state);
                for item in items {
                    ByValue(item).hash(state);
                }
            }
            Value::Object(members) => {
                members.len().hash(state);
                for (name, value) in sorted_members(members.iter()) {
                    name.hash(state);
                    ByValue(value).hash(state);
                }
            }
        }
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
