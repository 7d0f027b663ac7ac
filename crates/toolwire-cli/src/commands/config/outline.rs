//! Where the parts of a JSON text are, so that one of them can be changed and the others be left alone.
//!
//! It works on text that is known to be JSON, with comments and trailing commas blanked. On anything else it
//! finds nothing or something wrong, which the caller notices by reading the result again.

use std::ops::Range;

use crate::config::jsonc::end_of_string;

/// An object in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Object {
    /// With its braces.
    pub(super) range: Range<usize>,
    pub(super) members: Vec<Member>,
}

/// A name and a value of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    /// Where the name begins.
    pub(super) start: usize,
    pub(super) value: Range<usize>,
}

/// The object that the keys lead to.
pub(super) fn find(text: &str, keys: &[String]) -> Option<Object> {
    let mut object = object(text, skip_space(text, 0))?;
    for key in keys {
        let member = object.member(key)?.value.start;
        object = self::object(text, member)?;
    }
    Some(object)
}

impl Object {
    /// The member with this name; of several, the last one counts.
    pub(super) fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().rfind(|member| member.name == name)
    }
}

/// The object that begins here.
fn object(text: &str, start: usize) -> Option<Object> {
    let bytes = text.as_bytes();
    let mut at = start;
    if bytes.get(at) != Some(&b'{') {
        return None;
    }
    let mut members = Vec::new();
    loop {
        // After the brace or a comma.
        at = skip_space(text, at + 1);
        match bytes.get(at)? {
            b'}' => return Some(Object { range: start..at + 1, members }),
            b'"' => {}
            _ => return None,
        }
        let end = end_of_string(bytes, at);
        let name = serde_json::from_str(text.get(at..end)?).ok()?;
        let colon = skip_space(text, end);
        let value = skip_space(text, colon + 1);
        let value = value..end_of_value(bytes, value);
        let after = skip_space(text, value.end);
        members.push(Member { name, start: at, value });
        match bytes.get(after)? {
            b',' => at = after,
            b'}' => return Some(Object { range: start..after + 1, members }),
            _ => return None,
        }
    }
}

/// The offset of the next character that is no space.
pub(super) fn skip_space(text: &str, from: usize) -> usize {
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

fn end_of_value(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = end_of_string(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return if depth == 1 { at + 1 } else { at },
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => return at,
            byte if byte.is_ascii_whitespace() && depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    at
}
