//! A server that does exactly what a test tells it to, and remembers what it was sent.

use std::{
    collections::HashMap,
    fmt::Write as _,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::{Instant, timeout},
};
use toolwire_client::{Client, ClientBuilder};
use toolwire_http::client::Http;

use crate::PATIENCE;

/// A request that came in.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) body: Value,
    pub(crate) at: Instant,
    headers: HashMap<String, String>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The method of the message, or nothing.
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// What it is: the method of its message, `answer`, or the verb.
    pub(crate) fn what(&self) -> &str {
        match self.method() {
            "" if self.body.is_object() => "answer",
            "" => &self.verb,
            method => method,
        }
    }

    /// A result for this request.
    pub(crate) fn result(&self, result: &Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result })
    }

    /// An error for this request.
    pub(crate) fn error(&self, code: i64, message: &str) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.body["id"], "error": { "code": code, "message": message } })
    }
}

/// A part of a stream.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Send(String),
    /// Sends what is there when its turn comes.
    #[cfg_attr(not(feature = "sse2024"), expect(dead_code, reason = "only for streams with many answers"))]
    Later(Arc<Mutex<String>>),
    /// Waits until the test lets it go on.
    Wait(Arc<Notify>),
    /// Ends the connection in the middle of it.
    Cut,
    /// Waits until the client is gone.
    UntilGone,
}

/// What is sent back.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    Full(String),
    Stream(Vec<Step>),
    Hang,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Full(String::new()) }
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type", "application/json; charset=utf-8".to_owned())];
        Self { status, headers, body: Body::Full(body.to_string()) }
    }

    pub(crate) fn stream(steps: impl Into<Vec<Step>>) -> Self {
        let headers = vec![("content-type", "text/event-stream".to_owned())];
        Self { status: 200, headers, body: Body::Stream(steps.into()) }
    }

    /// A stream of these messages that then ends.
    pub(crate) fn events<'a>(messages: impl IntoIterator<Item = &'a Value>) -> Self {
        Self::stream(messages.into_iter().map(|message| Step::Send(event(message))).collect::<Vec<_>>())
    }

    pub(crate) fn hang() -> Self {
        Self { status: 0, headers: Vec::new(), body: Body::Hang }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

pub(crate) fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}

type Handler = dyn Fn(&Seen) -> Reply + Send + Sync;

/// The server.
pub(crate) struct Script {
    pub(crate) address: String,
    shared: Arc<Shared>,
}

struct Shared {
    handler: Box<Handler>,
    seen: Mutex<Vec<Seen>>,
    gone: AtomicUsize,
    open: AtomicUsize,
    most_open: AtomicUsize,
    changed: Notify,
}

impl Script {
    pub(crate) async fn start(handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared {
            handler: Box::new(handler),
            seen: Mutex::default(),
            gone: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            most_open: AtomicUsize::new(0),
            changed: Notify::new(),
        });
        let accepting = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&accepting)));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn http(&self) -> Http {
        Http::new(self.url()).unwrap()
    }

    pub(crate) async fn connect(&self) -> Client {
        self.connect_with(builder()).await
    }

    pub(crate) async fn connect_with(&self, builder: ClientBuilder) -> Client {
        timeout(PATIENCE, builder.connect(self.http())).await.unwrap().unwrap()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// What came in, by the names of [`Seen::what`].
    pub(crate) fn story(&self) -> Vec<String> {
        self.seen().iter().map(|seen| seen.what().to_owned()).collect()
    }

    /// All requests of this name.
    pub(crate) fn all(&self, what: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.what() == what).collect()
    }

    pub(crate) fn most_open(&self) -> usize {
        self.shared.most_open.load(Ordering::SeqCst)
    }

    /// Waits until so many requests of this name have come in, and gives the last one.
    pub(crate) async fn wait_for(&self, what: &str, count: usize) -> Seen {
        self.until(|| self.all(what).len() >= count, || format!("{count} of {what}")).await;
        self.all(what).pop().unwrap()
    }

    /// Returns the outcome of `call`, after skipping its timeout when `count` requests of this name have arrived.
    pub(crate) async fn time_out<C: IntoFuture>(&self, what: &str, count: usize, call: C) -> C::Output {
        let mut call = pin!(call.into_future());
        tokio::select! {
            biased;
            outcome = &mut call => return outcome,
            _ = self.wait_for(what, count) => {}
        }
        // A paused clock would also skip the timeout while the socket is busy.
        tokio::time::pause();
        let outcome = timeout(PATIENCE, call).await.expect("its time does not run out");
        tokio::time::resume();
        outcome
    }

    /// Waits until so many clients have left streams that waited for it.
    pub(crate) async fn wait_until_gone(&self, count: usize) {
        self.until(|| self.shared.gone.load(Ordering::SeqCst) >= count, || format!("{count} gone")).await;
    }

    async fn until(&self, done: impl Fn() -> bool, what: impl Fn() -> String) {
        let waiting = async {
            loop {
                let changed = self.shared.changed.notified();
                if done() {
                    return;
                }
                changed.await;
            }
        };
        assert!(timeout(PATIENCE, waiting).await.is_ok(), "no {}: {:?}", what(), self.story());
    }
}

pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "1.0")
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut buffer = Vec::new();
    while let Some(seen) = receive(&mut stream, &mut buffer).await {
        let reply = (shared.handler)(&seen);
        shared.seen.lock().unwrap().push(seen);
        let open = shared.open.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most_open.fetch_max(open, Ordering::SeqCst);
        shared.changed.notify_waiters();
        let again = answer(&mut stream, reply, &shared).await;
        shared.open.fetch_sub(1, Ordering::SeqCst);
        if again.is_none() {
            return;
        }
    }
}

async fn receive(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap().split(' ');
    let (verb, path) = (first.next().unwrap().to_owned(), first.next().unwrap().to_owned());
    let headers: HashMap<_, _> = lines
        .map(|line| line.split_once(':').unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    while buffer.len() < end + 4 + length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = serde_json::from_slice(&buffer[end + 4..end + 4 + length]).unwrap_or(Value::Null);
    buffer.drain(..end + 4 + length);
    Some(Seen { verb, path, body, at: Instant::now(), headers })
}

/// Sends a reply; `None` when the connection is over.
async fn answer(stream: &mut TcpStream, reply: Reply, shared: &Shared) -> Option<()> {
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", reply.status);
    for (name, value) in &reply.headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    match reply.body {
        Body::Hang => gone(stream, shared).await,
        Body::Full(body) => {
            let _ = write!(head, "content-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(head.as_bytes()).await.ok()
        }
        Body::Stream(steps) => {
            head.push_str("transfer-encoding: chunked\r\n\r\n");
            stream.write_all(head.as_bytes()).await.ok()?;
            for step in steps {
                match step {
                    Step::Send(text) => send(stream, &text).await?,
                    Step::Later(text) => {
                        let text = text.lock().unwrap().clone();
                        send(stream, &text).await?;
                    }
                    Step::Wait(go) => go.notified().await,
                    Step::Cut => return None,
                    Step::UntilGone => return gone(stream, shared).await,
                }
            }
            stream.write_all(b"0\r\n\r\n").await.ok()
        }
    }
}

async fn send(stream: &mut TcpStream, text: &str) -> Option<()> {
    if text.is_empty() {
        return Some(());
    }
    let chunk = format!("{:x}\r\n{text}\r\n", text.len());
    stream.write_all(chunk.as_bytes()).await.ok()
}

async fn gone(stream: &mut TcpStream, shared: &Shared) -> Option<()> {
    let mut rest = [0; 64];
    while !matches!(stream.read(&mut rest).await, Ok(0) | Err(_)) {}
    shared.gone.fetch_add(1, Ordering::SeqCst);
    shared.changed.notify_waiters();
    None
}

/// The answer of a modern server to `server/discover`.
pub(crate) fn discovered(seen: &Seen) -> Reply {
    let capabilities = json!({ "tools": {}, "prompts": {}, "resources": {} });
    Reply::json(
        200,
        &seen.result(&json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private" })),
    )
}

/// The result of a tool that says `text`.
pub(crate) fn said(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}

/// A list of these tools.
pub(crate) fn tools(seen: &Seen, tools: &Value) -> Reply {
    Reply::json(
        200,
        &seen.result(
            &json!({ "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private" }),
        ),
    )
}

/// What a legacy server with sessions answers to everything that is not special to a test.
pub(crate) fn legacy(seen: &Seen, version: &str, session: &str) -> Reply {
    let with_session =
        |reply: Reply| if session.is_empty() { reply } else { reply.header("mcp-session-id", session) };
    match seen.what() {
        "initialize" => with_session(Reply::json(
            200,
            &seen.result(&json!({ "protocolVersion": version,
                "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true } },
                "serverInfo": { "name": "scripted", "version": "1" } })),
        )),
        "notifications/initialized" | "notifications/cancelled" | "answer" => Reply::status(202),
        "tools/call" => Reply::json(200, &seen.result(&said("hello"))),
        "DELETE" => Reply::status(204),
        "GET" => Reply::status(405),
        _ => Reply::json(400, &seen.error(-32600, "no")),
    }
}
