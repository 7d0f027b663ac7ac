//! What can be told of a message that is too long to be kept.
//!
//! Such a message is read over and dropped, but whoever sent it waits for an answer, and many write the id at its very
//! end. So its bytes are passed by an [`OutlineReader`] on their way out, which keeps nothing but the members at the top
//! level that say what the message is.

use crate::RequestId;

/// The outline of a message: its kind, and its id where it has one.
///
/// ```
/// use toolwire_protocol::envelope::{Outline, OutlineKind};
///
/// let outline = Outline::of(br#"{"method":"tools/call","params":{"id":1},"jsonrpc":"2.0","id":7}"#);
/// assert_eq!((outline.kind, outline.id), (OutlineKind::Request, Some(7.into())));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outline {
    /// What kind of message it is.
    pub kind: OutlineKind,
    /// Its id; only of a request or a response.
    pub id: Option<RequestId>,
}

/// What kind of message an [`Outline`] is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutlineKind {
    /// It cannot be told, or it is not a message.
    #[default]
    Unknown,
    /// It expects an answer with its id.
    Request,
    /// It expects no answer.
    Notification,
    /// It is an answer to the request with its id.
    Response,
}

impl Outline {
    /// The outline of a whole message.
    pub fn of(message: &[u8]) -> Self {
        let mut reader = OutlineReader::new();
        reader.feed(message);
        reader.outline()
    }

    /// The id to answer with: that of a request.
    pub fn request_id(&self) -> Option<&RequestId> {
        self.id.as_ref().filter(|_| self.kind == OutlineKind::Request)
    }

    /// Whether it may be answered at all. Answers are not, and neither are notifications.
    pub const fn may_be_answered(&self) -> bool {
        matches!(self.kind, OutlineKind::Unknown | OutlineKind::Request)
    }
}

/// The longest name of a member that is looked at, as it is written; those that matter are shorter, even if every
/// character of them is escaped.
const NAME_BYTES: usize = 64;
/// The longest id that is found, as it is written.
const ID_BYTES: usize = 1024;
/// How deep a message may be nested; deeper ones are not messages anyway.
const MAX_DEPTH: u32 = 128;

/// Finds the [`Outline`] of a message whose bytes come in pieces, and keeps none of them.
///
/// Only whole members of the outermost object count, and a message in which one of them is duplicated has no outline.
/// What is inside of other members is only looked at for where it ends.
#[derive(Clone, Debug, Default)]
pub struct OutlineReader {
    state: State,
    /// Brackets that are open inside of a member, the innermost in the lowest bit: set for an object.
    open: u128,
    depth: u32,
    /// The name or the value that is being read.
    captured: Vec<u8>,
    member: Member,
    found: Found,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    /// Before the name of a member, which must come unless it is the first.
    BeforeName {
        first: bool,
    },
    Name(Text),
    Colon,
    Value,
    /// Inside of a string that is a value at the top level.
    Text(Text),
    /// Inside of a number or a word at the top level.
    Scalar,
    /// Inside of an object or an array.
    Nested,
    /// Inside of a string in there.
    NestedText(Text),
    AfterValue,
    /// After the closing bracket.
    Done,
    Broken,
}

/// Where in a string the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Plain,
    /// After a backslash.
    Escape,
}

/// The members that matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Member {
    Id,
    Method,
    Result,
    Error,
    #[default]
    Other,
}

#[derive(Clone, Debug, Default)]
struct Found {
    id: Option<RequestId>,
    /// Whether there is a member `id`, whatever is in it.
    has_id: bool,
    method: bool,
    result: bool,
    error: bool,
}

impl OutlineReader {
    /// Reads a message from its beginning.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the message.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((byte, after)) = rest.split_first() {
            if self.state == State::Broken {
                return;
            }
            // Most of a long message is inside of one string.
            let plain = match self.state {
                State::NestedText(Text::Plain) => plain(rest),
                State::Text(Text::Plain) if !self.captures() => plain(rest),
                _ => 0,
            };
            if plain > 0 {
                rest = rest.get(plain..).unwrap_or_default();
                continue;
            }
            self.state = self.step(*byte);
            rest = after;
        }
    }

    /// Whether nothing that may still come would change the outline of a message.
    pub const fn is_certain(&self) -> bool {
        match self.state {
            State::Broken => true,
            _ => self.found.id.is_some() && (self.found.method || self.found.result || self.found.error),
        }
    }

    /// What was found so far.
    pub fn outline(&self) -> Outline {
        let Found { id, has_id, method, result, error } = &self.found;
        let kind = match (self.state, method, *result || *error) {
            (State::Broken, ..) | (_, true, true) | (_, false, false) => OutlineKind::Unknown,
            (_, true, false) if id.is_some() => OutlineKind::Request,
            (State::Done, true, false) if !has_id => OutlineKind::Notification,
            (_, true, false) => OutlineKind::Unknown,
            (_, false, true) => OutlineKind::Response,
        };
        let id = id.clone().filter(|_| kind != OutlineKind::Unknown);
        Outline { kind, id }
    }

    fn step(&mut self, byte: u8) -> State {
        let space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match (self.state, byte) {
            (State::Name(text), _) => self.name(text, byte),
            (State::Text(text), _) => self.text(text, byte),
            (State::NestedText(text), _) => in_text(text, byte).map_or(State::Nested, State::NestedText),
            (State::Nested, _) => self.nested(byte),
            (State::Scalar, _) => self.scalar(byte),
            (state, _) if space => state,
            (State::Start, b'{') => State::BeforeName { first: true },
            (State::BeforeName { .. }, b'"') => {
                self.captured.clear();
                State::Name(Text::Plain)
            }
            (State::Colon, b':') => State::Value,
            (State::Value, _) => self.value(byte),
            (State::AfterValue, b',') => State::BeforeName { first: false },
            (State::AfterValue | State::BeforeName { first: true }, b'}') => State::Done,
            _ => State::Broken,
        }
    }

    fn name(&mut self, text: Text, byte: u8) -> State {
        match in_text(text, byte) {
            Some(text) => {
                self.capture(byte, NAME_BYTES);
                State::Name(text)
            }
            None => self.begin_member().map_or(State::Broken, |()| State::Colon),
        }
    }

    /// Notes which member begins; `None` when it is one that was there before.
    fn begin_member(&mut self) -> Option<()> {
        let name = if self.captured.len() > NAME_BYTES { None } else { unquoted(&self.captured) };
        let found = &mut self.found;
        let (member, seen) = match name.as_deref() {
            Some("id") => (Member::Id, &mut found.has_id),
            Some("method") => (Member::Method, &mut found.method),
            Some("result") => (Member::Result, &mut found.result),
            Some("error") => (Member::Error, &mut found.error),
            _ => {
                self.member = Member::Other;
                return Some(());
            }
        };
        self.member = member;
        // Whether it is one that counts is known when its value is whole.
        let again = std::mem::replace(seen, member == Member::Id);
        (!again).then_some(())
    }

    fn value(&mut self, byte: u8) -> State {
        self.captured.clear();
        match byte {
            b'"' => State::Text(Text::Plain),
            b'{' | b'[' => {
                self.open = u128::from(byte == b'{');
                self.depth = 1;
                State::Nested
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                self.captured.push(byte);
                State::Scalar
            }
            _ => State::Broken,
        }
    }

    fn text(&mut self, text: Text, byte: u8) -> State {
        if let Some(text) = in_text(text, byte) {
            if self.captures() {
                self.capture(byte, ID_BYTES);
            }
            return State::Text(text);
        }
        if self.captures() && self.captured.len() <= ID_BYTES {
            self.found.id = unquoted(&self.captured).map(RequestId::from);
        }
        self.end_value(true)
    }

    fn scalar(&mut self, byte: u8) -> State {
        match byte {
            b',' | b'}' | b' ' | b'\t' | b'\r' | b'\n' => {
                if self.member == Member::Id {
                    self.found.id = number(&self.captured);
                }
                let after = self.end_value(false);
                self.state = after;
                self.step(byte)
            }
            b'0'..=b'9' | b'a'..=b'z' | b'E' | b'+' | b'-' | b'.' => {
                self.capture(byte, NAME_BYTES);
                State::Scalar
            }
            _ => State::Broken,
        }
    }

    fn nested(&mut self, byte: u8) -> State {
        match byte {
            b'"' => return State::NestedText(Text::Plain),
            b'{' | b'[' if self.depth == MAX_DEPTH => return State::Broken,
            b'{' | b'[' => {
                self.open = (self.open << 1) | u128::from(byte == b'{');
                self.depth += 1;
            }
            b'}' | b']' if (self.open & 1 == 1) != (byte == b'}') => return State::Broken,
            b'}' | b']' => {
                self.open >>= 1;
                self.depth -= 1;
                if self.depth == 0 {
                    return self.end_value(false);
                }
            }
            _ => {}
        }
        State::Nested
    }

    /// A value at the top level is whole.
    const fn end_value(&mut self, is_text: bool) -> State {
        match self.member {
            Member::Method => self.found.method = is_text,
            Member::Result => self.found.result = true,
            Member::Error => self.found.error = true,
            Member::Id | Member::Other => {}
        }
        State::AfterValue
    }

    /// Whether the value that is being read is of interest.
    fn captures(&self) -> bool {
        self.member == Member::Id
    }

    /// Keeps a byte, and one too many to know that there were too many.
    fn capture(&mut self, byte: u8, most: usize) {
        if self.captured.len() <= most {
            self.captured.push(byte);
        }
    }
}

/// The next place inside a string; `None` after its end.
const fn in_text(text: Text, byte: u8) -> Option<Text> {
    match (text, byte) {
        (Text::Plain, b'"') => None,
        (Text::Plain, b'\\') => Some(Text::Escape),
        _ => Some(Text::Plain),
    }
}

/// How many bytes at the beginning are plain characters of a string.
fn plain(bytes: &[u8]) -> usize {
    memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len())
}

/// What is written between quotes.
fn unquoted(raw: &[u8]) -> Option<String> {
    let quoted = [b"\"", raw, b"\""].concat();
    serde_json::from_slice(&quoted).ok()
}

/// An id that is a number, by the same rule as in a message that is kept.
fn number(raw: &[u8]) -> Option<RequestId> {
    let text = std::str::from_utf8(raw).ok().filter(|text| *text != "-0" && !text.starts_with('+'))?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let leading_zero = digits.len() > 1 && digits.starts_with('0');
    text.parse().ok().filter(|_| !leading_zero).map(RequestId::Num)
}

#[cfg(test)]
mod tests;
