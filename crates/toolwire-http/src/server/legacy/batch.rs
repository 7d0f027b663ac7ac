//! Batches, which exist in 2025-03-26 alone: an array of messages in, an array of answers out.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use toolwire_protocol::{
    Message, Request, RpcError,
    classify::{HeaderView, Verdict},
    envelope::{EnvelopeFault, parse_batch, write_error},
    peek::Peek,
};
use toolwire_server::{Extensions, engine::Seat};

use super::{
    endpoint::{LegacyEndpoint, Prepared, SessionLookup},
    post::{Post, Shape},
};
use crate::server::{Body, read::Accepts, response};

impl LegacyEndpoint {
    /// Answers a batch. Its requests run side by side; their answers leave together, unless one of them has
    /// something to say before: then all of it leaves as a stream.
    pub(crate) async fn batch(
        &self,
        bytes: Bytes,
        found: SessionLookup,
        headers: &HeaderMap,
        extensions: Extensions,
    ) -> Response<Body> {
        let items = match parse_batch(&bytes, self.server.limits().batch_messages) {
            Ok(items) => items,
            Err(fault) => return response::error(StatusCode::BAD_REQUEST, None, &fault.rpc_error()),
        };
        let answers = items.iter().filter(|item| matches!(item, Err(_) | Ok(Message::Request(_)))).count();
        let shape = Shape { batch: true, accepts: Accepts::of(headers) };
        let session = match &found {
            SessionLookup::Found(session) => Some(Arc::clone(session)),
            _ => None,
        };
        let post = (answers > 0).then(|| Post::new(session.clone(), shape, &self.config, answers));
        for item in items {
            match (item, &post) {
                (Ok(Message::Request(request)), Some(post)) => {
                    let seat = self.seat(&request, &found, headers);
                    self.start(post, &found, request, seat, extensions.clone()).await;
                }
                (Err(fault), Some(post)) => post.answer(refusal(&fault)).await,
                (Ok(message), _) => {
                    if let Some(session) = &session {
                        session.absorb(message);
                    }
                }
                (Err(_), None) => {}
            }
        }
        match post {
            Some(post) => post.response().await,
            None => response::empty(StatusCode::ACCEPTED),
        }
    }

    /// Where one request of a batch sits, if it may pass.
    fn seat(&self, request: &Request, found: &SessionLookup, headers: &HeaderMap) -> Result<Seat, RpcError> {
        let version = headers.get("mcp-protocol-version").and_then(|value| value.to_str().ok());
        let view = HeaderView { protocol_version: version, ..HeaderView::default() };
        let message = Message::Request(request.clone());
        let verdict =
            self.server.classify_as(&message, &Peek::of(&request.params), Some(&view), found.view());
        match (verdict, found) {
            (Verdict::Legacy(_), SessionLookup::Found(session)) => Ok(Seat::Legacy(session.session.clone())),
            (Verdict::Legacy(version), _) => Ok(Seat::Sessionless(version)),
            (Verdict::Reject(fault), _) => Err(fault.rpc_error()),
            _ => Err(RpcError::invalid_request(format!("{} cannot be part of a batch", request.method))),
        }
    }

    async fn start(
        &self,
        post: &Arc<Post>,
        found: &SessionLookup,
        request: Request,
        seat: Result<Seat, RpcError>,
        extensions: Extensions,
    ) {
        let id = request.id.clone();
        let session = match found {
            SessionLookup::Found(session) => Some(Arc::clone(session)),
            _ => None,
        };
        let peek = Peek::of(&request.params).into();
        match seat.map(|seat| self.prepare(post, session, request, peek, seat, extensions)) {
            Ok(Prepared::Flight(flight)) => flight.start().await,
            Ok(Prepared::Answered(answer)) => post.answer(answer).await,
            Ok(Prepared::Refused(denial)) => post.answer(write_error(Some(&id), &denial.error)).await,
            Err(error) => post.answer(write_error(Some(&id), &error)).await,
        }
    }
}

fn refusal(fault: &EnvelopeFault) -> Bytes {
    write_error(fault.id.as_ref(), &fault.rpc_error())
}
