//! From an HTTP request to a WebSocket: on the same path, behind the same checks.
//!
//! A client that offers subprotocols has to offer `mcp` among them. One that offers none is taken at its word, since
//! there is nothing else that it could mean at this path.

use std::sync::{Arc, Mutex, PoisonError};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header, request::Parts};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_tungstenite::tungstenite::{handshake::derive_accept_key, protocol::Role};
use toolwire_protocol::RpcError;
use toolwire_server::{Extensions, Server, engine::EndsAt};
use toolwire_transport::Ledger;

use super::{
    Body, HttpLimits, edge,
    peer::{AddressShare, AddressShares},
    response,
    service::{attach, caller_key},
};
use crate::websocket::{self, Bounds, SUBPROTOCOL};

/// The one version of WebSocket that there is.
const VERSION: &str = "13";

/// When to come again if there is no room.
const RETRY_SECONDS: &str = "5";

/// Whether a request asks for a WebSocket.
pub(crate) fn is_wanted(parts: &Parts) -> bool {
    parts.method == Method::GET
        && tokens(&parts.headers, &header::CONNECTION).any(|token| token.eq_ignore_ascii_case("upgrade"))
        && tokens(&parts.headers, &header::UPGRADE).any(|token| token.eq_ignore_ascii_case("websocket"))
}

/// Accepts WebSockets, as many as there is room for.
pub(crate) struct WebSockets {
    room: Arc<Semaphore>,
    shares: AddressShares,
    /// How many fit in there.
    limit: u32,
    bounds: Bounds,
    /// Those that are open. They end with the endpoint.
    open: Mutex<JoinSet<()>>,
}

impl WebSockets {
    pub(crate) fn new(limits: &HttpLimits) -> Self {
        let limit = u32::try_from(limits.websockets.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let bounds = Bounds {
            message_bytes: limits.body_bytes,
            silence: limits.websocket_silence,
            message_time: limits.body_timeout,
        };
        // Whatever addresses may have, nobody has all there is.
        let share = limits.connections_per_address.min(limits.websockets.div_ceil(4));
        let shares = AddressShares::new(share);
        Self { room: Arc::new(Semaphore::new(limit as usize)), shares, limit, bounds, open: Mutex::default() }
    }

    /// Answers a request for a WebSocket, and serves what follows in a task.
    pub(crate) fn accept(&self, server: &Server, parts: Parts, end: Option<EndsAt>) -> Response<Body> {
        self.try_accept(server, parts, end).unwrap_or_else(|refusal| refusal.response())
    }

    fn try_accept(
        &self,
        server: &Server,
        mut parts: Parts,
        end: Option<EndsAt>,
    ) -> Result<Response<Body>, Refusal> {
        let named = check(&parts.headers)?;
        let upgrade = parts.extensions.remove::<OnUpgrade>().ok_or(Refusal(
            StatusCode::NOT_IMPLEMENTED,
            "a WebSocket cannot be opened here: it takes HTTP/1.1, and an HTTP server that allows upgrades",
        ))?;
        let permit = Arc::clone(&self.room).try_acquire_owned().map_err(|_| {
            Refusal(StatusCode::SERVICE_UNAVAILABLE, "too many WebSockets are open; try again later")
        })?;
        // Without an address or a principal, the endpoint does without shares.
        let (share, ledger) = match caller_key(&parts) {
            Some(caller) => {
                let share = self.shares.take_for(caller.clone()).ok_or(Refusal(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "too many WebSockets are open for this caller; try again later",
                ))?;
                (Some(share), server.caller_ledger(caller))
            }
            None => (None, server.ledger().clone()),
        };
        let answer = agree(&parts.headers, named);
        let mut extensions = attach(Arc::new(parts));
        if let Some(end) = end {
            extensions.insert(end);
        }
        let serving = serve(server.clone(), upgrade, (self.bounds, ledger), extensions, (permit, share));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while open.try_join_next().is_some() {}
        open.spawn(serving);
        Ok(answer)
    }

    /// Waits until all of them are closed.
    pub(crate) async fn all_closed(&self) {
        let _ = self.room.acquire_many(self.limit).await;
    }
}

/// Serves one WebSocket from the moment that the response has been sent.
async fn serve(
    server: Server,
    upgrade: OnUpgrade,
    (bounds, ledger): (Bounds, Ledger),
    extensions: Extensions,
    room: (OwnedSemaphorePermit, Option<AddressShare>),
) {
    match upgrade.await {
        Ok(upgraded) => {
            let stream = TokioIo::new(upgraded);
            let (connection, driving) = websocket::open(stream, Role::Server, bounds, Some(&ledger)).await;
            let (outcome, ()) = tokio::join!(server.serve_connection(connection, extensions), driving);
            if let Err(error) = outcome {
                tracing::debug!(%error, "a WebSocket broke");
            }
        }
        Err(error) => tracing::debug!(%error, "a WebSocket was not opened after all"),
    }
    drop(room);
}

/// Says whether the subprotocol was named, or what is wrong.
fn check(headers: &HeaderMap) -> Result<bool, Refusal> {
    if edge::text(headers, header::SEC_WEBSOCKET_VERSION) != Some(VERSION) {
        return Err(Refusal(StatusCode::UPGRADE_REQUIRED, "Sec-WebSocket-Version must be 13"));
    }
    let key = edge::text(headers, header::SEC_WEBSOCKET_KEY);
    if !key.is_some_and(|key| STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16)) {
        return Err(Refusal(StatusCode::BAD_REQUEST, "Sec-WebSocket-Key must be sixteen bytes in base64"));
    }
    let mut offered = tokens(headers, &header::SEC_WEBSOCKET_PROTOCOL).peekable();
    let any = offered.peek().is_some();
    let named = offered.any(|offer| offer == SUBPROTOCOL);
    if any && !named {
        let why = "Sec-WebSocket-Protocol names other protocols than this one, which is \"mcp\"; offer that or none";
        return Err(Refusal(StatusCode::BAD_REQUEST, why));
    }
    Ok(named)
}

fn agree(headers: &HeaderMap, named: bool) -> Response<Body> {
    let mut response = response::empty(StatusCode::SWITCHING_PROTOCOLS);
    let answers = response.headers_mut();
    answers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    answers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Some(key) = edge::text(headers, header::SEC_WEBSOCKET_KEY)
        && let Ok(accept) = HeaderValue::try_from(derive_accept_key(key.as_bytes()))
    {
        answers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    if named {
        answers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    }
    response
}

/// Why there is no WebSocket.
struct Refusal(StatusCode, &'static str);

impl Refusal {
    fn response(&self) -> Response<Body> {
        tracing::debug!("{}", self.1);
        let mut response = response::error(self.0, None, &RpcError::invalid_request(self.1));
        let more = match self.0 {
            StatusCode::UPGRADE_REQUIRED => Some((header::SEC_WEBSOCKET_VERSION, VERSION)),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, RETRY_SECONDS)),
            _ => None,
        };
        if let Some((name, value)) = more {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// The members of a list that may go over several headers. What cannot be read is a member that equals nothing.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("\0"));
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|token| !token.is_empty())
}
