//! The seam between a client and what carries its messages.
//!
//! A [`Link`] sends requests and gives back one [`Exchange`] for each; whatever else the server says goes into
//! the [`Inbox`]. [`DuplexLink`] is the one for lines; HTTP brings its own. Nothing here knows what a method
//! means: a link moves messages that are already written, and finds out to which request an answer belongs.

mod duplex;
mod exchange;
mod inbox;
mod reconnecting;

use std::{borrow::Cow, error::Error as StdError, fmt, sync::Arc};

use bytes::Bytes;
use toolwire_protocol::{
    Message, MethodName, NameSource, RawJson, RequestId, RpcError, Version, codec::RequestEnvelope,
    probe::ProbeLink,
};
use toolwire_transport::BoxFuture;

use crate::error::Delivery;

pub use duplex::DuplexLink;
pub use exchange::{Exchange, ExchangeError, ExchangeEvent, ExchangeFeed, Reply};
pub use inbox::{Inbox, Thinking};
pub(crate) use reconnecting::{Ending, Line, ReconnectingLink};

/// A connection that requests are sent over. For people who write transports.
///
/// What does not belong to a request is handed to the [`Inbox`] as soon as it arrives: requests of the server
/// and all notifications except the progress of requests.
pub trait Link: fmt::Debug + Send + Sync + 'static {
    /// The family of transports, because an answer to the first message means different things in each.
    fn family(&self) -> ProbeLink;

    /// Sends a request. That it could not be sent is told by the exchange.
    fn start(&self, request: Outgoing) -> Exchange;

    /// Nobody waits for this answer any more: forget the request and, with `tell`, cancel it.
    ///
    /// It is called at most once for a request, and not after its answer was taken out of the exchange.
    fn abandon(&self, id: &RequestId, tell: bool);

    /// Sends a notification that is already written; done when the server has it, as far as one can tell.
    fn notify(&self, message: Bytes) -> BoxFuture<'static, Result<(), LinkError>>;

    /// Whether requests have to say outside of their messages as well what they are about; see [`Outgoing::subject`].
    fn wants_subject(&self) -> bool {
        false
    }

    /// Whether a request can be sent without piling up messages behind a server that does not read.
    fn has_room(&self) -> bool {
        true
    }

    /// Waits until [`has_room`](Self::has_room).
    fn room(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// The version was agreed on: all further messages are in it.
    fn negotiated(&self, version: Version);

    /// Why the connection ended, in words for a person.
    fn why_closed(&self) -> BoxFuture<'static, Option<String>>;

    /// Sends what is waiting, then ends the connection and waits until the other side is gone.
    fn close(&self) -> BoxFuture<'static, ()>;
}

/// A request that is ready to be sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outgoing {
    /// Its id, which is never used again on this link. It is also the token of its progress.
    pub id: RequestId,
    /// What is asked for.
    pub method: MethodName,
    /// The whole JSON-RPC message.
    pub message: Bytes,
    /// What it is about, for a link that [wants](Link::wants_subject) to know: it need not read the message again.
    pub subject: Option<Box<Subject>>,
}

/// What a request is about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Subject {
    /// What the request was written with: its revision, and the means to ask something on its behalf.
    pub envelope: RequestEnvelope,
    /// The name of a tool or a prompt, the URI of a resource, the id of a task.
    pub name: Option<Box<str>>,
    /// The arguments of a tool.
    pub arguments: Option<RawJson>,
}

impl Subject {
    /// A request that is about nothing that has a name.
    pub(crate) const fn nothing(envelope: RequestEnvelope) -> Self {
        Self { envelope, name: None, arguments: None }
    }

    /// What a request is about of which nothing is known but its message.
    pub(crate) fn of_message(envelope: RequestEnvelope, method: &MethodName, message: &Bytes) -> Self {
        let source = method.known().and_then(|method| method.info().name_header);
        let (Some(source), Ok((_, peek))) = (source, Message::parse_and_peek(message)) else {
            return Self::nothing(envelope);
        };
        let arguments = peek.arguments.and_then(|raw| String::from_utf8(raw.into()).ok());
        Self {
            envelope,
            name: match source {
                NameSource::Name => peek.name,
                NameSource::Uri => peek.uri,
                NameSource::TaskId => peek.task_id,
                _ => None,
            },
            arguments: arguments.and_then(|text| RawJson::parse(text).ok()),
        }
    }
}

/// A request that could not be carried, or whose answer was lost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LinkError {
    /// What happened.
    pub kind: LinkErrorKind,
    /// Whether the server may have acted on it.
    pub delivery: Delivery,
    /// One sentence for a person.
    pub message: Cow<'static, str>,
    /// What was behind it, if there is more to say; it becomes the source of the client's error.
    pub cause: Option<Arc<dyn StdError + Send + Sync>>,
}

/// What happened to a request on its way.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LinkErrorKind {
    /// The connection is over.
    Closed,
    /// This client has closed the connection.
    Cancelled,
    /// Too many requests are open.
    Busy,
    /// The answer is more than a limit allows; this is its name.
    Limit(&'static str),
    /// The link cannot carry this request to any server, and has not tried: something in it must be different.
    Refused,
    /// The server could not be reached.
    Unreachable,
    /// The answer is not a JSON-RPC message.
    Malformed,
    /// An HTTP status other than success, with the JSON-RPC error in its body.
    Status(u16, Option<RpcError>),
}

impl LinkError {
    /// An error with a sentence for a person.
    pub fn new(kind: LinkErrorKind, delivery: Delivery, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, delivery, message: message.into(), cause: None }
    }

    /// Adds what was behind it.
    #[must_use]
    pub fn caused_by(mut self, cause: Arc<dyn StdError + Send + Sync>) -> Self {
        self.cause = Some(cause);
        self
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for LinkError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as &(dyn StdError + 'static))
    }
}
