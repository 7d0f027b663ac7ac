//! Reading the envelope, in one pass over its text.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use serde::de::IgnoredAny;

use super::{Message, Notification, Params, Request, Response};
use crate::{
    ErrorCode, MethodName, RequestId, RpcError,
    peek::Peek,
    scan::{Flaw, MAX_DEPTH, Malformed, Quoted, Scanner},
};

/// Bytes that are not a JSON-RPC message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnvelopeFault {
    /// What is wrong.
    pub kind: FaultKind,
    /// The id, where one could be read, so that the error can be matched to its request.
    pub id: Option<RequestId>,
    /// Whether it was meant to be an answer, so that the id is one that its reader has chosen.
    pub answer: bool,
}

/// What is wrong with an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// Not JSON at all; the text says where.
    NotJson(Box<str>),
    /// JSON, but not an object.
    NotAnObject,
    /// An array of messages where none may stand.
    Batch,
    /// An empty batch.
    EmptyBatch,
    /// A batch with more messages than allowed.
    BatchTooLong {
        /// How many are allowed.
        limit: usize,
    },
    /// `jsonrpc` is missing or not `"2.0"`.
    NotVersionTwo,
    /// Two members of the same name in one object, anywhere in the message.
    DuplicateMember(Box<str>),
    /// Arrays and objects in each other, deeper than anybody decodes.
    TooDeep,
    /// A number beyond the range of 64-bit floating point.
    NumberOutOfRange,
    /// A string with an escape that stands for one half of a character.
    LoneSurrogate,
    /// `id` is `null`.
    NullId,
    /// `id` is a number, but not a whole one in the range of 64 bits.
    FractionalId,
    /// `id` is neither a string nor a number.
    WrongIdType,
    /// A result without an id.
    MissingId,
    /// `method` is not a string.
    WrongMethodType,
    /// `params` is not an object.
    WrongParamsType,
    /// `error` is not an error object.
    WrongErrorType,
    /// A method and a result or an error in one message.
    RequestAndResponse,
    /// A result and an error in one message.
    ResultAndError,
    /// Neither a method nor a result nor an error.
    NothingInIt,
}

impl EnvelopeFault {
    fn new(kind: FaultKind, id: Option<RequestId>) -> Self {
        Self { kind, id, answer: false }
    }

    /// The error to answer with.
    pub fn rpc_error(&self) -> RpcError {
        let code = match self.kind {
            FaultKind::NotJson(_) => ErrorCode::PARSE_ERROR,
            _ => ErrorCode::INVALID_REQUEST,
        };
        RpcError::new(code, self.to_string())
    }
}

impl fmt::Display for EnvelopeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FaultKind::NotJson(why) => write!(f, "not JSON: {why}"),
            FaultKind::NotAnObject => f.write_str("a message must be a JSON object"),
            FaultKind::Batch => {
                f.write_str("batches exist only in protocol version 2025-03-26; send one message at a time")
            }
            FaultKind::EmptyBatch => f.write_str("a batch must hold at least one message"),
            FaultKind::BatchTooLong { limit } => write!(f, "a batch may hold at most {limit} messages"),
            FaultKind::NotVersionTwo => f.write_str("the member \"jsonrpc\" must be \"2.0\""),
            FaultKind::DuplicateMember(name) => {
                write!(f, "the member {:?} is duplicated; names in an object must be unique", shortened(name))
            }
            FaultKind::TooDeep => write!(f, "a message may be nested at most {MAX_DEPTH} levels deep"),
            FaultKind::NumberOutOfRange => {
                f.write_str("a number in the message is out of range; send it as a string")
            }
            FaultKind::LoneSurrogate => f.write_str(
                "a string in the message has an escape that is half of a character (a lone surrogate)",
            ),
            FaultKind::NullId => f.write_str("\"id\" must not be null; leave it out to send a notification"),
            FaultKind::FractionalId => f.write_str("\"id\" must be a whole number or a string"),
            FaultKind::WrongIdType => f.write_str("\"id\" must be a string or a whole number"),
            FaultKind::MissingId => f.write_str("a result must carry the \"id\" of its request"),
            FaultKind::WrongMethodType => f.write_str("\"method\" must be a string"),
            FaultKind::WrongParamsType => f.write_str("\"params\" must be an object"),
            FaultKind::WrongErrorType => {
                f.write_str("\"error\" must be an object with an integer \"code\" and a string \"message\"")
            }
            FaultKind::RequestAndResponse => {
                f.write_str("a message is either a request or a response, not both")
            }
            FaultKind::ResultAndError => {
                f.write_str("a response has either a \"result\" or an \"error\", not both")
            }
            FaultKind::NothingInIt => {
                f.write_str("a message needs a \"method\", a \"result\" or an \"error\"")
            }
        }
    }
}

impl std::error::Error for EnvelopeFault {}

/// As much of a peer's name as a message shows.
fn shortened(name: &str) -> &str {
    const SHOWN_CHARS: usize = 60;
    name.char_indices().nth(SHOWN_CHARS).and_then(|(end, _)| name.get(..end)).unwrap_or(name)
}

impl From<Flaw> for FaultKind {
    fn from(flaw: Flaw) -> Self {
        match flaw {
            Flaw::TooDeep => Self::TooDeep,
            Flaw::NumberOutOfRange => Self::NumberOutOfRange,
            Flaw::LoneSurrogate => Self::LoneSurrogate,
            Flaw::Duplicate(name) => Self::DuplicateMember(name),
        }
    }
}

/// Parses one message, and looks at its parameters on the way if there is a `peek` to be filled.
pub(super) fn parse(bytes: &Bytes, peek: Option<&mut Peek>) -> Result<Message, EnvelopeFault> {
    let text = std::str::from_utf8(bytes).map_err(|_| not_json(bytes))?;
    let mut scanner = Scanner::new(text);
    if scanner.peek() != Some(b'{') {
        return Err(no_object(text, &mut scanner, bytes));
    }
    let mut fields = Fields { peek, ..Fields::default() };
    let walked = scanner.object(|scanner, name| fields.member(scanner, name, bytes));
    let whole = walked.is_ok() && scanner.is_done();
    if let Some(flaw) = scanner.flaw(whole) {
        return Err(fields.fault(flaw.into()));
    }
    if !whole {
        return Err(not_json(bytes));
    }
    fields.into_message(bytes)
}

#[cold]
fn no_object(text: &str, scanner: &mut Scanner<'_>, bytes: &Bytes) -> EnvelopeFault {
    match scanner.value() {
        Ok(_) if !scanner.is_done() => not_json(bytes),
        Ok(_) if text.trim_start().starts_with('[') => EnvelopeFault::new(FaultKind::Batch, None),
        Ok(_) => EnvelopeFault::new(FaultKind::NotAnObject, None),
        Err(Malformed) => match scanner.flaw(false) {
            Some(flaw) => EnvelopeFault::new(flaw.into(), None),
            None => not_json(bytes),
        },
    }
}

/// Says where the text stops being JSON, which the scanner does not keep track of.
#[cold]
fn not_json(bytes: &[u8]) -> EnvelopeFault {
    // What is ignored is not checked for everything, but for all that makes text no JSON.
    let error = serde_json::from_slice::<IgnoredAny>(bytes).err();
    let why = error.map_or_else(|| "not one JSON value".to_owned(), |error| error.to_string());
    EnvelopeFault::new(FaultKind::NotJson(why.into()), None)
}

/// Parses an array of messages, as 2025-03-26 allows it. Each message stands or falls for itself.
///
/// One message more than `limit` ends the reading: what comes behind it is not looked at.
///
/// # Errors
/// [`EnvelopeFault`] when the array itself is not acceptable.
pub fn parse_batch(
    bytes: &Bytes,
    limit: usize,
) -> Result<Vec<Result<Message, EnvelopeFault>>, EnvelopeFault> {
    let text = std::str::from_utf8(bytes).map_err(|_| not_json(bytes))?;
    let mut scanner = Scanner::new(text);
    let (mut items, mut too_long) = (Vec::new(), false);
    let walked = scanner.array(|scanner| {
        too_long = items.len() == limit;
        if too_long {
            return Err(Malformed);
        }
        items.push(scanner.value()?);
        Ok(())
    });
    let fault = |kind| Err(EnvelopeFault::new(kind, None));
    if too_long {
        return fault(FaultKind::BatchTooLong { limit });
    }
    if walked.is_err() || !scanner.is_done() {
        return scanner.flaw(false).map_or_else(|| Err(not_json(bytes)), |flaw| fault(flaw.into()));
    }
    if items.is_empty() {
        return fault(FaultKind::EmptyBatch);
    }
    Ok(items.into_iter().map(|item| parse(&bytes.slice_ref(item.as_bytes()), None)).collect())
}

/// The members of an envelope as they stand; faults are kept instead of thrown, so that broken JSON
/// further on is still noticed and the id can still be read.
#[derive(Default)]
struct Fields<'a, 'p> {
    /// What is seen of the parameters, if it is wanted.
    peek: Option<&'p mut Peek>,
    /// Whether it says that it is version 2.0.
    jsonrpc: bool,
    id: IdField,
    method: MethodField<'a>,
    params: Option<&'a str>,
    result: Option<&'a str>,
    error: Option<&'a str>,
}

#[derive(Default)]
enum MethodField<'a> {
    #[default]
    Absent,
    WrongType,
    Good(Cow<'a, str>),
}

#[derive(Default)]
enum IdField {
    #[default]
    Absent,
    Null,
    Fractional,
    WrongType,
    Good(RequestId),
}

impl<'a> Fields<'a, '_> {
    /// Takes the member that the scanner stands before.
    fn member(
        &mut self,
        scanner: &mut Scanner<'a>,
        name: Quoted<'a>,
        bytes: &Bytes,
    ) -> Result<(), Malformed> {
        match name.text().as_deref() {
            Some("jsonrpc") => self.jsonrpc = text(scanner)?.as_deref() == Some("2.0"),
            Some("id") => {
                // A second one makes the message unacceptable, and neither of them is the one to answer to.
                let first = matches!(self.id, IdField::Absent);
                let id = IdField::of(scanner)?;
                self.id = if first { id } else { IdField::WrongType };
            }
            Some("method") => {
                self.method = text(scanner)?.map_or(MethodField::WrongType, MethodField::Good);
            }
            Some("params") => {
                self.params = Some(match &mut self.peek {
                    Some(peek) if scanner.peek() == Some(b'{') => {
                        scanner.span(|scanner| peek.scan(scanner, bytes))?
                    }
                    _ => scanner.value()?,
                });
            }
            Some("result") => self.result = Some(scanner.value()?),
            Some("error") => self.error = Some(scanner.value()?),
            _ => drop(scanner.value()?),
        }
        Ok(())
    }

    /// The fault, with the id if it could be read.
    #[cold]
    fn fault(self, kind: FaultKind) -> EnvelopeFault {
        let answer =
            matches!(self.method, MethodField::Absent) && (self.result.is_some() || self.error.is_some());
        let id = match self.id {
            IdField::Good(id) => Some(id),
            _ => None,
        };
        EnvelopeFault { kind, id, answer }
    }

    fn into_message(mut self, bytes: &Bytes) -> Result<Message, EnvelopeFault> {
        self.judge(bytes).map_err(|kind| self.fault(kind))
    }

    /// Makes a message of the members, or says what is wrong and leaves the id where it is.
    fn judge(&mut self, bytes: &Bytes) -> Result<Message, FaultKind> {
        if !self.jsonrpc {
            return Err(FaultKind::NotVersionTwo);
        }
        let slice = |raw: &str| Params::trusted(bytes.slice_ref(raw.as_bytes()));
        if !matches!(self.method, MethodField::Absent) {
            if self.result.is_some() || self.error.is_some() {
                return Err(FaultKind::RequestAndResponse);
            }
            let MethodField::Good(method) = &self.method else { return Err(FaultKind::WrongMethodType) };
            let method = MethodName::from(&**method);
            let params = match self.params {
                // Some peers write null for "none".
                None | Some("null") => Params::NONE,
                Some(raw) if raw.starts_with('{') => slice(raw),
                Some(_) => return Err(FaultKind::WrongParamsType),
            };
            return Ok(match self.id.take()? {
                Some(id) => Message::Request(Request { id, method, params }),
                None => Message::Notification(Notification { method, params }),
            });
        }
        match (self.result, self.error) {
            (Some(_), Some(_)) => Err(FaultKind::ResultAndError),
            (None, None) => Err(FaultKind::NothingInIt),
            (Some(result), None) => {
                let id = self.id.take()?.ok_or(FaultKind::MissingId)?;
                Ok(Message::Response(Response { id: Some(id), outcome: Ok(slice(result)) }))
            }
            (None, Some(error)) => {
                let error =
                    serde_json::from_slice(error.as_bytes()).map_err(|_| FaultKind::WrongErrorType)?;
                // Plain JSON-RPC writes null here when the request was unreadable.
                let id = if matches!(self.id, IdField::Null) { None } else { self.id.take()? };
                Ok(Message::Response(Response { id, outcome: Err(error) }))
            }
        }
    }
}

impl IdField {
    fn of(scanner: &mut Scanner<'_>) -> Result<Self, Malformed> {
        Ok(match scanner.peek() {
            Some(b'"') => match scanner.string()?.text() {
                Some(text) => Self::Good(RequestId::Str((*text).into())),
                None => Self::WrongType,
            },
            Some(b'-' | b'0'..=b'9') => match scanner.value()? {
                // A number with a sign but without a value is none of the whole ones.
                "-0" => Self::Fractional,
                number => {
                    number.parse().map_or(Self::Fractional, |number| Self::Good(RequestId::Num(number)))
                }
            },
            _ if scanner.value()? == "null" => Self::Null,
            _ => Self::WrongType,
        })
    }

    /// The id, if there is one.
    fn take(&mut self) -> Result<Option<RequestId>, FaultKind> {
        match std::mem::take(self) {
            Self::Absent => Ok(None),
            Self::Good(id) => Ok(Some(id)),
            Self::Null => Err(FaultKind::NullId),
            Self::Fractional => Err(FaultKind::FractionalId),
            Self::WrongType => Err(FaultKind::WrongIdType),
        }
    }
}

/// Passes a value, and gives its text if it is a string.
pub(crate) fn text<'a>(scanner: &mut Scanner<'a>) -> Result<Option<Cow<'a, str>>, Malformed> {
    if scanner.peek() == Some(b'"') {
        return scanner.string().map(Quoted::text);
    }
    scanner.value().map(|_| None)
}
