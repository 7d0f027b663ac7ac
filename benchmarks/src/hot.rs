//! The hot path inside one process, for counting and timing: a pipe in memory, and HTTP without a socket.
//!
//! What the kernel does is left out, so that the same code gives the same count on every machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use tokio::runtime::{Builder, Runtime};
use toolwire::{
    Era, Result,
    auth::server::{Audience, Expiry, Invalid, PresentedToken, ResourceServer, Verified},
    http::server::{HttpService, PeerAddr},
    memory::{MemorySink, MemorySource, pair},
    transport::{Duplex, Sink, Source},
};
use tower_service::Service;

use crate::server;

const META: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}"#
);
const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"bench","version":"1.0.0"}}}"#
);
/// The number of times each operation is called before one is measured. The first poll of the first call may be slow under valgrind,
/// and it takes a thousand quick ones until the server no longer remembers it.
const WARM_UP: usize = 1_100;
/// How long the token of a caller is who has one. A JWT of an issuer with few claims takes 600 to 1,000 characters.
const TOKEN_CHARS: usize = 800;
/// Where requests come from, where that is known.
const PEER: PeerAddr = PeerAddr(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 40_000));
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// What is measured.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// `tools/call` of `echo`, with a text of 60 characters.
    Echo,
    /// `tools/list`
    List,
}

impl Operation {
    /// The request as it stands on the wire.
    pub fn request(self, era: Era) -> Bytes {
        let modern = era == Era::Modern;
        let (method, params) = match self {
            Self::Echo => (
                "tools/call",
                r#""name":"echo","arguments":{"text":"bench-1000000000-the quick brown fox jumps over the lazy dog"}"#,
            ),
            Self::List => ("tools/list", ""),
        };
        let comma = if modern && !params.is_empty() { "," } else { "" };
        let meta = if modern { META } else { "" };
        format!(
            r#"{{"jsonrpc":"2.0","id":1000000000,"method":"{method}","params":{{{params}{comma}{meta}}}}}"#
        )
        .into()
    }
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_time().build()?)
}

/// A server at the other end of a pipe in memory.
#[derive(Debug)]
pub struct Pipe {
    runtime: Runtime,
    source: MemorySource,
    sink: MemorySink,
}

impl Pipe {
    /// Starts a server with this many tools that are not called, shakes hands if the era wants it, and calls a few
    /// times, so that nothing is measured that happens only at first.
    ///
    /// # Errors
    /// When it does not work, which would be a mistake here.
    pub fn open(era: Era, dummies: usize) -> Result<Self> {
        let runtime = runtime()?;
        let (ours, theirs) = pair();
        let server = server(dummies)?;
        runtime.spawn(async move { server.serve(theirs).await });
        let (source, sink) = ours.split();
        let mut pipe = Self { runtime, source, sink };
        if era == Era::Legacy {
            pipe.call(&INITIALIZE.into())?;
            pipe.runtime.block_on(pipe.sink.send(INITIALIZED.into()))?;
        }
        for operation in [Operation::Echo, Operation::List].repeat(WARM_UP) {
            pipe.call(&operation.request(era))?;
        }
        Ok(pipe)
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// When the pipe breaks.
    pub fn call(&mut self, request: &Bytes) -> Result<Bytes> {
        self.runtime.block_on(async {
            self.sink.send(request.clone()).await?;
            self.sink.flush().await?;
            Ok(self.source.receive().await?.ok_or("the server is gone")?)
        })
    }
}

/// A server behind HTTP, without a socket.
#[derive(Debug)]
pub struct Endpoint {
    runtime: Runtime,
    service: HttpService,
    session: Option<HeaderValue>,
    token: Option<HeaderValue>,
    peer: Option<PeerAddr>,
    era: Era,
}

impl Endpoint {
    /// Starts a server with this many legacy sessions, of which the last one is used, and calls a few times.
    ///
    /// # Errors
    /// When it does not work, which would be a mistake here.
    pub fn open(era: Era, sessions: usize) -> Result<Self> {
        let service = HttpService::builder(server(crate::DUMMIES)?).without_peer_addresses().build()?;
        Self::start(service, None, None, era, sessions)
    }

    /// The same for requests of which it is known where they come from, as it is of all that come by a socket.
    ///
    /// # Errors
    /// When it does not work, which would be a mistake here.
    pub fn open_with_peer(era: Era, sessions: usize) -> Result<Self> {
        Self::start(HttpService::new(server(crate::DUMMIES)?), Some(PEER), None, era, sessions)
    }

    /// The same again behind a guard, which has seen the token before.
    ///
    /// # Errors
    /// When it does not work, which would be a mistake here.
    pub fn open_guarded(era: Era, sessions: usize) -> Result<Self> {
        let verify = |_: PresentedToken| async {
            Ok::<_, Invalid>(Verified::new("ada", Audience::Vouched, Expiry::Unknown).scopes(["echo"]))
        };
        let guard = ResourceServer::new("http://127.0.0.1:3000/mcp", "https://login.example")
            .verify(verify)
            .build()?;
        let service = HttpService::builder(server(crate::DUMMIES)?).guard(guard).build()?;
        let token = HeaderValue::try_from(format!("Bearer {}", "abcdefgh".repeat(TOKEN_CHARS / 8)))?;
        Self::start(service, Some(PEER), Some(token), era, sessions)
    }

    fn start(
        service: HttpService,
        peer: Option<PeerAddr>,
        token: Option<HeaderValue>,
        era: Era,
        sessions: usize,
    ) -> Result<Self> {
        let mut endpoint = Self { runtime: runtime()?, service, session: None, token, peer, era };
        for _ in 0..sessions {
            endpoint.session = None;
            let request = endpoint.post(INITIALIZE.into())?;
            let response = endpoint.runtime.block_on(endpoint.service.call(request))?;
            endpoint.session = response.headers().get("mcp-session-id").cloned();
            let request = endpoint.post(INITIALIZED.into())?;
            endpoint.call(request)?;
        }
        for operation in [Operation::Echo, Operation::List].repeat(WARM_UP) {
            let request = endpoint.request(operation)?;
            endpoint.call(request)?;
        }
        Ok(endpoint)
    }

    /// A request with all its headers.
    ///
    /// # Errors
    /// When it is not valid, which would be a mistake here.
    pub fn request(&self, operation: Operation) -> Result<Request<Full<Bytes>>> {
        let mut request = self.post(operation.request(self.era))?;
        let headers = request.headers_mut();
        if self.era == Era::Modern {
            headers.insert("mcp-protocol-version", HeaderValue::from_static("2026-07-28"));
            let (method, name) = match operation {
                Operation::Echo => ("tools/call", Some("echo")),
                Operation::List => ("tools/list", None),
            };
            headers.insert("mcp-method", HeaderValue::from_static(method));
            if let Some(name) = name {
                headers.insert("mcp-name", HeaderValue::from_static(name));
            }
        } else {
            headers.insert("mcp-protocol-version", HeaderValue::from_static("2025-11-25"));
        }
        Ok(request)
    }

    fn post(&self, body: Bytes) -> Result<Request<Full<Bytes>>> {
        let mut request = Request::post("/mcp")
            .header("host", "127.0.0.1:3000")
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", token);
        }
        if let Some(peer) = self.peer {
            request = request.extension(peer);
        }
        Ok(request.body(Full::new(body))?)
    }

    /// Sends a request and collects the body of the response.
    ///
    /// # Errors
    /// When the response is not one of success.
    pub fn call(&mut self, request: Request<Full<Bytes>>) -> Result<Bytes> {
        self.runtime.block_on(async {
            let response = self.service.call(request).await?;
            if !response.status().is_success() {
                return Err(response.status().to_string().into());
            }
            Ok(response.into_body().collect().await?.to_bytes())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_works() {
        for era in [Era::Legacy, Era::Modern] {
            let mut pipe = Pipe::open(era, crate::DUMMIES).unwrap();
            let sessions = usize::from(era == Era::Legacy);
            let mut endpoint = Endpoint::open(era, sessions).unwrap();
            let mut with_peer = Endpoint::open_with_peer(era, sessions).unwrap();
            let mut guarded = Endpoint::open_guarded(era, sessions).unwrap();
            for (operation, expected) in [(Operation::Echo, "quick brown"), (Operation::List, "dummy_99")] {
                let answer = pipe.call(&operation.request(era)).unwrap();
                assert!(String::from_utf8_lossy(&answer).contains(expected), "{answer:?}");
                for endpoint in [&mut endpoint, &mut with_peer, &mut guarded] {
                    let request = endpoint.request(operation).unwrap();
                    let answer = endpoint.call(request).unwrap();
                    assert!(String::from_utf8_lossy(&answer).contains(expected), "{answer:?}");
                }
            }
            // Without its token, nobody is let in.
            guarded.token = None;
            let request = guarded.request(Operation::Echo).unwrap();
            assert!(guarded.call(request).is_err());
        }
    }
}
