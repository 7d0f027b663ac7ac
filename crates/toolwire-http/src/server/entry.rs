//! The way in of an endpoint with a guard: what is public, what the gate stops, and who is let in.
//!
//! In this order: the host that a request names; documents that everybody may read, from any page; the page that sends
//! the request; questions that browsers ask beforehand; the guard. Only then is a body read.

use std::{net::IpAddr, sync::Arc};

use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};
use toolwire_protocol::{Feature, peek::VersionField};
use toolwire_server::{Lack, Principal};
use toolwire_transport::BoxFuture;

use super::{
    Admission, Body, Denied, Guard, Lacking,
    config::Cors,
    cors,
    edge::{self, Head},
    guard::{DISCARD_TIMEOUT, DISCARDED_BYTES},
    read::{self, BoxError},
    response,
    service::Shared,
};

/// What becomes of a request before its body is read.
pub(super) enum Entry {
    /// It goes on.
    Open,
    /// It is answered without having been let in.
    Answered(Box<Response<Body>>),
    /// The guard does not let it in.
    Denied(Box<Denied>),
}

/// The same, or what has to be found out first.
pub(super) enum Entering<'a> {
    Known(Entry),
    Pending(BoxFuture<'a, Result<Option<Principal>, Box<Denied>>>),
}

impl Shared {
    /// Takes a request as far as it goes without waiting.
    pub(super) fn enter<'a>(
        &self,
        guard: &'a dyn Guard,
        parts: &mut Arc<Parts>,
        local: Option<IpAddr>,
    ) -> Entering<'a> {
        let answered = |response| Entering::Known(Entry::Answered(Box::new(response)));
        let head = Head::of_gate(&parts.headers);
        let named = match self.gate.check_host(parts, &head, local) {
            Ok(named) => named,
            Err(stopped) => return answered(stopped.response()),
        };
        if let Some(document) = public_document(guard, parts) {
            return answered(document);
        }
        if let Err(stopped) = self.gate.check_origin(parts, &head, named.as_ref()) {
            return answered(stopped.response());
        }
        let preflight =
            self.config.cors == Cors::AllowedOrigins && cors::is_preflight(&parts.method, &parts.headers);
        // There is nothing to protect in what is not here.
        if preflight || !self.serves(parts.uri.path()) {
            return Entering::Known(Entry::Open);
        }
        let Some(shown) = Arc::get_mut(parts) else {
            // Nobody else has it yet; if somebody had, secrets could not be taken out of it.
            return answered(response::empty(StatusCode::INTERNAL_SERVER_ERROR));
        };
        // The guard alone says who a caller is.
        shown.extensions.remove::<Principal>();
        match guard.admit(shown) {
            Admission::Known(admitted) => Entering::Known(self.admitted(guard, parts, admitted)),
            Admission::Pending(admitting) => Entering::Pending(admitting),
        }
    }

    /// Lets a request go on as one of its principal, if that may do anything here at all.
    pub(super) fn admitted(
        &self,
        guard: &dyn Guard,
        parts: &mut Arc<Parts>,
        admitted: Result<Option<Principal>, Box<Denied>>,
    ) -> Entry {
        let principal = match admitted {
            Ok(Some(principal)) => principal,
            Ok(None) => return Entry::Open,
            Err(denied) => return Entry::Denied(denied),
        };
        if !self.server.scope_rules().cover(principal.scopes(), guard.scopes()) {
            let lack = Lack::scopes(guard.scopes().clone());
            let lacking = Lacking { lack: &lack, principal: Some(&principal), names_all: names_all(parts) };
            return Entry::Denied(Box::new(guard.challenge(&lacking)));
        }
        let Some(shown) = Arc::get_mut(parts) else {
            return Entry::Answered(Box::new(response::empty(StatusCode::INTERNAL_SERVER_ERROR)));
        };
        shown.extensions.insert(principal);
        Entry::Open
    }

    /// Answers a request that is not let in. What it sends is read first, as far as that goes: an answer that crosses it
    /// could be lost.
    pub(super) async fn turn_away<B>(
        &self,
        guard: &dyn Guard,
        parts: &Parts,
        body: B,
        denied: Denied,
    ) -> Response<Body>
    where
        B: http_body::Body + Send,
        B::Error: Into<BoxError>,
    {
        // A client that waits to be told to go on with its body sends none.
        if !parts.headers.contains_key(header::EXPECT) {
            let _ = tokio::time::timeout(DISCARD_TIMEOUT, read::discard(body, DISCARDED_BYTES)).await;
        }
        let mut response = denied.response();
        guard.answered(response.headers_mut());
        response
    }

    /// Whether anything is served at a path.
    fn serves(&self, path: &str) -> bool {
        #[cfg(feature = "sse2024")]
        if self.config.sse2024.as_ref().is_some_and(|paths| paths.has(path)) {
            return true;
        }
        self.config.path.as_ref().is_none_or(|here| path == here)
    }
}

/// Adds what the guard has to say to the response of a request that was let in.
pub(super) fn conclude(guard: &dyn Guard, parts: &Parts, response: &mut Response<Body>) {
    if let Some(lack) = response.extensions_mut().remove::<Lack>() {
        let principal = parts.extensions.get::<Principal>();
        let denied = guard.challenge(&Lacking { lack: &lack, principal, names_all: names_all(parts) });
        *response.status_mut() = denied.status;
        response.headers_mut().extend(denied.headers);
    }
    guard.answered(response.headers_mut());
}

/// Whether a challenge to this request has to name everything. It has if the request names no revision.
fn names_all(parts: &Parts) -> bool {
    let version = edge::text(&parts.headers, toolwire_protocol::headers::MCP_PROTOCOL_VERSION);
    !version.map(VersionField::of).is_some_and(|version| version.has(Feature::ScopeAccumulation))
}

/// A document that everybody may read, whatever page asks for it.
pub(super) fn public_document(guard: &dyn Guard, parts: &Parts) -> Option<Response<Body>> {
    let preflight = cors::is_preflight(&parts.method, &parts.headers);
    if !matches!(parts.method, Method::GET | Method::HEAD) && !preflight {
        return None;
    }
    let document = guard.document(parts.uri.path())?;
    let mut response = if preflight { cors::preflight(&parts.headers) } else { document.map(Body::full) };
    let any = HeaderValue::from_static("*");
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
    Some(response)
}
