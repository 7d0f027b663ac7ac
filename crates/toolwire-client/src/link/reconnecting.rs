//! A link that outlives its connection: when that is lost, another takes its place.
//!
//! Making the other one is not the business of this file, but of `connect/reconnect.rs`. Here requests find the
//! connection that is there, or wait for the next one. What was sent when a connection was lost fails; what was not is
//! sent over the next.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;
use toolwire_protocol::{RequestId, Version, probe::ProbeLink};
use toolwire_transport::{BoxFuture, internal::AbortOnDrop};

use super::{Exchange, ExchangeError, ExchangeEvent, ExchangeFeed, Link, LinkError, LinkErrorKind, Outgoing};
use crate::{error::Delivery, host::Host, waiting::WaitingBytes};

/// A link whose connection is replaced when it is lost, by a task that ends with it.
#[derive(Debug)]
pub(crate) struct ReconnectingLink {
    family: ProbeLink,
    line: Arc<Line>,
    host: Arc<Host>,
    _task: AbortOnDrop<()>,
}

/// The connection that is there, if one is. Everybody who needs to know shares it.
#[derive(Debug)]
pub(crate) struct Line {
    current: watch::Sender<Current>,
}

#[derive(Clone, Debug)]
struct Current {
    /// Counts the connections.
    number: u64,
    status: Status,
    /// Why the last connection was lost.
    why: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
enum Status {
    /// A connection is being made.
    Starting,
    Up(Arc<dyn Link>),
    Down,
    /// There will never be another.
    Closed,
}

/// What there was when a line was closed.
#[derive(Debug)]
pub(crate) enum Ending {
    /// It was closed before.
    Before,
    /// There was no connection.
    Lost,
    /// There was this one, which ends by itself.
    Last(Arc<dyn Link>),
}

impl Line {
    pub(crate) fn new() -> Self {
        let current = Current { number: 0, status: Status::Starting, why: None };
        Self { current: watch::Sender::new(current) }
    }

    /// A connection is about to be made; this is its number.
    pub(crate) fn starting(&self) -> u64 {
        let mut number = 0;
        self.current.send_modify(|current| {
            current.number += 1;
            number = current.number;
            if !matches!(current.status, Status::Closed) {
                current.status = Status::Starting;
            }
        });
        number
    }

    /// The connection with this number can be used. Says whether it is still the one, and has not been lost meanwhile.
    pub(crate) fn up(&self, number: u64, link: Arc<dyn Link>) -> bool {
        self.current.send_if_modified(|current| {
            let this = current.number == number && matches!(current.status, Status::Starting);
            if this {
                current.status = Status::Up(link);
            }
            this
        })
    }

    /// The connection with this number is lost. Says whether another is to take its place.
    pub(crate) fn lost(&self, number: u64, why: &str) -> bool {
        let mut open = true;
        self.current.send_modify(|current| {
            open = !matches!(current.status, Status::Closed);
            if open && current.number == number {
                current.status = Status::Down;
                current.why = Some(why.into());
            }
        });
        open
    }

    /// There will be no other connection, for this reason.
    pub(crate) fn close(&self, why: &str) -> Ending {
        let mut ending = Ending::Before;
        self.current.send_modify(|current| {
            ending = match std::mem::replace(&mut current.status, Status::Closed) {
                Status::Closed => Ending::Before,
                Status::Up(link) => Ending::Last(link),
                Status::Starting | Status::Down => Ending::Lost,
            };
            if !matches!(ending, Ending::Before) {
                current.why = Some(why.into());
            }
        });
        ending
    }

    /// Waits until the connection is lost, and gives the reason; `None` when there is to be no other.
    pub(crate) async fn is_down(&self) -> Option<Arc<str>> {
        let mut current = self.current.subscribe();
        let down = |current: &Current| matches!(current.status, Status::Down | Status::Closed);
        let current = current.wait_for(down).await.ok()?;
        match current.status {
            Status::Down => Some(current.why.clone().unwrap_or_else(|| "for no known reason".into())),
            _ => None,
        }
    }

    /// Waits until there will be no other connection.
    pub(crate) async fn is_closed(&self) {
        let mut current = self.current.subscribe();
        // The sender is in `self`, so this ends with the right status only.
        let _ = current.wait_for(|current| matches!(current.status, Status::Closed)).await;
    }

    fn link(&self) -> Option<(u64, Arc<dyn Link>)> {
        let current = self.current.borrow();
        match &current.status {
            Status::Up(link) => Some((current.number, Arc::clone(link))),
            _ => None,
        }
    }

    /// Waits for a connection after the one with this number.
    async fn next(&self, after: u64) -> Result<(u64, Arc<dyn Link>), LinkError> {
        let mut current = self.current.subscribe();
        let there = |current: &Current| match current.status {
            Status::Up(_) => current.number > after,
            Status::Starting | Status::Down => false,
            Status::Closed => true,
        };
        if let Ok(current) = current.wait_for(there).await
            && let Status::Up(link) = &current.status
        {
            return Ok((current.number, Arc::clone(link)));
        }
        Err(LinkError::new(
            LinkErrorKind::Closed,
            Delivery::NotSent,
            "the connection to the server is closed",
        ))
    }
}

impl ReconnectingLink {
    /// A link over the connections of `line`, which `task` makes.
    pub(crate) fn new(family: ProbeLink, line: Arc<Line>, host: Arc<Host>, task: AbortOnDrop<()>) -> Self {
        Self { family, line, host, _task: task }
    }

    /// Ends it. Where there is a connection, its end is told by that.
    fn end(&self, why: &str) -> Option<Arc<dyn Link>> {
        match self.line.close(why) {
            Ending::Before => None,
            Ending::Lost => {
                self.host.closed(why);
                None
            }
            Ending::Last(link) => Some(link),
        }
    }
}

impl Link for ReconnectingLink {
    fn family(&self) -> ProbeLink {
        self.family
    }

    fn start(&self, request: Outgoing) -> Exchange {
        // Sent at once if it can be, because not everybody waits for what comes of it.
        let begun = self.line.link().map(|(number, link)| (number, link.start(request.clone())));
        let (line, waiting_bytes) = (Arc::clone(&self.line), Arc::clone(&self.host.waiting_bytes));
        Exchange::driven(|feed| Box::pin(drive(line, waiting_bytes, request, begun, feed)))
    }

    fn abandon(&self, id: &RequestId, tell: bool) {
        if let Some((_, link)) = self.line.link() {
            link.abandon(id, tell);
        }
    }

    fn notify(&self, message: Bytes) -> BoxFuture<'static, Result<(), LinkError>> {
        if let Some((_, link)) = self.line.link() {
            return link.notify(message);
        }
        let text = "there is no connection to the server at present";
        let error = LinkError::new(LinkErrorKind::Closed, Delivery::NotSent, text);
        Box::pin(std::future::ready(Err(error)))
    }

    fn has_room(&self) -> bool {
        match &self.line.current.borrow().status {
            Status::Up(link) => link.has_room(),
            Status::Starting | Status::Down => false,
            Status::Closed => true,
        }
    }

    fn room(&self) -> BoxFuture<'static, ()> {
        let line = Arc::clone(&self.line);
        Box::pin(async move {
            if let Ok((_, link)) = line.next(0).await {
                link.room().await;
            }
        })
    }

    fn negotiated(&self, _version: Version) {
        // Each connection is told when it is made.
    }

    fn why_closed(&self) -> BoxFuture<'static, Option<String>> {
        let current = self.line.current.borrow();
        // Of a connection that is there nothing is known yet, and what fails says itself why.
        let why = if matches!(current.status, Status::Up(_)) { None } else { current.why.as_deref() };
        Box::pin(std::future::ready(why.map(str::to_owned)))
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        match self.end("this client closed the connection") {
            Some(last) => last.close(),
            None => Box::pin(std::future::ready(())),
        }
    }
}

impl Drop for ReconnectingLink {
    fn drop(&mut self) {
        // The connection knows of the line, so this also undoes the knot.
        self.end("the client was dropped");
    }
}

/// Sees a request through, over as many connections as it takes to send it once.
async fn drive(
    line: Arc<Line>,
    waiting_bytes: Arc<WaitingBytes>,
    request: Outgoing,
    mut begun: Option<(u64, Exchange)>,
    feed: ExchangeFeed,
) {
    let mut after = 0;
    loop {
        let (number, mut exchange) = match begun.take() {
            Some(begun) => begun,
            None => match line.next(after).await {
                Ok((number, connection)) => (number, connection.start(request.clone())),
                Err(error) => return feed.finish(Err(error.into())),
            },
        };
        exchange.account(Arc::clone(&waiting_bytes));
        loop {
            match exchange.next().await {
                ExchangeEvent::Progress(notification) => feed.progress(notification),
                ExchangeEvent::Finished(Err(ExchangeError::Link(error))) if was_too_late(&error) => break,
                ExchangeEvent::Finished(reply) => return feed.finish(reply),
            }
        }
        after = number;
    }
}

/// Whether a request came to a connection that was over already.
fn was_too_late(error: &LinkError) -> bool {
    error.kind == LinkErrorKind::Closed && error.delivery == Delivery::NotSent
}
