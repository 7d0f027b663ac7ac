//! Numbered events: streams that can be resumed, and what nodes send each other.

use std::fmt;

use bytes::Bytes;
use toolwire_protocol::RequestId;

use crate::{NodeId, Op, SessionKey};

/// Keeps events in order, under numbers that grow and are never used twice.
///
/// A *stream* has one writer at a time, who opens it, and readers of whom the last one counts. The other logs have many
/// writers, who post. A log is bounded: the oldest events are let go of first, which
/// [`Slice::first_kept`] shows. A stream that has ended is kept for a while. A store removes what is too old by
/// itself, and wakes [`Topic::Log`](crate::Topic::Log) for every change of a log.
pub trait EventLog: fmt::Debug + Send + Sync {
    /// Opens a stream and gives the fence that its writer has to show. Without `over` it is a new one. With it, the caller takes
    /// the stream from the writer that has that fence, of which only one can succeed.
    ///
    /// The same call of the same node again gives the same fence.
    ///
    /// # Errors
    /// `Conflict` when a new one is there already. `Lost` when the one to be taken over has another fence by now, has ended or is gone.
    fn open<'a>(&'a self, key: &'a LogKey, head: NewHead, over: Option<u64>) -> Op<'a, u64>;

    /// Adds events to a stream, the first of them with the number `first`, and says whether more will come. Numbers
    /// may be left out. The same call again changes nothing.
    ///
    /// # Errors
    /// `Lost` when somebody else has the stream, or it is gone. `Conflict` when a number was used for something else,
    /// or the stream has ended.
    fn append<'a>(
        &'a self,
        key: &'a LogKey,
        fence: u64,
        first: u64,
        events: &'a [Bytes],
        then: LogState,
    ) -> Op<'a, ()>;

    /// Adds an event to a log that is not a stream, and gives its number. A call that is repeated because its outcome
    /// was not known adds it twice: whoever reads has to bear that.
    ///
    /// # Errors
    /// `Conflict` when it is a stream.
    fn post<'a>(&'a self, key: &'a LogKey, event: Bytes) -> Op<'a, u64>;

    /// The events of this log, and of no other, that come after the number `after`, at most `limit` of them. A log
    /// that is not there is empty.
    fn read<'a>(&'a self, key: &'a LogKey, after: u64, limit: usize) -> Op<'a, Slice>;

    /// Gives a reader of a stream its number, which is higher than all before it. A reader ends when it sees that there is
    /// a higher one.
    ///
    /// # Errors
    /// `Lost` when there is no such stream.
    fn attend<'a>(&'a self, key: &'a LogKey) -> Op<'a, u64>;

    /// Removes all logs of a session.
    fn forget<'a>(&'a self, session: &'a SessionKey) -> Op<'a, ()>;
}

/// The name of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LogKey {
    /// A stream of a session, by its number.
    Stream(SessionKey, u64),
    /// What all nodes have to know that hold the session.
    Session(SessionKey),
    /// What is meant for one node.
    Inbox(NodeId),
    /// What has changed, for all nodes.
    Changes,
}

impl LogKey {
    /// The session that it belongs to, if it belongs to one.
    pub fn session(&self) -> Option<&SessionKey> {
        match self {
            Self::Stream(session, _) | Self::Session(session) => Some(session),
            Self::Inbox(_) | Self::Changes => None,
        }
    }

    /// Whether it has one writer, who opens it.
    pub fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(..))
    }

    /// It as bytes, to be stored and compared: different keys have different ones, which never change.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Stream(session, number) => {
                [b"t".as_slice(), session.as_bytes(), &number.to_be_bytes()].concat()
            }
            Self::Session(session) => [b"s".as_slice(), session.as_bytes()].concat(),
            Self::Inbox(node) => [b"i".as_slice(), node.as_bytes()].concat(),
            Self::Changes => b"c".to_vec(),
        }
    }
}

/// Who begins to write a stream.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a pair that callers make")]
pub struct NewHead {
    /// The node that writes.
    pub node: NodeId,
    /// The requests whose answers will come on it.
    pub pending: Vec<RequestId>,
}

/// Whether more will come on a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogState {
    /// More may come.
    #[default]
    Open,
    /// That was all.
    Ended,
    /// More was sent than is stored, so the stream cannot be resumed.
    Broken,
}

/// A part of a log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Slice {
    /// What is known of the stream. `None` for what is not a stream, and for one that is not there.
    pub head: Option<Head>,
    /// The events.
    pub events: Vec<Event>,
    /// No event with this number or a higher one has been let go of. Whoever has seen fewer than all before it has missed some.
    pub first_kept: u64,
}

impl Slice {
    /// The answer of a store.
    pub fn new(head: Option<Head>, events: Vec<Event>, first_kept: u64) -> Self {
        Self { head, events, first_kept }
    }
}

/// An event and its number.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a pair")]
pub struct Event {
    /// Its number. Later ones have higher numbers.
    pub number: u64,
    /// What it says.
    pub bytes: Bytes,
}

/// What is known of a stream.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Head {
    /// The node that writes.
    pub node: NodeId,
    /// What its writes show.
    pub fence: u64,
    /// The highest number that was used; 0 if none was.
    pub last: u64,
    /// The newest reader; 0 if there was none.
    pub reader: u64,
    /// The requests whose answers come on it.
    pub pending: Vec<RequestId>,
    /// Whether more will come.
    pub state: LogState,
}

impl Head {
    /// That of a stream which was just opened.
    pub fn new(head: NewHead, fence: u64) -> Self {
        Self { node: head.node, fence, last: 0, reader: 0, pending: head.pending, state: LogState::Open }
    }
}
