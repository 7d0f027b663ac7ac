//! Batches, which exist in 2025-03-26 alone: an array of messages in, an array of answers out.

use bytes::Bytes;
use http::{Response, StatusCode, request::Parts};
use toolwire_protocol::{classify::HeaderView, envelope::write_error};
use toolwire_server::{Extensions, engine::Incoming};
use toolwire_transport::ledger::{Account, Charge};

use super::{
    endpoint::{LegacyEndpoint, LegacyRequest, Prepared, SessionLookup},
    post_response::{PostResponse, ResponseFormat},
};
use crate::server::{Body, Principal, edge::Head, read::Accepts, response};

impl LegacyEndpoint {
    /// Answers a batch. Its requests run side by side; their answers leave together, unless one of them has
    /// something to say before: then all of it leaves as a stream.
    pub(crate) async fn batch(
        &self,
        bytes: Bytes,
        found: SessionLookup,
        head: &Head<'_>,
        parts: &Parts,
        extensions: Extensions,
        weight: Charge,
    ) -> Response<Body> {
        let session = found.session();
        let view = HeaderView { protocol_version: head.protocol_version.text(), ..HeaderView::default() };
        let inner = session.as_ref().map(|session| &session.session);
        let items = match self.server.receive_batch(&bytes, Some(&view), found.view(), inner) {
            Ok(items) => items,
            Err(fault) => return response::error(StatusCode::BAD_REQUEST, None, &fault.rpc_error()),
        };
        // All of it or nothing: what has run cannot be taken back when the next one turns out to be forbidden.
        if let Err(lack) = self.server.admit_batch(&items, parts.extensions.get::<Principal>()) {
            return response::lacking(lack);
        }
        let answers =
            items.iter().filter(|(item, _)| matches!(item, Incoming::Request(..) | Incoming::Answered(_)));
        let answers = answers.count();
        let format = ResponseFormat { batch: true, accepts: Accepts::of(&parts.headers) };
        let ledger = weight.ledger().clone();
        let post = (answers > 0).then(|| {
            PostResponse::new(session.clone(), format, &self.config, answers, &ledger, Some(weight))
        });
        // Its requests hold on to all of it, and the response is charged for that.
        drop(bytes);
        for (item, peek) in items {
            match (item, &post) {
                (Incoming::Request(request, origin), Some(post)) => {
                    let id = request.id.clone();
                    let asked = LegacyRequest {
                        request,
                        peek,
                        origin,
                        session: session.clone(),
                        extensions: extensions.clone(),
                        ledger: &ledger,
                        charge: ledger.empty_charge(Account::RequestBytes),
                    };
                    match self.prepare(post, asked) {
                        Prepared::Call(running) => running.start().await,
                        Prepared::Answered(answer) => post.answer(answer.body).await,
                        Prepared::Refused(denial) => post.answer(write_error(Some(&id), &denial.error)).await,
                    }
                }
                (Incoming::Answered(answer), Some(post)) => post.answer(answer.body).await,
                (Incoming::Notification(note), _) => {
                    if let Some(session) = &session {
                        session.notify(&note);
                    }
                }
                (Incoming::Response(answer), _) => {
                    let storing = session.as_ref().and_then(|session| session.deliver(answer));
                    // The revision with batches has no tasks, so that nothing of the others is lost by this.
                    if let Some(storing) = storing
                        && let Err(error) = storing.await
                    {
                        return response::error(StatusCode::SERVICE_UNAVAILABLE, None, &error);
                    }
                }
                // Nothing was asked, so nothing is answered. A handshake is refused where a batch is read, and for what is
                // answered there is `post`.
                (Incoming::Unwanted(_) | Incoming::Ignored | Incoming::Initialize(_), _)
                | (Incoming::Request(..) | Incoming::Answered(_), None) => {}
            }
        }
        match post {
            Some(post) => post.response().await,
            None => response::empty(StatusCode::ACCEPTED),
        }
    }
}
