//! A client that speaks one revision by hand, message by message.
//!
//! It knows the handshake and what every request must carry, and nothing else: what comes back is plain JSON.
//! Whatever goes wrong is a panic that shows what was said so far, because it is used in tests.

mod builder;
mod reply;

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::{task::yield_now, time::timeout};
use toolwire_protocol::{
    Version,
    wire::meta::{CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION},
};
use toolwire_transport::{Sink, Source};

pub use builder::WireBuilder;
pub use reply::Reply;

use crate::{
    AnyDuplex, SpecSchemas, Target, Transcript,
    any::{AnySink, AnySource, Serving},
    transcript::Direction,
};

/// How long a [`Wire`] waits for a message before the test has failed.
pub const DEFAULT_PATIENCE: Duration = Duration::from_secs(60);

/// How many messages may wait unread in a [`Wire`].
pub const MAX_UNREAD: usize = 10_000;

/// How often other tasks get a turn before a server is believed to have settled.
const TURNS: usize = 64;

/// A connection to a server that is spoken to by hand.
///
/// ```
/// use serde_json::json;
/// use toolwire_protocol::Version;
/// use toolwire_server::{Server, tool};
/// use toolwire_testkit::Wire;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = Server::builder("demo", "1.0").tool(tool("one", || async { "1" })).build().unwrap();
/// let mut wire = Wire::connect(&server, Version::V2025_06_18).await;
///
/// let reply = wire.request("tools/call", json!({ "name": "two" })).await;
/// assert_eq!(reply.code(), -32602);
///
/// wire.send_raw("this is not JSON").await;
/// assert_eq!(wire.next().await["error"]["code"], -32700);
/// # }
/// ```
#[derive(Debug)]
pub struct Wire {
    version: Version,
    identity: Identity,
    patience: Duration,
    source: AnySource,
    sink: AnySink,
    serving: Option<Serving>,
    last_id: i64,
    /// What was asked and not yet answered, by the JSON text of its id.
    asked: HashMap<String, Asked>,
    unread: VecDeque<Value>,
    transcript: Transcript,
    schemas: Option<&'static SpecSchemas>,
}

/// Who the client says it is.
#[derive(Clone, Debug)]
struct Identity {
    info: Value,
    capabilities: Value,
    log_level: Option<String>,
}

#[derive(Debug)]
struct Asked {
    method: String,
    version: Version,
}

impl Wire {
    /// Connects to a server over its usual link, and shakes hands where the revision wants it.
    ///
    /// # Panics
    /// When the server cannot be reached or refuses the handshake.
    pub async fn connect(target: &impl Target, version: Version) -> Self {
        Self::builder(version).connect(target).await
    }

    /// Describes a client that is not the usual one.
    pub fn builder(version: Version) -> WireBuilder {
        WireBuilder::new(version)
    }

    fn new(duplex: AnyDuplex, version: Version, identity: Identity, patience: Duration) -> Self {
        let (source, sink, serving) = duplex.into_parts();
        Self {
            version,
            identity,
            patience,
            source,
            sink,
            serving,
            last_id: 0,
            asked: HashMap::new(),
            unread: VecDeque::new(),
            transcript: Transcript::default(),
            schemas: SpecSchemas::from_env(),
        }
    }

    /// The revision that is spoken.
    pub fn version(&self) -> Version {
        self.version
    }

    /// What was said so far.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Sends a request and waits for its answer. What comes before the answer can be read afterwards, with
    /// [`next`](Self::next). In the modern era `params._meta` is filled in, as far as it is not given.
    pub async fn request(&mut self, method: &str, params: Value) -> Reply {
        let id = self.start(method, params).await;
        self.reply(id).await
    }

    /// Sends a request and gives its id, to wait for the answer later with [`reply`](Self::reply).
    pub async fn start(&mut self, method: &str, params: Value) -> i64 {
        self.last_id += 1;
        let id = self.last_id;
        self.start_as(json!(id), method, params).await;
        id
    }

    /// Sends a request with an id of your own.
    pub async fn start_as(&mut self, id: Value, method: &str, params: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        let params = if self.version.is_modern() { self.enveloped(params) } else { params };
        if !params.is_null() {
            message["params"] = params;
        }
        self.send(&message).await;
    }

    /// Waits for the answer to a request, setting aside whatever else comes.
    pub async fn reply(&mut self, id: impl Into<Value>) -> Reply {
        let id = id.into();
        let answers = |message: &Value| message.get("method").is_none() && message["id"] == id;
        if let Some(message) = self.unread.iter().position(answers).and_then(|at| self.unread.remove(at)) {
            return Reply::of(message);
        }
        loop {
            let message = self.receive(&format!("the answer to request {id}")).await;
            if answers(&message) {
                return Reply::of(message);
            }
            if self.unread.len() >= MAX_UNREAD {
                self.fail("too many messages were left unread");
            }
            self.unread.push_back(message);
        }
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        if !params.is_null() {
            message["params"] = params;
        }
        self.send(&message).await;
    }

    /// Cancels a request.
    pub async fn cancel(&mut self, id: impl Into<Value>) {
        self.notify("notifications/cancelled", json!({ "requestId": id.into() })).await;
    }

    /// Sends a text as it is, whether or not it is a message.
    pub async fn send_raw(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.note_requests(&text);
        self.transcript.push(Direction::ToServer, text.clone());
        let sent = timeout(self.patience, async {
            self.sink.send(Bytes::from(text)).await?;
            self.sink.flush().await
        });
        match sent.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.fail(&format!("the message could not be sent: {error}")),
            Err(_) => self.fail("the server does not read: a message could not be sent"),
        }
    }

    /// The next message from the server that was not read yet.
    pub async fn next(&mut self) -> Value {
        match self.unread.pop_front() {
            Some(message) => message,
            None => self.receive("a message").await,
        }
    }

    /// The parameters of the next message, which must be this notification.
    pub async fn next_notification(&mut self, method: &str) -> Value {
        let mut message = self.next().await;
        if message["method"] != method || message.get("id").is_some() {
            self.fail(&format!("expected the notification {method}, found {message}"));
        }
        message["params"].take()
    }

    /// Waits until the server has taken in everything that was sent so far.
    ///
    /// No clock is involved: other tasks get their turns, and the server must answer one more request, which
    /// it does by itself and at once: `ping`, which the modern era does not have and refuses.
    pub async fn settle(&mut self) {
        for _ in 0..TURNS {
            yield_now().await;
        }
        let _ = self.request("ping", Value::Null).await;
    }

    /// Waits until the server has [settled](Self::settle), and fails if it says anything meanwhile.
    pub async fn expect_silence(&mut self) {
        self.settle().await;
        if let Some(message) = self.unread.front() {
            self.fail(&format!("expected silence, found {message}"));
        }
    }

    /// Closes our side and gives everything the server still said until it ended.
    ///
    /// # Panics
    /// When the server does not end, or ends with an error.
    pub async fn close(mut self) -> Vec<Value> {
        if timeout(self.patience, self.sink.close()).await.is_err() {
            self.fail("the server does not read: our side could not be closed");
        }
        let mut said = Vec::from(std::mem::take(&mut self.unread));
        while let Some(message) = self.try_receive("the end of the connection").await {
            said.push(message);
        }
        if let Some(serving) = self.serving.take() {
            match timeout(self.patience, serving).await {
                Ok(Ok(Ok(()))) => {}
                Ok(Ok(Err(error))) => self.fail(&format!("the server ended with an error: {error}")),
                Ok(Err(error)) => self.fail(&format!("the server's task failed: {error}")),
                Err(_) => self.fail("the server did not end after the connection was closed"),
            }
        }
        said
    }

    fn enveloped(&self, params: Value) -> Value {
        let mut params = match params {
            Value::Null => Map::new(),
            Value::Object(params) => params,
            other => return other,
        };
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        if let Value::Object(meta) = meta {
            let mut fill = |key: &str, value: Value| {
                meta.entry(key).or_insert(value);
            };
            fill(PROTOCOL_VERSION, json!(self.version.as_str()));
            fill(CLIENT_CAPABILITIES, self.identity.capabilities.clone());
            fill(CLIENT_INFO, self.identity.info.clone());
            if let Some(level) = &self.identity.log_level {
                fill(LOG_LEVEL, json!(level));
            }
        }
        Value::Object(params)
    }

    async fn send(&mut self, message: &Value) {
        self.send_raw(message.to_string()).await;
    }

    async fn receive(&mut self, what: &str) -> Value {
        match self.try_receive(what).await {
            Some(message) => message,
            None => self.fail(&format!("the server closed the connection; expected {what}")),
        }
    }

    async fn try_receive(&mut self, what: &str) -> Option<Value> {
        let bytes = match timeout(self.patience, self.source.receive()).await {
            Ok(Ok(message)) => message?,
            Ok(Err(error)) => self.fail(&format!("expected {what}: {error}")),
            Err(_) => self.fail(&format!("nothing came within {:?}; expected {what}", self.patience)),
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        self.transcript.push(Direction::FromServer, text.clone());
        let message: Value = match serde_json::from_str(&text) {
            Ok(message) => message,
            Err(error) => self.fail(&format!("the server sent what is not JSON: {error}")),
        };
        match &message {
            Value::Array(batch) => batch.iter().for_each(|message| self.check(message)),
            one => self.check(one),
        }
        Some(message)
    }

    /// Remembers what is asked, so that the answers can be checked.
    fn note_requests(&mut self, text: &str) {
        let messages = match serde_json::from_str(text) {
            Ok(Value::Array(batch)) => batch,
            Ok(one) => vec![one],
            Err(_) => return,
        };
        for message in messages {
            if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) {
                let named = message["params"]["_meta"][PROTOCOL_VERSION].as_str();
                let version = named.and_then(|named| named.parse().ok()).unwrap_or(self.version);
                self.asked.insert(id.to_string(), Asked { method: method.to_owned(), version });
            }
        }
    }

    fn check(&mut self, message: &Value) {
        let is_response = message.get("method").is_none();
        let id = message.get("id").filter(|_| is_response).map(ToString::to_string);
        let asked = id.and_then(|id| self.asked.remove(&id));
        let Some(schemas) = self.schemas else { return };
        let version = asked.as_ref().map_or_else(|| self.version_of(message), |asked| asked.version);
        let method = asked.as_ref().map(|asked| asked.method.as_str());
        if let Err(violation) = schemas.check(version, method, message) {
            self.fail(&format!("the server sent what {version} does not allow: {violation}"));
        }
    }

    /// A subscription makes a notification a modern one, whatever else is spoken on the connection.
    fn version_of(&self, message: &Value) -> Version {
        let subscription = &message["params"]["_meta"][toolwire_protocol::wire::meta::SUBSCRIPTION_ID];
        if subscription.is_null() { self.version } else { Version::LATEST }
    }

    fn fail(&self, why: &str) -> ! {
        panic!("{why}\nwhat was said so far ({}):\n{}", self.version, self.transcript)
    }
}
