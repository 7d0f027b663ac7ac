//! JSON as people write it: with comments and trailing commas.
//!
//! Both are replaced by spaces, so that every other character stays where it is and an error has its true
//! line and column.

use std::ops::Range;

/// A comment that is opened at this offset and never closed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NeverClosed(pub(crate) usize);

/// Text that is JSON if the original was JSON with comments, and as long: comments and trailing commas are spaces.
pub(crate) fn blank(text: &str) -> Result<String, NeverClosed> {
    let mut bytes = text.as_bytes().to_vec();
    for byte in comments(text)?.into_iter().flatten() {
        if let Some(byte) = bytes.get_mut(byte).filter(|byte| !matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
    }
    for comma in trailing_commas(&bytes) {
        if let Some(byte) = bytes.get_mut(comma) {
            *byte = b' ';
        }
    }
    // Only whole characters were replaced, by ASCII.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn comments(text: &str) -> Result<Vec<Range<usize>>, NeverClosed> {
    let bytes = text.as_bytes();
    let mut comments = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1)) {
            (b'"', _) => at = end_of_string(bytes, at),
            (b'/', Some(b'/')) => {
                let end = text.get(at..).and_then(|rest| rest.find('\n')).map_or(text.len(), |end| at + end);
                comments.push(at..end);
                at = end;
            }
            (b'/', Some(b'*')) => {
                let end = text.get(at + 2..).and_then(|rest| rest.find("*/")).ok_or(NeverClosed(at))?;
                comments.push(at..at + 2 + end + 2);
                at += 2 + end + 2;
            }
            _ => at += 1,
        }
    }
    Ok(comments)
}

/// The offset after a string that begins here; a string also ends with its line or the text.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\n' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn trailing_commas(bytes: &[u8]) -> Vec<usize> {
    let mut commas = Vec::new();
    // The last byte that is no space, and the one before it.
    let (mut last, mut before) = ((b' ', 0), b' ');
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let next = if byte == b'"' { end_of_string(bytes, at) } else { at + 1 };
        if !byte.is_ascii_whitespace() {
            // A comma that nothing precedes is a mistake to be told.
            if matches!(byte, b'}' | b']') && last.0 == b',' && !matches!(before, b'{' | b'[' | b',' | b':') {
                commas.push(last.1);
            }
            (before, last) = (last.0, (byte, at));
        }
        at = next;
    }
    commas
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parsed(text: &str) -> Value {
        let blanked = blank(text).unwrap();
        assert_eq!(blanked.len(), text.len());
        serde_json::from_str(&blanked).unwrap_or_else(|error| panic!("{error}: {blanked}"))
    }

    #[test]
    fn comments_and_trailing_commas_are_forgiven() {
        let text = "// é\n{ /* a, } \n */ \"a\": [1, 2, /* x */ ], \"b\": {\"c\": null,},\n} // end";
        assert_eq!(parsed(text), json!({ "a": [1, 2], "b": { "c": null } }));
    }

    #[test]
    fn strings_stay_as_they_are() {
        let text = r#"{"url": "http://x/*", "q": "\"//,}", "b": "\\"}"#;
        assert_eq!(parsed(text), json!({ "url": "http://x/*", "q": "\"//,}", "b": "\\" }));
    }

    #[test]
    fn everything_else_keeps_its_place() {
        let text = "{\n  // note\n  \"a\": oops\n}";
        let error = serde_json::from_str::<Value>(&blank(text).unwrap()).unwrap_err();
        assert_eq!((error.line(), error.column()), (3, 8));
    }

    #[test]
    fn commas_that_make_no_sense_are_not_forgiven() {
        for text in ["[,]", "{,}", "[1,,]", r#"{"a":,}"#] {
            assert!(serde_json::from_str::<Value>(&blank(text).unwrap()).is_err(), "{text}");
        }
    }

    #[test]
    fn whatever_the_text_is_it_ends() {
        assert_eq!(blank("{} /* x").unwrap_err(), NeverClosed(3));
        for text in ["", "/", "\"", "\"\\", "//", "/**/", "\"é", "/*/", "]", ","] {
            let _ = blank(text);
        }
    }
}
