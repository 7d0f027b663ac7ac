//! Conversations written down as text, held against a server.
//!
//! A transcript is a text of lines:
//!
//! ```text
//! # A comment.
//! version 2025-06-18
//! -> {"jsonrpc":"2.0","id":1,"method":"ping"}
//! <- {"jsonrpc":"2.0","id":1,"result":{}}
//! ```
//!
//! `->` is sent exactly as it stands, whether it is JSON or not. `<-` must be the next message of the server.
//! In it, the string `"*"` stands for any value, a `*` inside a longer string for any text, and a member `"*"`
//! of an object for any members that are not named. After the last line the connection is closed, and the
//! server must have nothing more to say. The version says which schema the messages are held against.

use serde_json::Value;
use toolwire_protocol::Version;

use crate::{Target, Wire};

/// Plays a transcript against a server.
///
/// ```
/// use toolwire_server::Server;
/// use toolwire_testkit::replay;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = Server::builder("demo", "1.0").build().unwrap();
/// let transcript = r#"
///     -> {"jsonrpc":"2.0","id":null,"method":"ping"}
///     <- {"jsonrpc":"2.0","error":{"code":-32600,"message":"*null*"}}
///     -> {"jsonrpc":"2.0","id":"a","method":"ping"}
///     <- {"jsonrpc":"2.0","id":"a","result":{}}
/// "#;
/// replay(&server, transcript).await;
/// # }
/// ```
///
/// # Panics
/// When the server says something else, says too much or too little, or a line is not understood. The text
/// shows the line and what was said so far.
pub async fn replay(target: &impl Target, transcript: &str) {
    let mut lines = lines(transcript).peekable();
    let version = match lines.peek() {
        Some((_, Line::Version(version))) => *version,
        _ => Version::LATEST_LEGACY,
    };
    let mut wire = Wire::builder(version).without_handshake().connect(target).await;
    for (number, line) in lines {
        match line {
            Line::Version(_) => {}
            Line::Send(text) => wire.send_raw(text).await,
            Line::Expect(expected) => {
                let found = wire.next().await;
                if let Err(difference) = fits(&expected, &found) {
                    panic!("line {number}: {difference}\nwhat was said so far:\n{}", wire.transcript());
                }
            }
        }
    }
    let said = wire.transcript().to_string();
    let more = wire.close().await;
    assert!(more.is_empty(), "the server says more than the transcript has: {more:?}\nafter:\n{said}");
}

enum Line<'a> {
    Version(Version),
    Send(&'a str),
    Expect(Value),
}

fn lines(transcript: &str) -> impl Iterator<Item = (usize, Line<'_>)> {
    let numbered = transcript.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(|(number, line)| {
        let parsed = if let Some(text) = line.strip_prefix("-> ") {
            Line::Send(text)
        } else if let Some(text) = line.strip_prefix("<- ") {
            let expected = serde_json::from_str(text);
            Line::Expect(expected.unwrap_or_else(|error| panic!("line {number} is not JSON: {error}")))
        } else if let Some(version) = line.strip_prefix("version ") {
            Line::Version(version.parse().unwrap_or_else(|error| panic!("line {number}: {error}")))
        } else {
            panic!("line {number} is neither a comment, a version, \"-> \" nor \"<- \": {line}")
        };
        (number, parsed)
    })
}

/// Whether `found` is what a transcript expects; otherwise what is different, and where.
fn fits(expected: &Value, found: &Value) -> Result<(), String> {
    match (expected, found) {
        (Value::String(pattern), _) if pattern == "*" => Ok(()),
        (Value::String(pattern), Value::String(text)) if matches(pattern, text) => Ok(()),
        (Value::Array(patterns), Value::Array(items)) if patterns.len() == items.len() => {
            let mut pairs = patterns.iter().zip(items).enumerate();
            pairs.try_for_each(|(at, (pattern, item))| fits(pattern, item).map_err(below(&at.to_string())))
        }
        (Value::Object(patterns), Value::Object(members)) => {
            for (name, pattern) in patterns.iter().filter(|(name, _)| *name != "*") {
                let member = members.get(name).ok_or_else(|| format!(": {name:?} is missing in {found}"))?;
                fits(pattern, member).map_err(below(name))?;
            }
            match members.keys().find(|name| !patterns.contains_key(*name)) {
                Some(name) if !patterns.contains_key("*") => {
                    Err(format!(": {name:?} was not expected in {found}"))
                }
                _ => Ok(()),
            }
        }
        _ if expected == found => Ok(()),
        _ => Err(format!(": expected {expected}, found {found}")),
    }
}

fn below(name: &str) -> impl FnOnce(String) -> String {
    move |difference| format!("/{name}{difference}")
}

/// Whether `text` is `pattern` with each `*` replaced by some text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(part) = last.replace(part) {
            match rest.split_once(part) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stars_stand_for_text() {
        for (pattern, text) in [("a*", "abc"), ("*c", "abc"), ("a*c", "ac"), ("*b*", "abc"), ("abc", "abc")] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a*", "bc"), ("*c", "ab"), ("a*b*c", "acb"), ("ab", "abc"), ("a*a", "a")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn what_differs_is_named_with_its_place() {
        assert_eq!(fits(&json!({"a": [1, "*"], "*": 0}), &json!({"a": [1, {}], "b": 2})), Ok(()));
        let differences = [
            (json!({"a": 1}), json!({"a": 2}), "/a: expected 1, found 2"),
            (json!({"a": 1}), json!({}), ": \"a\" is missing in {}"),
            (json!({}), json!({"b": 1}), ": \"b\" was not expected in {\"b\":1}"),
            (json!([[1]]), json!([["1"]]), "/0/0: expected 1, found \"1\""),
            (json!([1]), json!([1, 2]), ": expected [1], found [1,2]"),
        ];
        for (expected, found, difference) in differences {
            assert_eq!(fits(&expected, &found), Err(difference.to_owned()));
        }
    }
}
