//! One stream of messages to a client, and the one connection that reads it.
//!
//! A stream outlives its connections. Each event is logged first, and then laid out for the connection, if
//! there is one. A connection that comes later takes what it missed from the log, and goes on from there; the
//! numbers of the events tell what it has already. The newest connection wins, and the one before it ends, so
//! that no event goes to two of them.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use tokio::{
    sync::{Mutex as AsyncMutex, Notify},
    time::Instant,
};

use toolwire_protocol::{Message, Method};
use toolwire_transport::ledger::{Account, Charge, Ledger, LimitReached};

use super::{
    event_log::{EventLog, LoggedEvent},
    id::StreamKey,
    reconnects::PendingReconnect,
};
use crate::server::response::{self, LIGHT_BYTES};

/// How many events may wait for a connection before the sender has to.
const UNREAD_EVENTS: usize = 64;

/// How many bytes may wait for a connection before the sender has to: 1 MiB. The event that crosses the line is
/// still accepted, so that one of any size can pass.
const UNREAD_BYTES: usize = 1024 * 1024;

/// The stream for messages that belong to no request.
pub(super) const STANDALONE: u64 = 0;

#[derive(Debug)]
pub(super) struct Stream {
    /// Where its events are kept; nowhere without a session.
    log: Option<(Arc<dyn EventLog>, StreamKey)>,
    /// Whom its events are charged to.
    ledger: Ledger,
    state: Mutex<State>,
    /// Held while an event is logged and laid out, so that they stay in order.
    writing: AsyncMutex<()>,
    /// Tells senders that the connection has read something, has come or has gone.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the last event.
    last: u64,
    /// The number of the last event that was given to a connection.
    given: u64,
    /// Counts connections; the newest has this number.
    connection: u64,
    connected: bool,
    /// Events that are logged, and that the connection has not read.
    unread: VecDeque<LoggedEvent>,
    unread_bytes: usize,
    /// The bytes of the event that the connection has read last, and may not have sent yet.
    read_bytes: usize,
    /// The same bytes where others can see them.
    charge: Option<Charge>,
    /// Whether the connection is to end when it has read everything, although the stream goes on.
    cut: bool,
    /// There while the client was sent away and is not back.
    away: Option<PendingReconnect>,
    ended: Option<Instant>,
    /// When the last connection went away.
    left: Option<Instant>,
    /// Whether the session is gone, and with it the log.
    forgotten: bool,
    reader: Option<Waker>,
}

/// What a connection finds in its stream.
pub(super) enum Next {
    Event(LoggedEvent),
    End,
}

impl Stream {
    /// A stream whose events are kept. What its connection has not read is charged.
    pub(super) fn logged(log: Arc<dyn EventLog>, key: StreamKey, charge: Charge) -> Arc<Self> {
        Arc::new(Self::new(Some((log, key)), charge))
    }

    /// A stream that cannot be resumed.
    pub(super) fn fleeting(charge: Charge) -> Arc<Self> {
        Arc::new(Self::new(None, charge))
    }

    fn new(log: Option<(Arc<dyn EventLog>, StreamKey)>, charge: Charge) -> Self {
        let ledger = charge.ledger().clone();
        let state = State { charge: Some(charge), ..State::default() };
        Self { log, ledger, state: Mutex::new(state), writing: AsyncMutex::default(), changed: Notify::new() }
    }

    /// Its number; `None` when it cannot be resumed.
    pub(super) fn number(&self) -> Option<u64> {
        self.log.as_ref().map(|(_, key)| key.stream)
    }

    /// Sends a message that may have to wait until the connection has read the ones before.
    ///
    /// If the client may not hold as much, the connection misses what a handler reports of its work. Everything else is sent
    /// when the connection has read all before it: the stream goes on, because a client may not know how to resume it.
    pub(super) async fn send(&self, message: Bytes) {
        let _writing = self.writing.lock().await;
        self.wait_until(|state| !state.is_full()).await;
        let Some(event) = self.append(message, false).await else { return };
        self.make_room(event.message.len());
        let Some(event) = self.lay_out(event, false) else { return };
        if is_report(&event.message) {
            tracing::debug!("a message was dropped; the client holds as much as it may");
            return;
        }
        self.wait_until(State::is_read).await;
        self.lay_out(event, true);
    }

    /// Sends a message that does not wait: an answer. If the client may not hold as much, an error takes its place.
    pub(super) async fn send_answer(&self, message: Bytes) {
        let _writing = self.writing.lock().await;
        let room = match message.len() {
            0..=LIGHT_BYTES => Ok(()),
            bytes => self.room_for(bytes),
        };
        let message = match room {
            Ok(()) => message,
            Err(reached) => response::no_room(&message, &reached),
        };
        self.append(message, true).await;
    }

    /// Checks that the client may hold so much, for which older events may have to go.
    fn room_for(&self, bytes: usize) -> Result<(), LimitReached> {
        let charge = || self.ledger.charge(Account::AnswerBytes, bytes).map(drop);
        charge().or_else(|_| {
            self.make_room(bytes);
            charge()
        })
    }

    fn make_room(&self, bytes: usize) {
        if let Some((log, key)) = &self.log {
            log.make_room(key, bytes, &self.ledger);
        }
    }

    /// Logs a message and lays it out, as [`Self::lay_out`] does.
    async fn append(&self, message: Bytes, has_room: bool) -> Option<LoggedEvent> {
        let sequence = {
            let mut state = self.lock();
            if state.ended.is_some() {
                return None;
            }
            // Taken even if this future is dropped on the way: a number is never used twice.
            state.last += 1;
            state.last
        };
        let event = LoggedEvent { sequence, message };
        if let Some((log, key)) = &self.log
            && let Err(error) = log.append_charged(key, event.clone(), &self.ledger).await
        {
            tracing::warn!(%error, "an event could not be kept; a client that is cut off will miss it");
        }
        self.lay_out(event, has_room)
    }

    /// Lays out an event for the connection, if there is one. Returns the event if there is no room for it; one that is said
    /// to have room is taken in any case.
    fn lay_out(&self, event: LoggedEvent, has_room: bool) -> Option<LoggedEvent> {
        let mut state = self.lock();
        if state.forgotten {
            drop(state);
            // The session went away while the event was logged.
            if let Some((log, key)) = &self.log {
                log.forget(&key.session);
            }
        } else if state.connected {
            let refused = state.push_unread(event, has_room);
            state.wake_reader();
            return refused;
        }
        None
    }

    /// Nothing more will be sent; the connection ends when it has read everything.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        if state.ended.is_none() {
            state.ended = Some(Instant::now());
            state.wake_reader();
            drop(state);
            if let Some((log, key)) = &self.log {
                log.end_stream(key);
            }
            self.changed.notify_waiters();
        }
    }

    /// Ends the stream because its session is gone.
    pub(super) fn forget(&self) {
        let mut state = self.lock();
        state.forgotten = true;
        state.away = None;
        drop(state);
        self.end();
    }

    /// Ends the connection when it has read everything. The stream goes on, and waits for the next one.
    pub(super) fn cut(&self, away: PendingReconnect) {
        let mut state = self.lock();
        if state.connected {
            state.cut = true;
            state.away = Some(away);
            state.wake_reader();
        }
    }

    /// Makes way for a new connection, which gets a number. From now on events are laid out for it; those
    /// before are in the log.
    pub(super) fn connect(&self) -> u64 {
        let mut state = self.lock();
        state.connection += 1;
        state.connected = true;
        state.cut = false;
        state.away = None;
        state.clear_unread();
        state.wake_reader();
        let connection = state.connection;
        drop(state);
        self.changed.notify_waiters();
        connection
    }

    pub(super) fn disconnect(&self, connection: u64) {
        let mut state = self.lock();
        if state.connection == connection && state.connected {
            state.connected = false;
            state.left = Some(Instant::now());
            state.reader = None;
            state.clear_unread();
            drop(state);
            self.changed.notify_waiters();
        }
    }

    /// The next event for this connection.
    pub(super) fn poll_next(&self, connection: u64, task: &mut Context<'_>) -> Poll<Next> {
        let mut state = self.lock();
        if state.connection != connection {
            return Poll::Ready(Next::End);
        }
        state.forget_read();
        if let Some(event) = state.pop_unread() {
            drop(state);
            self.changed.notify_waiters();
            return Poll::Ready(Next::Event(event));
        }
        if state.cut || state.ended.is_some() {
            return Poll::Ready(Next::End);
        }
        state.reader = Some(task.waker().clone());
        Poll::Pending
    }

    /// What was kept after an event.
    pub(super) async fn logged_after(&self, sequence: u64) -> Vec<LoggedEvent> {
        let Some((log, key)) = &self.log else { return Vec::new() };
        log.after(key, sequence).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the events of a stream could not be read");
            Vec::new()
        })
    }

    /// Remembers that an event was given to a connection.
    pub(super) fn set_given(&self, sequence: u64) {
        let mut state = self.lock();
        state.given = state.given.max(sequence);
    }

    /// The number of the last event that any connection was given.
    pub(super) fn given(&self) -> u64 {
        self.lock().given
    }

    /// The number of the last event.
    pub(super) fn last(&self) -> u64 {
        self.lock().last
    }

    pub(super) fn ended(&self) -> Option<Instant> {
        self.lock().ended
    }

    /// Whether nothing has come after an event, and nothing will.
    pub(super) fn is_over_after(&self, sequence: u64) -> bool {
        let state = self.lock();
        state.ended.is_some() && sequence >= state.last
    }

    pub(super) fn is_newest(&self, connection: u64) -> bool {
        self.lock().connection == connection
    }

    pub(super) fn is_connected(&self) -> bool {
        self.lock().connected
    }

    /// When the last connection went away.
    pub(super) fn left(&self) -> Option<Instant> {
        self.lock().left
    }

    /// Waits until there is a connection.
    pub(super) async fn connected(&self) {
        self.wait_until(|state| state.connected || state.ended.is_some()).await;
    }

    /// Waits until there is no connection.
    pub(super) async fn disconnected(&self) {
        self.wait_until(|state| !state.connected || state.ended.is_some()).await;
    }

    async fn wait_until(&self, condition: impl Fn(&State) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Listen before looking, or a change between the two would go unnoticed.
            changed.as_mut().enable();
            if condition(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Without a connection nothing piles up: the log has it.
    fn is_full(&self) -> bool {
        self.ended.is_none()
            && self.connected
            && (self.unread.len() >= UNREAD_EVENTS || self.unread_bytes >= UNREAD_BYTES)
    }

    /// Returns whether the connection, if there is one, has read everything.
    fn is_read(&self) -> bool {
        self.ended.is_some() || !self.connected || self.unread.is_empty()
    }

    fn push_unread(&mut self, event: LoggedEvent, has_room: bool) -> Option<LoggedEvent> {
        let bytes = event.message.len();
        if let Some(charge) = &mut self.charge {
            if has_room {
                charge.grow_unchecked(bytes);
            } else if charge.grow(bytes).is_err() {
                return Some(event);
            }
        }
        self.unread_bytes += bytes;
        self.unread.push_back(event);
        None
    }

    /// Gives an event to the connection, which holds it until it asks for the next one.
    fn pop_unread(&mut self) -> Option<LoggedEvent> {
        let event = self.unread.pop_front()?;
        self.unread_bytes -= event.message.len();
        self.read_bytes += event.message.len();
        Some(event)
    }

    /// The connection has sent what it has read.
    fn forget_read(&mut self) {
        let bytes = std::mem::take(&mut self.read_bytes);
        if let Some(charge) = &mut self.charge
            && bytes > 0
        {
            charge.shrink(bytes);
        }
    }

    fn clear_unread(&mut self) {
        while self.pop_unread().is_some() {}
        self.forget_read();
        self.unread = VecDeque::new();
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// Returns whether a message only reports how a request comes along: its progress, or an entry of a log.
fn is_report(message: &Bytes) -> bool {
    let Ok(Message::Notification(message)) = Message::parse(message) else { return false };
    matches!(message.method.known(), Some(Method::Progress | Method::LoggingMessage))
}

#[cfg(test)]
mod tests;
