//! Values, types and names as a reader wants to see them.

use std::fmt::Write as _;

use serde_json::Value;

use super::node::{Bound, Constant, Node, Range, Rule, Types};

/// How many characters of a value a message shows.
pub const MAX_SHOWN_CHARS: usize = 60;

/// How many names or values a list in a message shows.
const MAX_LISTED: usize = 20;

/// Names longer than this are not compared letter by letter.
const MAX_COMPARED_CHARS: usize = 40;

/// The value as JSON, shortened.
pub(super) fn shown(value: &Value) -> String {
    let mut text = String::new();
    write_json(&mut text, value);
    shortened(&text)
}

/// A name in quotes, shortened.
pub(super) fn quoted(name: &str) -> String {
    let mut text = String::new();
    write_quoted(&mut text, name);
    shortened(&text)
}

/// The first characters of a text.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS).and_then(|(end, _)| text.get(..end)) {
        Some(start) => format!("{start}…"),
        None => text.to_owned(),
    }
}

/// Writes no more of `value` than can be shown, however large it is.
fn write_json(text: &mut String, value: &Value) {
    match value {
        Value::String(string) => write_quoted(text, string),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if text.len() > MAX_SHOWN_CHARS * 4 {
                    return;
                }
                text.push_str(if index > 0 { "," } else { "" });
                write_json(text, item);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            for (index, (name, member)) in members.iter().enumerate() {
                if text.len() > MAX_SHOWN_CHARS * 4 {
                    return;
                }
                text.push_str(if index > 0 { "," } else { "" });
                write_quoted(text, name);
                text.push(':');
                write_json(text, member);
            }
            text.push('}');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

fn write_quoted(text: &mut String, string: &str) {
    let start: String = string.chars().take(MAX_SHOWN_CHARS + 1).collect();
    text.push_str(&Value::String(start).to_string());
}

/// The value with the kind of thing it is, where its look alone does not say it.
pub(super) fn named(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the string {}", quoted(text)),
        Value::Array(items) if items.is_empty() => "an empty array".to_owned(),
        Value::Array(_) => format!("the array {}", shown(value)),
        Value::Object(members) if members.is_empty() => "an empty object".to_owned(),
        Value::Object(_) => format!("the object {}", shown(value)),
        _ => shown(value),
    }
}

/// Names in quotes with commas between them.
pub(super) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    join(names, quoted, ", ")
}

/// Joins the first of `parts`, and only counts the others, of which there may be very many.
fn join<T>(mut parts: impl Iterator<Item = T>, shown: impl Fn(T) -> String, separator: &str) -> String {
    let mut joined = String::new();
    for (index, part) in parts.by_ref().take(MAX_LISTED).enumerate() {
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(&shown(part));
    }
    let left_out = parts.count();
    if left_out > 0 {
        // Writing to a string cannot fail.
        let _ = write!(joined, " and {left_out} more");
    }
    joined
}

pub(super) fn types(types: Types) -> String {
    let phrase = |name| match name {
        "array" | "integer" | "object" => format!("an {name}"),
        "null" => name.to_owned(),
        _ => format!("a {name}"),
    };
    join(types.names(), phrase, " or ")
}

pub(super) fn constants(values: &[Constant]) -> String {
    match values {
        [only] => shown(&only.value),
        _ => format!("one of {}", join(values.iter(), |constant| shown(&constant.value), ", ")),
    }
}

pub(super) fn bound(bound: Bound) -> &'static str {
    match bound {
        Bound::Minimum => "a number of at least",
        Bound::ExclusiveMinimum => "a number greater than",
        Bound::Maximum => "a number of at most",
        Bound::ExclusiveMaximum => "a number less than",
        Bound::MultipleOf => "a multiple of",
    }
}

/// A count with its noun, in the plural where English wants it.
pub(super) fn counted(count: u64, noun: &str) -> String {
    match (count, noun) {
        (1, _) => format!("1 {noun}"),
        (_, "property") => format!("{count} properties"),
        _ => format!("{count} {noun}s"),
    }
}

pub(super) fn range(range: Range, noun: &str) -> String {
    match (range.min, range.max) {
        (Some(min), Some(max)) if min == max => format!("exactly {}", counted(min, noun)),
        (Some(min), Some(max)) => format!("{min} to {}", counted(max, noun)),
        (Some(min), None) => format!("at least {}", counted(min, noun)),
        (None, Some(max)) => format!("at most {}", counted(max, noun)),
        (None, None) => format!("any number of {noun}s"),
    }
}

/// What the node asks for, when one short phrase can say it.
pub(super) fn summary(node: &Node) -> Option<String> {
    match node.rules.as_slice() {
        [Rule::Type(set), ..] => Some(types(*set)),
        [Rule::Const(constant), ..] => Some(shown(&constant.value)),
        [Rule::Enum(values), ..] => Some(constants(values)),
        [Rule::Number(limit, number)] => Some(format!("{} {number}", bound(*limit))),
        [Rule::Object(rules)] if !rules.required.is_empty() => {
            Some(format!("an object with {}", list(rules.required.iter().map(String::as_str))))
        }
        _ => None,
    }
}

/// The name that was probably meant by `name`.
pub(super) fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let letters = folded(name)?;
    let tolerated = (letters.len() / 3).clamp(1, 2);
    known
        .take(MAX_LISTED * 4)
        .filter_map(|other| Some((distance(&letters, &folded(other)?), other)))
        .filter(|(distance, _)| *distance <= tolerated)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// The letters of a name without its case and its word separators.
fn folded(name: &str) -> Option<Vec<char>> {
    let letters: Vec<char> = name
        .chars()
        .filter(|c| !matches!(c, '_' | '-' | ' '))
        .flat_map(char::to_lowercase)
        .take(MAX_COMPARED_CHARS + 1)
        .collect();
    (!letters.is_empty() && letters.len() <= MAX_COMPARED_CHARS).then_some(letters)
}

/// The number of single letter edits between two names; letters in another order count as one edit.
fn distance(left: &[char], right: &[char]) -> usize {
    let sorted = |letters: &[char]| {
        let mut letters = letters.to_vec();
        letters.sort_unstable();
        letters
    };
    if left != right && sorted(left) == sorted(right) {
        return 1;
    }
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = i;
        let mut before = i + 1;
        for (b, cell) in right.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(a != b);
            diagonal = *cell;
            before = replaced.min(diagonal + 1).min(before + 1);
            *cell = before;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}
