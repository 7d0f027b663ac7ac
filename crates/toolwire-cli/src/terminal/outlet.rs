//! The last step before something is printed: no secrets, and nothing that controls the terminal.
//!
//! Whoever writes a text has already taken care of what it puts into it. This is for what was forgotten.

use std::{borrow::Cow, fmt::Write};

use super::foreign::{printable, turns_around};
use crate::redact;

/// A text without colours, as failures have it.
pub(crate) fn plain(text: &str) -> String {
    printable(&redact::outgoing(text))
}

/// A text that may have colours, and no other sequence for the terminal.
pub(crate) fn styled(text: &str) -> Cow<'_, str> {
    let text = redact::outgoing(text);
    if !text.contains(|c: char| is_harmful(c)) {
        return text;
    }
    let mut safe = String::new();
    let mut rest = text.as_ref();
    while let Some(c) = rest.chars().next() {
        let length = colour(rest).unwrap_or_else(|| c.len_utf8());
        let (piece, behind) = rest.split_at(length);
        if length == c.len_utf8() && is_harmful(c) {
            safe.push('\u{fffd}');
        } else {
            safe.push_str(piece);
        }
        rest = behind;
    }
    safe.into()
}

/// JSON that means the same, in which every character that could do something to a terminal is written as an escape.
pub(crate) fn json(text: &str) -> String {
    let text = redact::outgoing(text);
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        // All of them have four digits.
        if is_harmful(c) {
            let _ = write!(safe, "\\u{:04x}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    safe
}

fn is_harmful(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || turns_around(c)
}

/// How long the sequence for a colour is that a text begins with, if it does.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let length = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters.get(length..)?.starts_with('m').then_some(length + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_stay_and_everything_else_goes() {
        assert_eq!(styled("\u{1b}[1;31mred\u{1b}[0m\ttab\n"), "\u{1b}[1;31mred\u{1b}[0m\ttab\n");
        assert_eq!(
            styled("\u{1b}[2Jé\u{1b}]0;x\u{7}\u{9b}1m\u{202e}"),
            "\u{fffd}[2Jé\u{fffd}]0;x\u{fffd}\u{fffd}1m\u{fffd}"
        );
        assert_eq!(styled("\u{1b}["), "\u{fffd}[");
        assert_eq!(plain("\u{1b}[31mred"), "\u{fffd}[31mred");
    }

    #[test]
    fn json_says_the_same_without_what_controls() {
        let value = serde_json::json!({ "a": "\u{1b}[2J\u{9b}\u{7f}\u{202e}é\n" });
        let text = json(&value.to_string());
        assert!(text.chars().all(|c| !is_harmful(c)), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
