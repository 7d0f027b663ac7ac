//! What a message is, and where a request comes from: decided here once, for every transport.

use bytes::Bytes;
use toolwire_protocol::{
    Message, Notification, Request, RequestId, Response, RpcError, Version,
    classify::{Fault, HeaderView, LegacyView, Verdict, classify},
    envelope::{EnvelopeFault, parse_batch, write_error, write_response},
    peek::Peek,
    wire::EmptyResult,
};

use super::{EncodedResponse, Session};
use crate::Server;

/// Where a request comes from, as far as its protocol version matters.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RequestOrigin {
    /// A modern request: everything about its client is in the request.
    Modern(Version),
    /// A request of a legacy client that has shaken hands.
    Session(Session),
    /// A legacy request without a session: nothing is known of its client.
    Sessionless(Version),
}

/// What is to be done with a message.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a transport must handle every case")]
pub enum Incoming {
    /// A request for a handler.
    Request(Request, RequestOrigin),
    /// The handshake of a legacy client.
    Initialize(Request),
    /// A notification of a client that may send some.
    Notification(Notification),
    /// The answer to a question of ours.
    Response(Response),
    /// A request that is answered already: refused, or of no concern to any handler.
    Answered(EncodedResponse),
    /// A message that is not a request and is not wanted. Transports that answer those, too, answer with this.
    Unwanted(EncodedResponse),
    /// Nothing is to be done.
    Ignored,
}

impl Server {
    /// Says what is to be done with a message. `legacy` is what is known of the client's session, which is
    /// `session` where there is one.
    pub fn receive(
        &self,
        message: Message,
        peek: &Peek,
        http: Option<&HeaderView<'_>>,
        legacy: LegacyView,
        session: Option<&Session>,
    ) -> Incoming {
        if let Message::Request(request) = &message
            && let Err(answered) = self.check_ids(request, peek)
        {
            return Incoming::Answered(answered);
        }
        let verdict = classify(&message, peek, http, self.catalog().served(self.has_legacy()), legacy);
        match (verdict, message) {
            (Verdict::Reject(fault), Message::Request(request)) => {
                tracing::debug!(?fault, "a request was refused");
                Incoming::Answered(EncodedResponse::refusal(&fault, &request))
            }
            (Verdict::Reject(fault), _) => {
                tracing::debug!(?fault, "a message was refused");
                let body = write_error(None, &fault.rpc_error());
                Incoming::Unwanted(EncodedResponse::new(fault.http_status(), body))
            }
            (Verdict::Initialize, Message::Request(request)) => Incoming::Initialize(request),
            (Verdict::Modern(version), Message::Request(request)) => {
                Incoming::Request(request, RequestOrigin::Modern(version))
            }
            (Verdict::Legacy(version), Message::Request(request)) => {
                let origin =
                    session.cloned().map_or(RequestOrigin::Sessionless(version), RequestOrigin::Session);
                Incoming::Request(request, origin)
            }
            (Verdict::Ping, Message::Request(request)) => empty_result(&request),
            (Verdict::Legacy(_) | Verdict::Either, Message::Notification(note)) => {
                Incoming::Notification(note)
            }
            (Verdict::Legacy(_), Message::Response(response)) => Incoming::Response(response),
            _ => Incoming::Ignored,
        }
    }

    /// Refuses ids that are too long to be kept and sent again and again.
    fn check_ids(&self, request: &Request, peek: &Peek) -> Result<(), EncodedResponse> {
        let limit = self.limits().request_id_bytes;
        let fits = |id: &RequestId| match id {
            RequestId::Num(_) => true,
            RequestId::Str(text) => text.len() <= limit,
        };
        let (id, what) = if !fits(&request.id) {
            (None, "id of the request")
        } else if !peek.progress_token().is_none_or(fits) {
            (Some(&request.id), "progressToken")
        } else {
            return Ok(());
        };
        let why =
            format!("the {what} has more than {limit} bytes (limit request_id_bytes); use a shorter one");
        Err(EncodedResponse::new(400, write_error(id, &RpcError::invalid_request(why))))
    }

    /// The same for each message of a batch, which one legacy revision has.
    ///
    /// # Errors
    /// When it is not a batch, or a longer one than the limit `batch_messages` allows.
    pub fn receive_batch(
        &self,
        bytes: &Bytes,
        http: Option<&HeaderView<'_>>,
        legacy: LegacyView,
        session: Option<&Session>,
    ) -> Result<Vec<(Incoming, Box<Peek>)>, EnvelopeFault> {
        let messages = parse_batch(bytes, self.limits().batch_messages)?;
        let receive = |message: Result<Message, EnvelopeFault>| {
            let message = match message {
                Ok(message) => message,
                Err(fault) => {
                    let body = write_error(fault.id.as_ref(), &fault.rpc_error());
                    return (Incoming::Answered(EncodedResponse::new(400, body)), Box::default());
                }
            };
            let peek = match &message {
                Message::Request(request) => Box::new(Peek::of(&request.params)),
                _ => Box::default(),
            };
            (not_in_a_batch(self.receive(message, &peek, http, legacy, session)), peek)
        };
        Ok(messages.into_iter().map(receive).collect())
    }

    /// What is known of a client without a handshake.
    pub fn without_session(&self) -> LegacyView {
        let legacy = self.catalog().served(self.has_legacy()).latest_legacy();
        if legacy.is_some() { LegacyView::NoPeer } else { LegacyView::Off }
    }
}

/// Refuses what has no place in a batch: stateless requests belong to another era, and a handshake decides whether
/// there are batches at all.
fn not_in_a_batch(incoming: Incoming) -> Incoming {
    let request = match incoming {
        Incoming::Request(request, RequestOrigin::Modern(_)) | Incoming::Initialize(request) => request,
        other => return other,
    };
    let error = RpcError::invalid_request(format!("{} cannot be part of a batch", request.method));
    Incoming::Answered(EncodedResponse::new(400, write_error(Some(&request.id), &error)))
}

fn empty_result(request: &Request) -> Incoming {
    match write_response(&request.id, |out| serde_json::to_writer(out, &EmptyResult::new())) {
        Ok(body) => Incoming::Answered(EncodedResponse::new(200, body)),
        Err(_) => Incoming::Ignored,
    }
}

/// Several answers as one array.
pub fn join_answers(answers: &[Bytes]) -> Bytes {
    let mut out = Vec::with_capacity(2 + answers.iter().map(|answer| answer.len() + 1).sum::<usize>());
    out.push(b'[');
    out.extend_from_slice(&answers.join(&b","[..]));
    out.push(b']');
    out.into()
}

impl EncodedResponse {
    /// The answer to a request that may not pass.
    pub fn refusal(fault: &Fault, request: &Request) -> Self {
        Self::new(fault.http_status(), write_error(Some(&request.id), &fault.rpc_error()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_that_is_too_long_is_refused_whichever_way_it_came() {
        let server = Server::builder("t", "1").build().unwrap();
        let limit = server.limits().request_id_bytes;
        let modern =
            HeaderView { protocol_version: Some("2026-07-28"), method: Some("server/discover"), name: None };
        let legacy = LegacyView::Peer { version: Version::V2025_11_25, initialized: true };
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        for (method, http, view, params) in [
            ("server/discover", None, LegacyView::NoPeer, json!({"_meta": meta})),
            ("server/discover", Some(&modern), LegacyView::NoPeer, json!({"_meta": meta})),
            ("tools/call", None, legacy, json!({})),
            ("tools/call", Some(&HeaderView::default()), legacy, json!({})),
            ("tools/call", Some(&HeaderView::default()), LegacyView::Sessionless, json!({})),
            ("initialize", Some(&HeaderView::default()), LegacyView::NoPeer, json!({})),
        ] {
            let receive = |bytes| {
                let message =
                    json!({"jsonrpc": "2.0", "id": "x".repeat(bytes), "method": method, "params": params});
                let (message, peek) = Message::parse_and_peek(&message.to_string().into()).unwrap();
                server.receive(message, &peek, http, view, None)
            };
            let Incoming::Answered(refused) = receive(limit + 1) else { panic!("{method} {view:?}") };
            let body = String::from_utf8(refused.body.to_vec()).unwrap();
            assert!(refused.status == 400 && !body.contains("xxx"), "{body}");
            assert!(body.contains("the id of the request has more than 1024 bytes (limit request_id_bytes)"));
            let Incoming::Answered(other) = receive(limit) else { continue };
            assert!(!String::from_utf8(other.body.to_vec()).unwrap().contains("request_id_bytes"));
        }
    }
}
