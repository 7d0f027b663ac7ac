//! A link over one connection that carries all messages both ways.
//!
//! One task reads and one writes. A call costs an entry in a map: no task and no channel of its own. Calls that are
//! made at the same time are written together.

mod shared;
mod tasks;

use std::sync::{Arc, Mutex, atomic::Ordering};

use bytes::Bytes;
use tokio::{
    task::{AbortHandle, JoinHandle},
    time::timeout,
};
use toolwire_protocol::{
    Feature, Method, RequestId, Version, envelope::write_notification, probe::ProbeLink,
    wire::CancelledNotificationParams,
};
use toolwire_transport::{BoxFuture, Diagnostics, Duplex, write_loop};

use super::{Exchange, Inbox, Link, LinkError, LinkErrorKind, Outgoing};
use crate::{lock::lock, settings::CLOSING_PATIENCE};
use shared::{Core, not_sent};
use tasks::{GatheringSink, read_loop};

/// A link over any [`Duplex`].
#[derive(Debug)]
pub struct DuplexLink {
    core: Arc<Core>,
    reader: AbortHandle,
    writer: Mutex<Option<JoinHandle<()>>>,
    diagnostics: Option<Arc<dyn Diagnostics>>,
    inbox: Inbox,
}

impl DuplexLink {
    /// Starts reading and writing.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn new(duplex: impl Duplex, inbox: Inbox) -> Self {
        let diagnostics = duplex.diagnostics();
        let (source, sink) = duplex.split();
        let core = Arc::new(Core::new(&inbox));
        let writing = write_loop(core.queue.clone(), GatheringSink::new(sink, Arc::clone(&core)));
        let writer = tokio::spawn(async move {
            if let Err(error) = writing.await {
                tracing::debug!(%error, "the connection broke while sending");
            }
        });
        let reading = read_loop(source, Arc::clone(&core), inbox.clone(), diagnostics.clone());
        let reader = tokio::spawn(reading).abort_handle();
        Self { core, reader, writer: Mutex::new(Some(writer)), diagnostics, inbox }
    }
}

impl Link for DuplexLink {
    fn family(&self) -> ProbeLink {
        ProbeLink::Duplex
    }

    fn start(&self, request: Outgoing) -> Exchange {
        let (feed, exchange) = Exchange::channel();
        if let Err(error) = self.core.register(&request, feed) {
            return Exchange::failed(error);
        }
        if self.core.queue.post(request.message).is_err()
            && let Some(feed) = self.core.take(&request.id)
        {
            feed.finish(Err(not_sent("the connection to the server is closed").into()));
        }
        exchange
    }

    fn abandon(&self, id: &RequestId, tell: bool) {
        let was_open = self.core.take(id).is_some();
        if was_open && tell {
            let params = CancelledNotificationParams::new().request_id(id.clone());
            if let Ok(message) = write_notification(&Method::Cancelled.into(), &params) {
                // Without a connection there is nothing to cancel.
                if self.core.queue.post(message.clone()).is_ok() {
                    self.inbox.sent(&message);
                }
            }
        }
    }

    fn notify(&self, message: Bytes) -> BoxFuture<'static, Result<(), LinkError>> {
        let posted =
            self.core.queue.post(message).map_err(|_| not_sent("the connection to the server is closed"));
        Box::pin(std::future::ready(posted))
    }

    fn has_room(&self) -> bool {
        self.core.queue.queued_bytes() < self.core.outgoing_bytes
    }

    fn room(&self) -> BoxFuture<'static, ()> {
        let queue = self.core.queue.clone();
        Box::pin(async move { queue.room().await })
    }

    fn negotiated(&self, version: Version) {
        self.core.batches.store(version.has(Feature::Batches), Ordering::Relaxed);
    }

    fn why_closed(&self) -> BoxFuture<'static, Option<String>> {
        let mut ended = self.core.ended.subscribe();
        Box::pin(async move {
            let why = timeout(CLOSING_PATIENCE, ended.wait_for(Option::is_some)).await.ok()?.ok()?;
            why.as_deref().map(str::to_owned)
        })
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.core.end("this client closed the connection", &LinkErrorKind::Cancelled, &self.inbox);
        let writer = lock(&self.writer).take();
        let diagnostics = self.diagnostics.clone();
        let reader = self.reader.clone();
        Box::pin(async move {
            if let Some(writer) = writer {
                // A server that no longer reads must not keep us from going.
                let _ = timeout(CLOSING_PATIENCE, writer).await;
            }
            if let Some(diagnostics) = diagnostics {
                diagnostics.shutdown().await;
            }
            reader.abort();
        })
    }
}

impl Drop for DuplexLink {
    fn drop(&mut self) {
        // The writer ends by itself after it has written what is waiting and closed its half.
        self.core.end("the client was dropped", &LinkErrorKind::Cancelled, &self.inbox);
        self.reader.abort();
    }
}
