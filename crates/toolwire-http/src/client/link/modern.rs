//! Requests that stand alone: what is in them is mirrored in headers, and closing their stream cancels them.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use tokio::task::yield_now;
use toolwire_client::{
    Delivery,
    link::{ExchangeError, ExchangeFeed, LinkError, LinkErrorKind, Outgoing, Reply, Subject},
};
use toolwire_protocol::{
    ErrorCode, Feature, Message, Method, MethodName, Notification, RawJson, RequestId, Version,
    codec::{RequestEnvelope, RequestMeta},
    headers::{MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, encode_value},
    wire::PaginatedRequestParams,
};

use super::{
    HEADERS,
    core::{Core, token_of},
    plans::{self, Plan},
};
use crate::client::{
    answer::{Answer, nothing},
    events::EventStream,
    fault,
    settings::{MAX_GARBAGE, MAX_TOOL_PAGES},
};

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static(MCP_PROTOCOL_VERSION);
const METHOD: HeaderName = HeaderName::from_static(MCP_METHOD);
const NAME: HeaderName = HeaderName::from_static(MCP_NAME);

/// A modern request that is ready to be sent.
pub(super) struct Call {
    id: RequestId,
    method: MethodName,
    message: Bytes,
    envelope: RequestEnvelope,
    name: Option<Box<str>>,
    arguments: Option<RawJson>,
}

impl Call {
    /// Takes a request in that is a modern one, and gives back any other.
    pub(super) fn of(mut request: Outgoing, spoken: Option<Version>) -> Result<Self, Outgoing> {
        // Before anything is agreed on, each request says by itself which version it is in.
        let own = request.subject.as_ref().map(|subject| subject.envelope.version());
        if !spoken.or(own).is_some_and(|version| version.has(Feature::StatelessRequests)) {
            return Err(request);
        }
        let Some(subject) = request.subject.take() else { return Err(request) };
        let Subject { envelope, name, arguments, .. } = *subject;
        Ok(Self {
            id: request.id,
            method: request.method,
            message: request.message,
            envelope,
            name,
            arguments,
        })
    }

    /// A page of the list of tools, asked for on behalf of this call.
    fn list(&self, page: usize, cursor: Option<String>) -> Option<Self> {
        // The ids of the client are numbers, so this one cannot be among them.
        let id = RequestId::from(format!("tools-{page}"));
        let method = MethodName::from(Method::ListTools);
        let mut params = PaginatedRequestParams::new();
        params.cursor = cursor;
        // Progress and logs are wanted for the call, and not for this.
        let message = self.envelope.write(&id, &method, &params, &RequestMeta::default()).ok()?;
        Some(Self { id, method, message, envelope: self.envelope.clone(), name: None, arguments: None })
    }

    /// The name of the tool, if one is called.
    fn tool(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.method.known() == Some(Method::CallTool))
    }

    /// What is in it is mirrored in its headers.
    fn headers(&self) -> HeaderMap {
        let mut headers = base_headers(self.envelope.version(), &self.method);
        if let Some(name) = &self.name {
            insert(&mut headers, NAME, &encode_value(name));
        }
        headers
    }
}

fn base_headers(version: Version, method: &MethodName) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(HEADERS);
    headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(version.as_str()));
    match method.known() {
        Some(known) => {
            headers.insert(METHOD, HeaderValue::from_static(known.as_str()));
        }
        None => insert(&mut headers, METHOD, method.as_str()),
    }
    headers
}

/// The headers of a modern notification.
pub(super) fn notification_headers(version: Version, method: Option<&MethodName>) -> HeaderMap {
    match method {
        Some(method) => base_headers(version, method),
        None => HeaderMap::new(),
    }
}

/// A value that no header can hold is left out, and the server says what it misses.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

/// Carries one request; whoever drops this cancels it.
pub(super) async fn drive(core: Arc<Core>, call: Call, feed: ExchangeFeed) {
    let reply = tokio::select! {
        biased;
        reply = carry(&core, &call, &feed) => reply,
        () = core.closing() => Err(fault::cancelled().into()),
    };
    feed.finish(reply);
}

async fn carry(core: &Core, call: &Call, feed: &ExchangeFeed) -> Reply {
    // The semaphore is never closed.
    let _permit = core.streams.acquire().await.ok();
    // Answers that came together are followed by questions that can be sent together, which costs the network and the
    // server less than one at a time. Whoever calls alone would wait for nobody.
    if core.has_several() {
        yield_now().await;
    }
    let Some(tool) = call.tool() else {
        let reply = attempt(core, call, HeaderMap::new(), Some(feed)).await;
        return if call.method.known() == Some(Method::ListTools) {
            reply.map(|list| core.plans.learn(list))
        } else {
            reply
        };
    };
    if core.plans.may_not_know(tool) {
        Box::pin(list_once(core, call, tool)).await;
    }
    let reply = attempt(core, call, mirrored_arguments(core, call, tool)?, Some(feed)).await;
    match &reply {
        // The list was out of date, and nothing was done.
        Err(ExchangeError::Link(LinkError { kind: LinkErrorKind::Status(_, Some(error)), .. }))
            if error.code == ErrorCode::HEADER_MISMATCH =>
        {
            tracing::debug!(tool, "the headers of a call are not right any more; listing again");
            Box::pin(list(core, call, tool)).await;
            Box::pin(attempt(core, call, mirrored_arguments(core, call, tool)?, Some(feed))).await
        }
        _ => reply,
    }
}

/// The arguments that travel in headers.
fn mirrored_arguments(core: &Core, call: &Call, tool: &str) -> Result<HeaderMap, LinkError> {
    let mut headers = HeaderMap::new();
    match core.plans.plan(tool) {
        Some(Plan::Mirror(plan)) => {
            let arguments = call.arguments.as_ref().map(RawJson::decode).transpose();
            let arguments: Map<String, Value> = arguments
                .map_err(|error| {
                    let text = format!("the arguments of {tool:?} cannot be sent in headers: {error}");
                    LinkError::new(LinkErrorKind::Refused, Delivery::NotSent, text)
                })?
                .unwrap_or_default();
            for (name, value) in plan.headers(&arguments) {
                if let Ok(name) = HeaderName::try_from(name) {
                    insert(&mut headers, name, &value);
                }
            }
        }
        Some(Plan::Invalid(why)) => {
            let text = format!("the tool {tool:?} cannot be called over HTTP: {why}");
            return Err(LinkError::new(LinkErrorKind::Refused, Delivery::NotSent, text));
        }
        None => {}
    }
    Ok(headers)
}

/// Reads the list of tools, unless that was done in the meantime.
async fn list_once(core: &Core, call: &Call, tool: &str) {
    let _turn = core.plans.listing.lock().await;
    if core.plans.may_not_know(tool) {
        list(core, call, tool).await;
    }
}

/// Reads the list of tools up to the page that has the tool.
async fn list(core: &Core, call: &Call, tool: &str) {
    let mut cursor = None;
    for page in 0..MAX_TOOL_PAGES {
        let Some(request) = call.list(page, cursor.take()) else { return };
        match attempt(core, &request, HeaderMap::new(), None).await {
            Ok(result) => {
                let (found, next) = plans::look_for(tool, &result);
                core.plans.learn(result);
                match next {
                    Some(next) if !found => cursor = Some(next),
                    _ => return,
                }
            }
            Err(error) => {
                // The call itself will tell what is wrong with the server.
                tracing::debug!(?error, "the list of tools cannot be read");
                return core.plans.give_up();
            }
        }
    }
}

/// Sends a request once and waits for its answer.
async fn attempt(core: &Core, call: &Call, more: HeaderMap, feed: Option<&ExchangeFeed>) -> Reply {
    let headers = || {
        let mut headers = call.headers();
        headers.extend(more.clone());
        headers
    };
    let response = core.endpoint.ask(call.message.clone(), headers).await?;
    match Answer::of(response, &core.endpoint.settings().limits).await? {
        Answer::Nothing(status) => Err(nothing(status).into()),
        Answer::Message(bytes) => match Message::parse(&bytes) {
            Ok(message) => take(core, call, message, feed).unwrap_or_else(|| {
                Err(fault::malformed("the response is not the answer to the request").into())
            }),
            Err(fault) => {
                Err(fault::malformed(format!("the server's answer is not a message: {fault}")).into())
            }
        },
        Answer::Events(stream) => Box::pin(read(core, call, stream, feed)).await,
    }
}

async fn read(core: &Core, call: &Call, mut stream: Box<EventStream>, feed: Option<&ExchangeFeed>) -> Reply {
    let mut garbage = 0;
    while garbage < MAX_GARBAGE {
        let event = match stream.next().await {
            Ok(Some(event)) => event,
            Ok(None) => return Err(fault::cut_off("the stream ended before the answer").into()),
            Err(error @ crate::client::events::StreamFault::Broken(_)) => {
                return Err(fault::cut_off(error.to_string()).into());
            }
            Err(error) => return Err(fault::too_large("event_bytes", error).into()),
        };
        if event.data.is_empty() {
            continue;
        }
        match Message::parse(&event.data.into()) {
            Ok(message) => {
                garbage = 0;
                if let Some(reply) = take(core, call, message, feed) {
                    stream.release();
                    return reply;
                }
            }
            Err(fault) => {
                tracing::warn!(%fault, "the server sent something that is not a message");
                garbage += 1;
            }
        }
    }
    Err(fault::malformed(format!("the server sent {garbage} events in a row that are not messages")).into())
}

/// Takes one message in; the answer to the request is the last one.
fn take(core: &Core, call: &Call, message: Message, feed: Option<&ExchangeFeed>) -> Option<Reply> {
    match message {
        Message::Response(response) if response.id.as_ref().is_none_or(|id| *id == call.id) => {
            return Some(response.outcome.map_err(ExchangeError::Rpc));
        }
        Message::Response(response) => tracing::debug!(id = ?response.id, "an answer that nobody waits for"),
        Message::Notification(notification) => notice(core, call, notification, feed),
        Message::Request(request) => {
            tracing::warn!(method = %request.method, "a modern server must not send requests");
        }
    }
    None
}

fn notice(core: &Core, call: &Call, notification: Notification, feed: Option<&ExchangeFeed>) {
    let is_progress = notification.method.known() == Some(Method::Progress);
    match feed {
        Some(feed) if is_progress && token_of(&notification).is_some_and(|token| token == call.id) => {
            feed.progress(notification);
        }
        _ => core.notification(&notification),
    }
}
