//! HTTP+SSE, the transport of 2024-11-05: one stream for everything that comes, and an address to post to.
//!
//! To the client it is a connection like any other that carries messages both ways.

use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};
use toolwire_client::link::{LinkError, LinkErrorKind};
use toolwire_transport::{BoxFuture, Diagnostics, Duplex, ReceiveError, Sink, Source};

use super::{
    authorize::Purpose,
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
    stream: Box<EventStream>,
    end: Arc<End>,
}

/// The sending half.
#[derive(Debug)]
pub(super) struct PostSink {
    endpoint: Endpoint,
    end: Arc<End>,
}

/// Why the connection is over: both halves end when one of them fails.
#[derive(Debug, Default)]
struct End {
    why: OnceLock<String>,
    told: Notify,
}

/// Opens the stream and waits until the server says where to post to.
pub(super) async fn open(endpoint: &Endpoint) -> io::Result<Sse2024> {
    let stream = endpoint
        .listen(Purpose::Request, HeaderMap::new)
        .await
        .map_err(|error| not_there(endpoint, &error))?;
    let deadline = Instant::now() + endpoint.settings().send_timeout.min(LONGEST);
    let (stream, address) = timeout_at(deadline, address(stream)).await.map_err(|_| {
        io::Error::new(io::ErrorKind::TimedOut, format!("{} does not say where to post to", endpoint.shown()))
    })??;
    let Some(url) = within_origin(endpoint.url(), &address) else {
        let text = format!("{} wants messages to be posted to another origin", endpoint.shown());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    };
    let Some(posting) = endpoint.at(url) else {
        let text = format!("{} names an address that cannot be posted to", endpoint.shown());
        return Err(io::Error::other(text));
    };
    let end = Arc::<End>::default();
    let sink = PostSink { endpoint: posting, end: Arc::clone(&end) };
    Ok(Sse2024 { source: EventSource { stream, end }, sink })
}

/// A clock can be asked for this, whatever was configured.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

async fn address(mut stream: Box<EventStream>) -> io::Result<(Box<EventStream>, String)> {
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
    // Whoever asks for credentials is there.
    match error.kind {
        LinkErrorKind::Status(401 | 403, _) => io::Error::other(error.clone()),
        _ => io::Error::other(text),
    }
}

impl Duplex for Sse2024 {
    type Source = EventSource;
    type Sink = PostSink;

    fn split(self) -> (EventSource, PostSink) {
        (self.source, self.sink)
    }

    fn diagnostics(&self) -> Option<Arc<dyn Diagnostics>> {
        Some(Arc::clone(&self.sink.end) as Arc<dyn Diagnostics>)
    }
}

impl End {
    fn fail(&self, why: String) -> io::Error {
        let error = io::Error::other(why.clone());
        // Only the first reason counts.
        let _ = self.why.set(why);
        self.told.notify_one();
        error
    }
}

impl Diagnostics for End {
    fn why_closed(&self) -> BoxFuture<'static, Option<String>> {
        Box::pin(std::future::ready(self.why.get().cloned()))
    }

    fn shutdown(&self) -> BoxFuture<'static, ()> {
        // The stream ends with the half that reads it.
        Box::pin(std::future::ready(()))
    }
}

impl Source for EventSource {
    async fn receive(&mut self) -> Result<Option<Bytes>, ReceiveError> {
        loop {
            let event = tokio::select! {
                biased;
                // Without what could not be posted the conversation cannot go on.
                () = self.end.told.notified() => return Err(io::Error::other("a message was not taken").into()),
                event = self.stream.next() => event,
            };
            match event {
                Ok(Some(event)) if event.event.as_deref().is_none_or(|kind| kind == "message") => {
                    return Ok(Some(event.data.into()));
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(None),
                Err(StreamFault::TooLarge(error)) => {
                    return Err(ReceiveError::too_long(error.limit));
                }
                Err(error @ StreamFault::Broken(_)) => return Err(self.end.fail(error.to_string()).into()),
            }
        }
    }
}

impl Sink for PostSink {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        let sent = self.endpoint.tell(message, HeaderMap::new).await;
        sent.map_err(|error| self.end.fail(error.to_string()))
    }

    async fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
