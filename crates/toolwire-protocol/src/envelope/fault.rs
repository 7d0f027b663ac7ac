//! What is wrong with bytes that are not a message.

use std::fmt;

use crate::{
    ErrorCode, RequestId, RpcError,
    scan::{Flaw, MAX_DEPTH},
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
    /// A member has a name that a JSON library uses for itself, so that not every reader would see the same.
    ReservedMember(Box<str>),
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
    /// Whether what could not be read was an answer, so that the call it belongs to has failed.
    pub fn fails_call(&self) -> bool {
        self.answer || matches!(self.kind, FaultKind::NothingInIt | FaultKind::ResultAndError)
    }

    /// Whether what could not be read was a request that its sender waits for, so that it is told.
    pub fn fails_request(&self) -> bool {
        !self.fails_call()
            && matches!(
                self.kind,
                FaultKind::WrongParamsType
                    | FaultKind::DuplicateMember(_)
                    | FaultKind::ReservedMember(_)
                    | FaultKind::TooDeep
                    | FaultKind::NumberOutOfRange
                    | FaultKind::LoneSurrogate
            )
    }

    pub(super) fn new(kind: FaultKind, id: Option<RequestId>) -> Self {
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
            FaultKind::ReservedMember(name) => write!(f, "no member may be named {:?}", shortened(name)),
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
            Flaw::Reserved(name) => Self::ReservedMember(name),
        }
    }
}
