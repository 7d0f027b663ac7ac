//! A shallow look at `params`: only what routing needs, nothing decoded twice.
//!
//! Wrong types are remembered, not thrown: which of them matters, and with which answer, is for the
//! checks in [`classify`](crate::classify) to say.

use std::{borrow::Cow, fmt};

use bytes::Bytes;

use crate::{
    Feature, Params, ProgressToken, Version,
    envelope::text,
    scan::{Malformed, Scanner},
    wire::meta::{CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROGRESS_TOKEN, PROTOCOL_VERSION},
};

/// What routing needs to know of a message's parameters.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Peek {
    /// `_meta`
    pub meta: Option<MetaPeek>,
    /// `name`
    pub name: Option<Box<str>>,
    /// `uri`
    pub uri: Option<Box<str>>,
    /// `taskId`
    pub task_id: Option<Box<str>>,
    /// `cursor`; the empty string is a cursor too.
    pub cursor: Option<Box<str>>,
    /// `requestState`
    pub request_state: Option<Box<str>>,
    /// `arguments`, raw.
    pub arguments: Option<Bytes>,
    /// `inputResponses`, raw.
    pub input_responses: Option<Bytes>,
    /// `task`, raw and of any type: only one revision knows it, and the others have to ignore it.
    pub task: Option<Bytes>,
    /// The first member that does not have its type.
    pub fault: Option<PeekFault>,
}

/// What routing needs to know of `_meta`.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct MetaPeek {
    /// The whole object, raw.
    pub raw: Bytes,
    /// `io.modelcontextprotocol/protocolVersion`
    pub version: Option<VersionField>,
    /// `io.modelcontextprotocol/clientCapabilities`, raw.
    pub client_capabilities: Option<Bytes>,
    /// `io.modelcontextprotocol/clientInfo`, raw.
    pub client_info: Option<Bytes>,
    /// `io.modelcontextprotocol/logLevel`
    pub log_level: Option<Box<str>>,
    /// `progressToken`
    pub progress_token: Option<ProgressToken>,
    /// The first key that does not have its type.
    pub fault: Option<PeekFault>,
}

/// The version a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a version is known or it is not")]
pub enum VersionField {
    /// One of ours.
    Known(Version),
    /// Any other string.
    Unknown(Box<str>),
}

impl VersionField {
    /// Reads a version string.
    pub fn of(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Unknown(text.into()), Self::Known)
    }

    /// The version as it stood.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(version) => version.as_str(),
            Self::Unknown(text) => text,
        }
    }

    /// Whether it names a revision that has `feature`. Nothing is known of one that is not ours.
    pub const fn has(&self, feature: Feature) -> bool {
        matches!(self, Self::Known(version) if version.has(feature))
    }

    /// Whether it names a revision of the modern era.
    pub fn is_modern(&self) -> bool {
        matches!(self, Self::Known(version) if version.is_modern())
    }
}

/// A member of `params` or `_meta` that is not what it has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeekFault {
    /// Which member.
    pub member: &'static str,
    /// What it has to be.
    pub expected: &'static str,
}

impl fmt::Display for PeekFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} must be {}", self.member, self.expected)
    }
}

impl Peek {
    /// Looks at `params`.
    pub fn of(params: &Params) -> Self {
        let Some(bytes) = params.bytes() else { return Self::default() };
        let mut peek = Self::default();
        // Parameters are mostly part of a message that has been parsed, so nothing of this fails.
        let sound = std::str::from_utf8(bytes).is_ok_and(|text| {
            let mut scanner = Scanner::new(text);
            let whole = peek.scan(&mut scanner, bytes).is_ok() && scanner.is_done();
            whole && scanner.flaw(whole).is_none()
        });
        if !sound {
            peek.fault =
                Some(PeekFault { member: "params", expected: "a JSON object without duplicate names" });
        }
        peek
    }

    /// Looks at the object that the scanner stands before, which is a part of `bytes`.
    pub(crate) fn scan(&mut self, scanner: &mut Scanner<'_>, bytes: &Bytes) -> Result<(), Malformed> {
        scanner.object(|scanner, name| self.member(scanner, name.text().as_deref(), bytes))
    }

    fn member(
        &mut self,
        scanner: &mut Scanner<'_>,
        name: Option<&str>,
        bytes: &Bytes,
    ) -> Result<(), Malformed> {
        let fault = &mut self.fault;
        match name {
            Some("_meta") => {
                if scanner.peek() == Some(b'{') {
                    // Filled where it stays: it is large.
                    self.meta.insert(MetaPeek::default()).scan(scanner, bytes)?;
                } else {
                    scanner.value()?;
                    // It outranks the others: only this one is a fault for every method.
                    *fault = Some(PeekFault { member: "_meta", expected: "an object" });
                }
            }
            Some("name") => put(&mut self.name, fault, "name", "a string", string(scanner)?),
            Some("arguments") => {
                if let Some(raw) = nullable(scanner)? {
                    put(&mut self.arguments, fault, "arguments", "an object", object(bytes, raw));
                }
            }
            Some("uri") => put(&mut self.uri, fault, "uri", "a string", string(scanner)?),
            Some("cursor") => {
                if !is_null(scanner)? {
                    put(&mut self.cursor, fault, "cursor", "a string", string(scanner)?);
                }
            }
            Some("taskId") => put(&mut self.task_id, fault, "taskId", "a string", string(scanner)?),
            Some("requestState") => {
                put(&mut self.request_state, fault, "requestState", "a string", string(scanner)?);
            }
            Some("inputResponses") => {
                let responses = object(bytes, scanner.value()?);
                put(&mut self.input_responses, fault, "inputResponses", "an object", responses);
            }
            Some("task") => self.task = nullable(scanner)?.map(|raw| slice(bytes, raw)),
            _ => {
                scanner.value()?;
            }
        }
        Ok(())
    }

    /// Whether `_meta` names a protocol version, which makes the request a modern one.
    pub fn version(&self) -> Option<&VersionField> {
        self.meta.as_ref()?.version.as_ref()
    }

    /// The progress token, if the caller wants progress.
    pub fn progress_token(&self) -> Option<&ProgressToken> {
        self.meta.as_ref()?.progress_token.as_ref()
    }
}

/// The text of one parameter of a message, if it is a string.
///
/// It is for messages of one's own: what stands behind the parameter is not looked at, so this does not tell whether
/// all of it is a message.
///
/// ```
/// use toolwire_protocol::peek::parameter;
///
/// let message = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{}}}"#;
/// assert_eq!(parameter(message, "name").unwrap(), "add");
/// assert_eq!(parameter(message, "uri"), None);
/// ```
pub fn parameter<'a>(message: &'a [u8], member: &str) -> Option<Cow<'a, str>> {
    let mut found = None;
    let mut scanner = Scanner::new(std::str::from_utf8(message).ok()?);
    // The walk is broken off where there is nothing more to look for, so it always ends as if something were wrong.
    let _ = scanner.object(|scanner, name| {
        if name.text().as_deref() != Some("params") {
            return scanner.value().map(drop);
        }
        scanner.object(|scanner, name| {
            if name.text().as_deref() != Some(member) {
                return scanner.value().map(drop);
            }
            found = text(scanner)?;
            Err(Malformed)
        })?;
        Err(Malformed)
    });
    found
}

/// Stores a value, or notes that it is not what it has to be. There is only one: a message that has two is refused.
fn put<T>(
    slot: &mut Option<T>,
    fault: &mut Option<PeekFault>,
    member: &'static str,
    expected: &'static str,
    value: Option<T>,
) {
    if value.is_none() {
        fault.get_or_insert(PeekFault { member, expected });
    }
    *slot = value;
}

impl MetaPeek {
    /// Looks at the object that the scanner stands before.
    fn scan(&mut self, scanner: &mut Scanner<'_>, bytes: &Bytes) -> Result<(), Malformed> {
        let raw = scanner.span(|scanner| {
            scanner.object(|scanner, name| self.member(scanner, name.text().as_deref(), bytes))
        })?;
        self.raw = slice(bytes, raw);
        Ok(())
    }

    fn member(
        &mut self,
        scanner: &mut Scanner<'_>,
        name: Option<&str>,
        bytes: &Bytes,
    ) -> Result<(), Malformed> {
        let fault = &mut self.fault;
        match name {
            Some(PROTOCOL_VERSION) => {
                let version = text(scanner)?.as_deref().map(VersionField::of);
                put(&mut self.version, fault, PROTOCOL_VERSION, "a string", version);
            }
            Some(CLIENT_CAPABILITIES) => {
                let raw = object(bytes, scanner.value()?);
                put(&mut self.client_capabilities, fault, CLIENT_CAPABILITIES, "an object", raw);
            }
            Some(CLIENT_INFO) => {
                let raw = object(bytes, scanner.value()?);
                put(&mut self.client_info, fault, CLIENT_INFO, "an object", raw);
            }
            Some(LOG_LEVEL) => put(&mut self.log_level, fault, LOG_LEVEL, "a string", string(scanner)?),
            Some(PROGRESS_TOKEN) => {
                if let Some(raw) = nullable(scanner)? {
                    let token = serde_json::from_slice(raw.as_bytes()).ok();
                    put(&mut self.progress_token, fault, PROGRESS_TOKEN, "a string or a whole number", token);
                }
            }
            _ => {
                scanner.value()?;
            }
        }
        Ok(())
    }
}

fn slice(bytes: &Bytes, raw: &str) -> Bytes {
    bytes.slice_ref(raw.as_bytes())
}

fn object(bytes: &Bytes, raw: &str) -> Option<Bytes> {
    raw.starts_with('{').then(|| slice(bytes, raw))
}

/// Passes a value that may be null.
fn nullable<'a>(scanner: &mut Scanner<'a>) -> Result<Option<&'a str>, Malformed> {
    scanner.value().map(|raw| (raw != "null").then_some(raw))
}

/// Passes a null, and nothing else.
fn is_null(scanner: &mut Scanner<'_>) -> Result<bool, Malformed> {
    if scanner.peek() != Some(b'n') {
        return Ok(false);
    }
    scanner.value().map(|_| true)
}

fn string(scanner: &mut Scanner<'_>) -> Result<Option<Box<str>>, Malformed> {
    text(scanner).map(|text| text.map(Into::into))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peek(text: &str) -> Peek {
        Peek::of(&Params::trusted(Bytes::copy_from_slice(text.as_bytes())))
    }

    #[test]
    fn a_modern_call_is_seen_through() {
        let peek = peek(
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
                "io.modelcontextprotocol/clientCapabilities":{"roots":{}},
                "io.modelcontextprotocol/clientInfo":{"name":"n","version":"v"},
                "io.modelcontextprotocol/logLevel":"info","progressToken":"t","other":1},
                "name":"ad\u0064","arguments":{"a":1},"requestState":"s","inputResponses":{}, "x":[]}"#,
        );
        assert_eq!(peek.fault, None);
        assert_eq!(peek.version(), Some(&VersionField::Known(Version::V2026_07_28)));
        assert_eq!(peek.progress_token(), Some(&"t".into()));
        assert_eq!(peek.name.as_deref(), Some("add"));
        assert_eq!(peek.arguments.as_deref(), Some(&br#"{"a":1}"#[..]));
        assert_eq!(peek.request_state.as_deref(), Some("s"));
        assert_eq!(peek.input_responses.as_deref(), Some(&b"{}"[..]));
        let meta = peek.meta.unwrap();
        assert_eq!(meta.client_capabilities.as_deref(), Some(&br#"{"roots":{}}"#[..]));
        assert_eq!(meta.log_level.as_deref(), Some("info"));
        assert_eq!(meta.fault, None);
    }

    #[test]
    fn one_parameter_is_found_without_the_others() {
        for (message, name) in [
            (
                r#"{"id":{"name":"x"},"params":{"_meta":{"name":"y"},"n\u0061me":"a\"b","name":"c"}}"#,
                Some("a\"b"),
            ),
            (r#"{"params":{"name":"a", broken"#, Some("a")),
            (r#"{"params":{"other":"a"},"name":"b"}"#, None),
            (r#"{"params":{"name":1}}"#, None),
            (r#"{"params":["name"]}"#, None),
            (r#"{"name":"a"}"#, None),
            ("[]", None),
            ("", None),
        ] {
            assert_eq!(parameter(message.as_bytes(), "name").as_deref(), name, "{message}");
        }
        assert_eq!(parameter(b"{\"params\":{\"name\":\"\xff\"}}", "name"), None);
    }

    #[test]
    fn wrong_types_and_doubles_are_remembered() {
        for (text, message) in [
            (r#"{"name":1}"#, "\"name\" must be a string"),
            (r#"{"name":"a","name":"b"}"#, "\"params\" must be a JSON object without duplicate names"),
            (r#"{"x":{"a":1,"\u0061":2}}"#, "\"params\" must be a JSON object without duplicate names"),
            (r#"{"arguments":[]}"#, "\"arguments\" must be an object"),
            (r#"{"_meta":7}"#, "\"_meta\" must be an object"),
            (r#"{"name":1,"_meta":7}"#, "\"_meta\" must be an object"),
            (r#"{"_meta":7,"name":1}"#, "\"_meta\" must be an object"),
            (r#"{"cursor":7}"#, "\"cursor\" must be a string"),
            (r#"{"uri":{}}"#, "\"uri\" must be a string"),
            (r#"{"requestState":null}"#, "\"requestState\" must be a string"),
            (r#"{"inputResponses":12345}"#, "\"inputResponses\" must be an object"),
        ] {
            assert_eq!(peek(text).fault.unwrap().to_string(), message, "{text}");
        }
        let meta = peek(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}"#).meta.unwrap();
        assert_eq!(meta.fault.unwrap().member, PROTOCOL_VERSION);
        let meta = peek(r#"{"_meta":{"progressToken":1.5}}"#).meta.unwrap();
        assert_eq!(meta.fault.unwrap().member, PROGRESS_TOKEN);
    }

    #[test]
    fn a_wish_for_a_task_is_seen_whatever_it_is() {
        assert_eq!(peek(r#"{"task":{"ttl":5}}"#).task.as_deref(), Some(&br#"{"ttl":5}"#[..]));
        let odd = peek(r#"{"task":7}"#);
        assert_eq!((odd.task.as_deref(), odd.fault), (Some(&b"7"[..]), None));
        assert!(peek(r#"{"task":null}"#).task.is_none());
        assert!(peek(r#"{"_meta":{"task":{}},"arguments":{"task":{}}}"#).task.is_none());
    }

    #[test]
    fn null_arguments_and_cursor_are_absent_and_an_empty_cursor_is_not() {
        let seen = peek(r#"{"arguments":null,"cursor":null}"#);
        assert!(seen.arguments.is_none() && seen.cursor.is_none() && seen.fault.is_none());
        assert_eq!(peek(r#"{"cursor":""}"#).cursor.as_deref(), Some(""));
    }
}
