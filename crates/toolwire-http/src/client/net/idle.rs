//! Connections that wait for their next request.

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use tokio::task::AbortHandle;

use super::connection::{Connection, Http2};

/// How many connections wait for their next request at most; further ones are closed.
pub(super) const MAX_IDLE: usize = 512;

/// What is not in use.
#[derive(Default)]
pub(super) struct Idle {
    /// The last one that was used is the first to be used again, so that those nobody needs grow old.
    http1: Vec<Waiting>,
    http2: Option<Http2>,
    /// When the shared connection was used last.
    http2_since: u32,
    /// Whether the server turned out to speak HTTP/1 although it could have chosen.
    only_http1: bool,
    /// Counts the rounds of the one who closes old connections. It takes the place of a clock.
    round: u32,
    pub(super) sweeper: Option<AbortHandle>,
    /// How many requests wait for a connection, because there may be no more of them.
    pub(super) wanted_by: usize,
}

struct Waiting {
    sender: SendRequest<Full<Bytes>>,
    since: u32,
}

impl Idle {
    /// A connection that can be used at once.
    pub(super) fn take(&mut self) -> Option<Connection> {
        while let Some(waiting) = self.http1.pop() {
            // One that is not ready was closed by the server.
            if waiting.sender.is_ready() {
                return Some(Connection::Http1(waiting.sender));
            }
        }
        let shared = self.http2.as_ref()?;
        if shared.is_closed() {
            self.http2 = None;
            return None;
        }
        self.http2_since = self.round;
        Some(Connection::Http2(shared.clone()))
    }

    pub(super) const fn is_only_http1(&self) -> bool {
        self.only_http1
    }

    /// Remembers what a new connection has turned out to be, and keeps it if it can be shared.
    pub(super) fn note(&mut self, connection: &Connection) {
        match connection {
            Connection::Http1(_) => self.only_http1 = true,
            Connection::Http2(shared) => {
                self.only_http1 = false;
                self.http2_since = self.round;
                self.http2 = Some(shared.clone());
            }
        }
    }

    /// Closes everything: one of them turned out to be closed by the server, and the others are most likely, too.
    pub(super) fn clear(&mut self) {
        self.http1.clear();
        self.http2 = None;
    }

    /// Puts a connection back.
    pub(super) fn put(&mut self, sender: SendRequest<Full<Bytes>>) {
        if self.http1.len() < MAX_IDLE {
            self.http1.push(Waiting { sender, since: self.round });
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.http1.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.http1.is_empty() && self.http2.is_none()
    }

    /// Closes what has been waiting since before the last round, and begins the next one.
    pub(super) fn sweep(&mut self) {
        let round = self.round;
        self.http1.retain(|waiting| waiting.since == round && !waiting.sender.is_closed());
        if let Some(shared) = &self.http2 {
            if !shared.is_unused() {
                self.http2_since = round;
            }
            if shared.is_closed() || self.http2_since != round {
                self.http2 = None;
            }
        }
        self.round = round.wrapping_add(1);
    }
}
