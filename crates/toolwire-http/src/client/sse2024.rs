//! HTTP+SSE, the transport of 2024-11-05: one stream for everything that comes, and an address to post to.
//!
//! To the client it is a connection like any other that carries messages both ways.

use std::{io, time::Duration};

use bytes::Bytes;
use http::HeaderMap;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};
use toolwire_client::link::{LinkError, LinkErrorKind};
use toolwire_transport::{Duplex, ReceiveError, Sink, Source};

use super::{
    endpoint::{Endpoint, within_origin},
    events::{EventStream, StreamFault},
};

/// How many events may come before the one that says where to post to.
const MAX_PRELUDE: usize = 16;

/// A connection to a server of the first revision.
#[derive(Debug)]
pub(super) struct Sse2024 {
    source: EventSource,
    sink: PostSink,
}

/// The receiving half.
#[derive(Debug)]
pub(super) struct EventSource {
    stream: EventStream,
    /// Tells that a message could not be posted, after which the conversation makes no sense.
    failed: mpsc::Receiver<LinkError>,
}

/// The sending half.
#[derive(Debug)]
pub(super) struct PostSink {
    endpoint: Endpoint,
    failed: mpsc::Sender<LinkError>,
}

/// Opens the stream and waits until the server says where to post to.
pub(super) async fn open(endpoint: &Endpoint) -> io::Result<Sse2024> {
    let stream = endpoint.listen(HeaderMap::new()).await.map_err(|error| not_there(endpoint, &error))?;
    let deadline = Instant::now() + endpoint.settings().send_timeout.min(LONGEST);
    let (stream, address) = timeout_at(deadline, address(stream)).await.map_err(|_| {
        io::Error::new(io::ErrorKind::TimedOut, format!("{} does not say where to post to", endpoint.shown()))
    })??;
    let Some(url) = within_origin(endpoint.url(), &address) else {
        let text = format!("{} wants messages to be posted to another origin", endpoint.shown());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    };
    let (failing, failed) = mpsc::channel(1);
    let sink = PostSink { endpoint: endpoint.at(url), failed: failing };
    Ok(Sse2024 { source: EventSource { stream, failed }, sink })
}

/// A clock can be asked for this, whatever was configured.
const LONGEST: Duration = Duration::from_hours(24);

async fn address(mut stream: EventStream) -> io::Result<(EventStream, String)> {
    for _ in 0..MAX_PRELUDE {
        match stream.next().await {
            Ok(Some(event)) if event.event.as_deref() == Some("endpoint") => return Ok((stream, event.data)),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => return Err(io::Error::other(error.to_string())),
        }
    }
    Err(io::Error::other("the server's event stream does not begin with an endpoint"))
}

fn not_there(endpoint: &Endpoint, error: &LinkError) -> io::Error {
    let url = endpoint.shown();
    let text = match error.kind {
        LinkErrorKind::Status(..) | LinkErrorKind::Malformed => format!(
            "{url} speaks none of the transports of the protocol: it takes no POST, and to GET it says that {error}; \
             is the path right? Many servers have /mcp or /sse"
        ),
        _ => error.to_string(),
    };
    io::Error::other(text)
}

impl Duplex for Sse2024 {
    type Source = EventSource;
    type Sink = PostSink;

    fn split(self) -> (EventSource, PostSink) {
        (self.source, self.sink)
    }
}

impl Source for EventSource {
    async fn receive(&mut self) -> Result<Option<Bytes>, ReceiveError> {
        loop {
            let event = tokio::select! {
                biased;
                Some(error) = self.failed.recv() => return Err(io::Error::other(error.to_string()).into()),
                event = self.stream.next() => event,
            };
            match event {
                Ok(Some(event)) if event.event.as_deref().is_none_or(|kind| kind == "message") => {
                    return Ok(Some(event.data.into()));
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(None),
                Err(StreamFault::TooLarge(error)) => {
                    return Err(ReceiveError::TooLong { limit: error.limit });
                }
                Err(error @ StreamFault::Broken(_)) => return Err(io::Error::other(error.to_string()).into()),
            }
        }
    }
}

impl Sink for PostSink {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        self.endpoint.tell(message, HeaderMap::new()).await.map_err(|error| {
            let text = error.to_string();
            // If it cannot be told, it has been told before or nobody listens.
            let _ = self.failed.try_send(error);
            io::Error::other(text)
        })
    }

    async fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
