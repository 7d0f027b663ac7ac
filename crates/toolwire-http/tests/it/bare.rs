//! A bare HTTP/1.1 client: what it sends and what it gets is what is on the wire.

use std::{fmt::Write as _, net::SocketAddr, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::PATIENCE;

pub(crate) const MODERN: &str = "2026-07-28";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The timeout for a connection to be closed. It is shorter than the default of 30 seconds after which a server closes any
/// idle connection.
const CLOSING: Duration = Duration::from_secs(20);

/// A request to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: String,
    path: String,
    version: &'static str,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str) -> Self {
        let (method, path) = (method.into(), "/mcp".into());
        Self { method, path, version: "HTTP/1.1", headers: Vec::new(), body: Vec::new() }
            .header("Host", "localhost")
    }

    /// A POST with the media types that every client sends.
    pub(crate) fn post(body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..Self::new("POST") }
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
    }

    /// A modern request with all its headers.
    pub(crate) fn modern(method: &str, params: Value) -> Self {
        let name = params.get("name").or_else(|| params.get("uri")).cloned();
        let post = Self::post(enveloped(method, params).to_string())
            .header("MCP-Protocol-Version", MODERN)
            .header("Mcp-Method", method);
        match name.as_ref().and_then(Value::as_str) {
            Some(name) => post.header("Mcp-Name", name),
            None => post,
        }
    }

    /// A modern call of a tool.
    pub(crate) fn call(tool: &str, arguments: Value) -> Self {
        let mut params = json!({ "name": tool });
        params["arguments"] = arguments;
        Self::modern("tools/call", params)
    }

    pub(crate) fn path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// Sets a header, in the place of one with the same name.
    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        let mut request = self.without(name);
        request.headers.push((name.into(), value.into()));
        request
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    /// Adds a header, whatever there is already.
    pub(crate) fn also(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Changes `params._meta`.
    pub(crate) fn meta(mut self, key: &str, value: Value) -> Self {
        let mut message: Value = serde_json::from_slice(&self.body).unwrap();
        message["params"]["_meta"][key] = value;
        self.body = message.to_string().into();
        self
    }

    pub(crate) fn id(mut self, id: Value) -> Self {
        let mut message: Value = serde_json::from_slice(&self.body).unwrap();
        message["id"] = id;
        self.body = message.to_string().into();
        self
    }

    /// As a request of another version of HTTP/1.
    pub(crate) fn version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} {}\r\n", self.method, self.path, self.version);
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if !self.body.is_empty() {
            let _ = write!(head, "Content-Length: {}\r\n", self.body.len());
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// The JSON-RPC message of a modern request with the id 1.
pub(crate) fn enveloped(method: &str, mut params: Value) -> Value {
    params["_meta"][VERSION] = MODERN.into();
    params["_meta"][CAPABILITIES] = json!({});
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// A whole response.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.head.get("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The code of the JSON-RPC error.
    pub(crate) fn code(&self) -> i64 {
        let message = self.json();
        message["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {message}"))
    }

    /// The messages of a stream of events, which must be all there is in it.
    pub(crate) fn events(&self) -> Vec<Value> {
        assert_eq!(self.head.get("content-type"), Some("text/event-stream"), "{self:?}");
        let text = std::str::from_utf8(&self.body).unwrap();
        let events = text.split_terminator("\n\n").filter(|event| !event.starts_with(':'));
        events.map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap()).collect()
    }
}

/// Status and headers of a response.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    fn parse(text: &str) -> Self {
        let mut lines = text.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let pair = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_owned(), value.trim().to_owned())
        };
        Self { status, headers: lines.filter(|line| !line.is_empty()).map(pair).collect() }
    }
}

/// One connection.
pub(crate) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
    events: String,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap())
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        Self { stream, read: Vec::new(), events: String::new() }
    }

    /// Whether a request is answered, and the connection not closed instead.
    pub(crate) async fn is_served(&mut self, request: &Request) -> bool {
        if self.stream.write_all(&request.bytes()).await.is_err() || !self.more().await {
            return false;
        }
        self.response().await.status() == 200
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Says that nothing more will be sent, and goes on reading.
    pub(crate) async fn finish(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Closes the connection so that the other side knows that nobody reads any more.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }

    pub(crate) async fn send(&mut self, request: &Request) {
        self.write(&request.bytes()).await;
    }

    /// Sends a request and reads its whole response.
    pub(crate) async fn ask(&mut self, request: &Request) -> Response {
        self.send(request).await;
        self.response().await
    }

    pub(crate) async fn response(&mut self) -> Response {
        let head = self.head().await;
        let mut body = Vec::new();
        if let Some(length) = head.get("content-length") {
            body = self.take(length.parse().unwrap()).await;
        } else if head.get("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk().await {
                body.extend(chunk);
            }
        }
        Response { head, body }
    }

    pub(crate) async fn head(&mut self) -> Head {
        let end = loop {
            if let Some(end) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            assert!(self.more().await, "closed before the head: {:?}", String::from_utf8_lossy(&self.read));
        };
        let head: Vec<u8> = self.read.drain(..end + 4).collect();
        Head::parse(std::str::from_utf8(&head).unwrap())
    }

    /// The next event of a stream, as it stands; `None` at its end.
    pub(crate) async fn event(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.events.find("\n\n") {
                let event: String = self.events.drain(..end + 2).collect();
                return Some(event.trim_end().to_owned());
            }
            let Some(chunk) = self.chunk().await else {
                assert_eq!(self.events, "", "half an event");
                return None;
            };
            self.events.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next message of a stream, comments left out.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            let event = self.event().await?;
            if let Some(data) = event.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
            assert!(event.starts_with(':'), "{event}");
        }
    }

    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let end = loop {
            if let Some(end) = self.read.windows(2).position(|window| window == b"\r\n") {
                break end;
            }
            assert!(self.more().await, "closed inside a chunked body");
        };
        let size: Vec<u8> = self.read.drain(..end + 2).collect();
        let size = usize::from_str_radix(std::str::from_utf8(&size).unwrap().trim(), 16).unwrap();
        let mut chunk = self.take(size + 2).await;
        chunk.truncate(size);
        (size > 0).then_some(chunk)
    }

    async fn take(&mut self, length: usize) -> Vec<u8> {
        while self.read.len() < length {
            assert!(self.more().await, "closed inside a body");
        }
        self.read.drain(..length).collect()
    }

    /// Whether the other side closes the connection without another byte.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.read.is_empty() && !self.more_within(CLOSING).await
    }

    async fn more(&mut self) -> bool {
        self.more_within(PATIENCE).await
    }

    /// Reads more bytes, and returns `false` at the end of the stream.
    ///
    /// # Panics
    ///
    /// Panics if nothing arrives in time.
    async fn more_within(&mut self, patience: Duration) -> bool {
        let read = timeout(patience, self.stream.read_buf(&mut self.read));
        let read = read.await.unwrap_or_else(|_| panic!("nothing came within {patience:?}"));
        matches!(read, Ok(count) if count > 0)
    }
}

/// Sends one request on a connection of its own.
pub(crate) async fn ask(address: SocketAddr, request: &Request) -> Response {
    Connection::open(address).await.ask(request).await
}
