//! What clients over HTTP have in common: connections that misbehave, and single exchanges over them.

use std::{future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
    rt::Executor,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use tokio::time::{sleep, timeout};
use toolwire_protocol::framing::sse::SseDecoder;
use toolwire_testkit::simulation::{Faults, Plan, Random, byte_link};

use crate::world::World;

/// By then every answer is there that will ever be.
pub(crate) const PATIENCE: Duration = Duration::from_secs(150);

/// Larger than any event.
const EVENT_BYTES: usize = 1024 * 1024;

/// How many frames of a response are read slowly, if any.
const SLOW_FRAMES: usize = 10;

/// A client.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) world: Arc<World>,
    pub(crate) name: String,
    two: bool,
}

/// A connection.
#[derive(Clone)]
pub(crate) struct Connection {
    sender: Sender,
    /// Whether everything arrives in the end.
    pub(crate) reliable: bool,
}

#[derive(Clone)]
enum Sender {
    One(Arc<tokio::sync::Mutex<http1::SendRequest<Full<Bytes>>>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// How an exchange has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With the whole response.
    Whole(u16),
    /// The connection broke first.
    Broken,
    /// It took too long, and the client went away.
    GaveUp,
}

impl Peer {
    pub(crate) fn new(world: Arc<World>, name: String, two: bool) -> Self {
        Self { world, name, two }
    }

    pub(crate) fn note(&self, what: &str) {
        self.world.note(&self.name, what);
    }

    pub(crate) fn fault(&self, what: &str) {
        self.world.fault(&self.name, what);
    }

    /// Whether one connection carries several requests at once.
    pub(crate) fn shares_connections(&self) -> bool {
        self.two
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self, random: &mut Random) -> Option<Connection> {
        let mut plan = Plan::random(random);
        if self.two {
            // HTTP/2 compresses the date in its headers, so how many pieces it takes would depend on the day.
            plan.back.piece_bytes = Faults::calm().piece_bytes;
        }
        let mut reliable = plan.is_reliable();
        self.note(&format!("connects: {plan:?}"));
        // A link that never carries anything again has to be noticed by the server; one that works is kept.
        let dead = !reliable && plan.cut.is_none();
        let is_prompt = plan.is_prompt(Duration::from_millis(3));
        let (ours, theirs, link) = byte_link(random, plan);
        let service = self.world.service.clone();
        let serving =
            self.world.serve(&self.name, true, async move { service.serve_connection(theirs).await });
        if random.percent(12) {
            reliable = false;
            let (world, name) = (Arc::clone(&self.world), self.name.clone());
            link.at_poll(random.between(1, 100), move || {
                world.note(&name, "is not served any more");
                serving.abort();
            });
        }
        // Room for nothing, or for next to nothing.
        let window =
            (self.two && random.percent(30)).then(|| u32::try_from(random.below(3) * 20).unwrap_or_default());
        // Each of those waits for the network, so a slow one takes for ever.
        reliable &= window.is_none_or(|window| window > 0 && is_prompt);
        let sender =
            timeout(PATIENCE, self.handshake(window, TokioIo::new(ours), dead)).await.ok().flatten()?;
        Some(Connection { sender, reliable })
    }

    async fn handshake<S>(&self, window: Option<u32>, stream: S, dead: bool) -> Option<Sender>
    where
        S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        if !self.two {
            let (sender, connection) = http1::handshake(stream).await.ok()?;
            self.drive(dead, connection);
            return Some(Sender::One(Arc::new(tokio::sync::Mutex::new(sender))));
        }
        let mut builder = http2::Builder::new(Tasks(Arc::clone(&self.world)));
        builder.timer(TokioTimer::new());
        builder.initial_stream_window_size(window);
        let (sender, connection) = builder.handshake(stream).await.ok()?;
        self.drive(dead, connection);
        Some(Sender::Two(sender))
    }

    fn drive<T>(&self, dead: bool, connection: impl Future<Output = T> + Send + 'static) {
        let connection = Box::pin(connection);
        if dead {
            // It is never closed by its client.
            self.world.keep_driving(connection);
        } else {
            self.world.spawn(async move { drop(connection.await) });
        }
    }

    /// Sends a request and hands every message of its response to `take`, with the id of its event.
    pub(crate) async fn exchange(
        &self,
        connection: &Connection,
        request: Request<Full<Bytes>>,
        random: &mut Random,
        mut take: impl FnMut(Option<&str>, Value),
        patience: Duration,
    ) -> (End, Option<http::HeaderMap>) {
        let mut headers = None;
        let exchange = async {
            let Some(response) = connection.sender.clone().send(request).await else { return End::Broken };
            self.note(&format!("< {}", response.status()));
            headers = Some(response.headers().clone());
            self.take_body(response, random, &mut take).await
        };
        let end = timeout(patience, exchange).await.unwrap_or(End::GaveUp);
        self.note(&format!("{end:?}"));
        (end, headers)
    }

    async fn take_body(
        &self,
        response: Response<Incoming>,
        random: &mut Random,
        take: &mut impl FnMut(Option<&str>, Value),
    ) -> End {
        let status = response.status().as_u16();
        let is_stream =
            response.headers().get("content-type").is_some_and(|media| media == "text/event-stream");
        let slow = random.percent(20).then(|| Duration::from_millis(random.between(1, 2500)));
        let mut frames = 0;
        let (mut body, mut whole, mut decoder) =
            (response.into_body(), Vec::new(), SseDecoder::new(EVENT_BYTES));
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return End::Broken };
            let Ok(mut data) = frame.into_data() else { continue };
            frames += 1;
            if let Some(slow) = slow.filter(|_| frames <= SLOW_FRAMES) {
                sleep(slow).await;
            }
            if !is_stream {
                whole.extend_from_slice(&data);
                continue;
            }
            while let Ok(Some(event)) = decoder.decode(&mut data) {
                // An event without data only says where to resume.
                let message = if event.data.is_empty() {
                    Some(Value::Null)
                } else {
                    serde_json::from_str(&event.data).ok()
                };
                match message {
                    Some(message) => take(event.id.as_deref(), message),
                    None => self.fault(&format!("an event that is no JSON: {:?}", event.data)),
                }
            }
        }
        if !is_stream && !whole.is_empty() {
            match serde_json::from_slice(&whole) {
                Ok(message) => take(None, message),
                Err(_) => self.fault("a body that is no JSON"),
            }
        }
        End::Whole(status)
    }
}

impl Sender {
    async fn send(self, request: Request<Full<Bytes>>) -> Option<Response<Incoming>> {
        match self {
            Self::One(sender) => {
                let mut sender = sender.lock().await;
                sender.ready().await.ok()?;
                sender.send_request(request).await.ok()
            }
            Self::Two(mut sender) => {
                sender.ready().await.ok()?;
                sender.send_request(request).await.ok()
            }
        }
    }
}

/// The tasks of a client's HTTP/2 connections.
#[derive(Clone)]
struct Tasks(Arc<World>);

impl<F> Executor<F> for Tasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}
