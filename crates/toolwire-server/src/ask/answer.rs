//! What comes back from a question.

use std::{error::Error, fmt};

use toolwire_protocol::{ErrorCode, RawJson, RpcError};

/// What the user did with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the protocol has these three, and each wants its own answer")]
pub enum Answer<T> {
    /// Answered it.
    Accept(T),
    /// Said no.
    Decline,
    /// Closed it without a decision.
    Cancel,
}

impl<T> Answer<T> {
    /// The answer, if there is one.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accept(value) => Some(value),
            Self::Decline | Self::Cancel => None,
        }
    }
}

/// A question that got no answer.
///
/// Returned from a handler with `?`, it becomes what the protocol has for it: a missing capability is reported
/// as such, everything else is told to the model.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum AskError {
    /// The client cannot answer this kind of question.
    Unsupported {
        /// What the client would have to declare: a `ClientCapabilities` object.
        required: RawJson,
        /// Whether the client speaks a revision that has an error of its own for this.
        coded: bool,
    },
    /// There is no way to ask: this request has no open stream, or is not one that may ask.
    NoWay(&'static str),
    /// The answer did not fit the question, twice.
    Invalid(String),
    /// The client refused or failed to ask.
    Refused(RpcError),
    /// The answer took too long.
    TimedOut,
    /// The client is gone.
    Closed,
    /// The handler has been put aside until the answers are there. Only tasks that the handler has started and
    /// left behind see this.
    Suspended,
    /// The user said no or closed the question, and the handler wanted an answer.
    NotAccepted,
    /// A step was given a name that is running or has given its result in this run of the handler. Each step needs
    /// its own, also each turn of a loop.
    StepNamedTwice(String),
    /// A step that may run [at most once](crate::Context::at_most_once) has begun, and has no result: its process was lost,
    /// its future was dropped, or its result could not be remembered. It is not known whether it happened.
    Interrupted(String),
    /// Too much to remember between the rounds, or too many rounds.
    Limit(String),
}

impl AskError {
    /// What the request fails with, where the caller has a code for it.
    pub(crate) fn fault(&self) -> Option<RpcError> {
        match self {
            Self::Unsupported { required, coded: true } => Some(
                toolwire_protocol::classify::Fault::MissingClientCapability { required: required.clone() }
                    .rpc_error(),
            ),
            Self::Limit(_) | Self::StepNamedTwice(_) => Some(RpcError::internal(self.to_string())),
            _ => None,
        }
    }

    /// What a prompt or a resource fails with.
    pub(crate) fn rpc_error(&self) -> RpcError {
        self.fault().unwrap_or_else(|| RpcError::new(ErrorCode::INVALID_REQUEST, self.to_string()))
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { required, .. } => {
                write!(f, "this needs a client that declares the capability {}", required.text())
            }
            Self::NoWay(why) => write!(f, "the user cannot be asked: {why}"),
            Self::Invalid(why) => write!(f, "the answer did not fit the question: {why}"),
            Self::Refused(error) => write!(f, "the client did not answer: {error}"),
            Self::TimedOut => f.write_str("nobody answered in time"),
            Self::Closed => f.write_str("the client is gone"),
            Self::Suspended => f.write_str("the request has been put aside until its questions are answered"),
            Self::NotAccepted => f.write_str("the user did not agree"),
            Self::StepNamedTwice(name) => write!(
                f,
                "the step {name:?} is named twice in one run of the handler; give each step its own name, in a loop \
                 for instance with the number of the turn"
            ),
            Self::Interrupted(name) => write!(
                f,
                "the step {name:?} has begun, came to no result, and may run at most once; find out whether it happened"
            ),
            Self::Limit(why) => f.write_str(why),
        }
    }
}

impl fmt::Debug for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for AskError {}
