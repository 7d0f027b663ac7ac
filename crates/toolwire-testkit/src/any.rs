//! A transport whose type has been forgotten, so that one test body can run over all of them.

use std::{fmt, io, sync::Arc};

use bytes::Bytes;
use tokio::task::JoinHandle;
use toolwire_server::ServeError;
use toolwire_transport::{BoxFuture, Diagnostics, Duplex, LocalPeer, ReceiveError, Sink, Source};

/// Any [`Duplex`], boxed.
///
/// ```
/// use toolwire_testkit::AnyDuplex;
/// use toolwire_transport::memory;
///
/// let (one, other) = memory::pair();
/// let ends: [AnyDuplex; 2] = [AnyDuplex::new(one), AnyDuplex::new(other)];
/// ```
pub struct AnyDuplex {
    source: AnySource,
    sink: AnySink,
    diagnostics: Option<Arc<dyn Diagnostics>>,
    peer: Option<LocalPeer>,
    serving: Option<Serving>,
}

/// The task that serves the other end, where that is in this process.
pub(crate) type Serving = JoinHandle<Result<(), ServeError>>;

impl AnyDuplex {
    /// Forgets the type of `duplex`.
    pub fn new<D: Duplex>(duplex: D) -> Self {
        let (diagnostics, peer) = (duplex.diagnostics(), duplex.local_peer());
        let (source, sink) = duplex.split();
        Self {
            source: AnySource(Box::new(source)),
            sink: AnySink(Box::new(sink)),
            diagnostics,
            peer,
            serving: None,
        }
    }

    pub(crate) fn served_by(mut self, serving: Serving) -> Self {
        self.serving = Some(serving);
        self
    }

    pub(crate) fn into_parts(self) -> (AnySource, AnySink, Option<Serving>) {
        (self.source, self.sink, self.serving)
    }
}

impl fmt::Debug for AnyDuplex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyDuplex").field("diagnostics", &self.diagnostics).finish_non_exhaustive()
    }
}

impl Duplex for AnyDuplex {
    type Source = AnySource;
    type Sink = AnySink;

    fn split(self) -> (AnySource, AnySink) {
        (self.source, self.sink)
    }

    fn diagnostics(&self) -> Option<Arc<dyn Diagnostics>> {
        self.diagnostics.clone()
    }

    fn local_peer(&self) -> Option<LocalPeer> {
        self.peer
    }
}

/// The receiving half of an [`AnyDuplex`].
pub struct AnySource(Box<dyn BoxedSource>);

/// The sending half of an [`AnyDuplex`].
pub struct AnySink(Box<dyn BoxedSink>);

impl fmt::Debug for AnySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnySource")
    }
}

impl fmt::Debug for AnySink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnySink")
    }
}

impl Source for AnySource {
    async fn receive(&mut self) -> Result<Option<Bytes>, ReceiveError> {
        self.0.receive_boxed().await
    }
}

impl Sink for AnySink {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        self.0.send_boxed(message).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.0.flush_boxed().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.close_boxed().await
    }
}

trait BoxedSource: Send {
    fn receive_boxed(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, ReceiveError>>;
}

impl<S: Source> BoxedSource for S {
    fn receive_boxed(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, ReceiveError>> {
        Box::pin(self.receive())
    }
}

trait BoxedSink: Send {
    fn send_boxed(&mut self, message: Bytes) -> BoxFuture<'_, io::Result<()>>;
    fn flush_boxed(&mut self) -> BoxFuture<'_, io::Result<()>>;
    fn close_boxed(&mut self) -> BoxFuture<'_, io::Result<()>>;
}

impl<S: Sink> BoxedSink for S {
    fn send_boxed(&mut self, message: Bytes) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(self.send(message))
    }

    fn flush_boxed(&mut self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(self.flush())
    }

    fn close_boxed(&mut self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(self.close())
    }
}
