//! Serving one client over a transport that carries whole messages both ways: pipes, sockets, memory.
//!
//! One task reads, one writes. The reader never waits for a handler: what is not answered at its first poll
//! goes on in a task of its own. Each request has its own lane in the outgoing queue, so that its messages
//! stay in order and no request holds up another. The connection owns all of its tasks: when it ends, or the future
//! that serves it is dropped, so do they.

mod accept;
mod batch;
mod connection;

use std::{error::Error, fmt, future::poll_fn, io, pin::pin, sync::Arc, task::Poll};

use tokio::time::timeout;
use toolwire_protocol::{RpcError, envelope::write_error};
use toolwire_transport::{Duplex, Ledger, ReceiveError, Sink, Source, internal::AbortOnDrop, write_loop};

pub(crate) use connection::ReplyTo;
use connection::{Abort, Connection};

use crate::{CallerKey, Extensions, Server, admission::busy, engine::EndsAt};

impl Server {
    /// Serves one client until it goes away, or until [`shutdown`](Self::shutdown).
    ///
    /// When the client has closed its side, running requests may finish within the limit `drain_timeout`. At the end of
    /// standard input, and after a shutdown, [tasks](crate::TaskPolicy) that run here are then given back to their store, as
    /// by [`end_tasks`](Self::end_tasks).
    ///
    /// # Errors
    /// When the transport breaks. A client that simply leaves is not an error.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection at once, and every request of it.
    pub async fn serve<D: Duplex>(&self, transport: D) -> Result<(), ServeError> {
        let extensions = known_of(&transport);
        self.serve_with(transport, extensions).await
    }

    /// The same for a transport that knows something of its client: the handlers of every request find it among
    /// the extensions of their context, a [`Principal`](crate::Principal) for instance. A [`CallerKey`] among them
    /// says whom the connection is counted against, where there is no principal. A [`LocalPeer`](toolwire_transport::LocalPeer)
    /// says that it is a process on this machine, which [`serve`](Self::serve) finds out by itself. An [`EndsAt`] among them says when nothing
    /// more is read; calls that are under way then have the limit `handler_timeout`, as always.
    ///
    /// # Errors
    /// When the transport breaks. A client that simply leaves is not an error.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection at once, and every request of it.
    pub async fn serve_with<D: Duplex>(
        &self,
        transport: D,
        extensions: Extensions,
    ) -> Result<(), ServeError> {
        let (place, ends_process) = (self.begin_tasks(), transport.ends_process());
        let served = self.serve_connection(transport, extensions).await;
        place.ended(ends_process).await;
        served
    }

    /// Serves one of many connections, whose acceptor sees to the end of tasks.
    #[doc(hidden)]
    pub async fn serve_connection<D: Duplex>(
        &self,
        transport: D,
        extensions: Extensions,
    ) -> Result<(), ServeError> {
        self.start_tasks();
        let ledger = self.connection_ledger(&self.ledger_for(&extensions));
        let connection = Arc::new(Connection::new(self.clone(), extensions, ledger));
        let _abort = Abort(Arc::clone(&connection));
        // In a task of its own, so that it runs on the runtime's workers even when this future is driven by
        // the main thread.
        let mut task = AbortOnDrop::new(tokio::spawn(run(connection, transport)));
        match (&mut task).await {
            Ok(result) => result,
            Err(error) => Err(ServeError(io::Error::other(error))),
        }
    }

    fn ledger_for(&self, extensions: &Extensions) -> Ledger {
        match CallerKey::of(extensions) {
            Some(caller) => self.caller_ledger(caller),
            None => self.ledger().clone(),
        }
    }
}

/// Returns what a transport knows of its peer.
fn known_of<D: Duplex>(transport: &D) -> Extensions {
    let mut extensions = Extensions::default();
    if let Some(peer) = transport.local_peer() {
        extensions.insert(peer);
    }
    extensions
}

/// The transport broke while serving.
#[derive(Debug)]
pub struct ServeError(io::Error);

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection to the client broke")
    }
}

impl Error for ServeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

async fn run<D: Duplex>(connection: Arc<Connection>, transport: D) -> Result<(), ServeError> {
    let (mut source, mut sink) = transport.split();
    source.charge_to(connection.ledger());
    sink.charge_to(connection.ledger());
    let mut writer = AbortOnDrop::new(tokio::spawn(write_loop(connection.queue.clone(), sink)));
    let read = tokio::select! {
        biased;
        written = &mut writer => {
            return ended(written.unwrap_or_else(|error| Err(io::Error::other(error))));
        }
        read = read(&connection, &mut source) => read,
    };
    // Those of a client who has only lost the right to begin new ones have all of their time.
    let limits = connection.server.limits();
    let patience = if expired(&connection) { limits.handler_timeout } else { limits.drain_timeout };
    connection.drain(patience).await;
    connection.queue.close();
    match timeout(connection.server.limits().drain_timeout, &mut writer).await {
        Ok(written) => ended(written.unwrap_or_else(|error| Err(io::Error::other(error)))).and(read),
        // A client that does not read its last answers is gone.
        Err(_) => read,
    }
}

async fn read<S: Source>(connection: &Arc<Connection>, source: &mut S) -> Result<(), ServeError> {
    let shutdown = connection.server.shutting_down().clone();
    // One for all messages: to begin and to end listening takes a lock.
    let mut stopped = pin!(shutdown.cancelled());
    let end = connection.ends_at();
    loop {
        if connection.queue.queued_bytes() > 2 * connection.server.limits().queued_bytes {
            // The client reads nothing, and not even refusals fit any more.
            tokio::select! {
                biased;
                () = &mut stopped => return Ok(()),
                () = EndsAt::reached(end) => return Ok(()),
                () = connection.queue.room() => {}
            }
        }
        if shutdown.is_cancelled() || end.is_some_and(EndsAt::is_over) {
            return Ok(());
        }
        let received = tokio::select! {
            biased;
            received = source.receive() => received,
            () = &mut stopped => return Ok(()),
            () = EndsAt::reached(end) => return Ok(()),
        };
        match received {
            Ok(Some(bytes)) => {
                poll_fn(|task| {
                    connection.handle(&bytes, task);
                    Poll::Ready(())
                })
                .await;
            }
            Ok(None) => return Ok(()),
            Err(error) if error.is_fatal() => {
                tell_why(connection, &error);
                return Err(ServeError(io::Error::other(error)));
            }
            Err(error) => refuse(connection, &error),
        }
    }
}

/// Tells the client why nothing more is read from it, if it may still be there.
fn tell_why(connection: &Connection, error: &ReceiveError) {
    if let ReceiveError::TimedOut { .. } = error {
        let why = RpcError::invalid_request(error.to_string());
        // A closed queue means that the client is gone, which the writer reports.
        let _ = connection.queue.post(write_error(None, &why));
    }
}

/// Answers a message that was dropped.
fn refuse(connection: &Connection, error: &ReceiveError) {
    let outline = error.outline().cloned().unwrap_or_default();
    let why = match error {
        ReceiveError::Busy { reached, .. } => busy(reached),
        error => RpcError::invalid_request(error.to_string()),
    };
    connection.refuse_dropped(&why, &outline);
}

fn expired(connection: &Connection) -> bool {
    connection.ends_at().is_some_and(EndsAt::is_over)
}

fn ended(written: io::Result<()>) -> Result<(), ServeError> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(ServeError),
    }
}

#[cfg(test)]
mod tests;
