//! The two tasks of a connection: one that reads and one that writes.

use std::{io, sync::Arc};

use bytes::Bytes;
use tokio::task::yield_now;
use toolwire_transport::{Diagnostics, Sink, Source};

use super::{
    super::{Inbox, LinkErrorKind},
    shared::Core,
};
use crate::settings::MAX_INVALID_MESSAGES;

/// Waits for those who are about to send something, so that it is written in one go with what is there already.
///
/// The writer is woken by the first message and would be the next to run: one system call for each message, although
/// many answers have come at once, and whoever got one has the next question at the ready.
pub(super) struct GatheringSink<S> {
    sink: S,
    core: Arc<Core>,
    /// Whether something was taken that is not written yet.
    begun: bool,
}

impl<S> GatheringSink<S> {
    pub(super) const fn new(sink: S, core: Arc<Core>) -> Self {
        Self { sink, core, begun: false }
    }
}

impl<S: Sink> Sink for GatheringSink<S> {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        // Whoever calls alone would wait for nobody.
        if !std::mem::replace(&mut self.begun, true) && self.core.has_several() {
            yield_now().await;
        }
        self.sink.send(message).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.begun = false;
        self.sink.flush().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.sink.close().await
    }
}

/// Reads until the connection ends, and says why it did.
pub(super) async fn read_loop<S: Source>(
    mut source: S,
    core: Arc<Core>,
    inbox: Inbox,
    diagnostics: Option<Arc<dyn Diagnostics>>,
) {
    let mut invalid = 0;
    let cause = loop {
        inbox.room().await;
        let good = match source.receive().await {
            Ok(Some(bytes)) => core.accept(&bytes, &inbox),
            Ok(None) => break None,
            Err(error) if error.is_fatal() => break Some(error.to_string()),
            Err(error) => {
                tracing::warn!(%error, "a message of the server was lost");
                inbox.too_large(format_args!("a message of the server was lost: {error}"));
                core.lost(&error, &inbox);
                false
            }
        };
        invalid = if good { 0 } else { invalid + 1 };
        if invalid >= MAX_INVALID_MESSAGES {
            break Some(format!("the server sent {invalid} things in a row that are not messages"));
        }
        // A server that never pauses must not keep the other tasks of this thread waiting.
        tokio::task::coop::consume_budget().await;
    };
    let told = match &diagnostics {
        // It was us who gave up, so the other side has nothing to tell.
        Some(diagnostics) if invalid < MAX_INVALID_MESSAGES => diagnostics.why_closed().await,
        _ => None,
    };
    let why = match (cause, told) {
        (Some(cause), Some(told)) => format!("{cause}; {told}"),
        (Some(why), None) | (None, Some(why)) => why,
        (None, None) => "the server closed the connection".to_owned(),
    };
    core.end(&why, &LinkErrorKind::Closed, &inbox);
}
