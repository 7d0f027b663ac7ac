//! Streamable HTTP as a link: every message is a request of its own.
//!
//! A modern request is driven by whoever waits for its answer, so that dropping it closes its stream, which is
//! how it is cancelled. A legacy one lives in a task: its stream may break and be resumed, and cancelling it takes
//! a message.

mod core;
mod legacy;
mod modern;
mod plans;
mod session;
mod standalone;

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::timeout;
use toolwire_client::link::{Exchange, Inbox, Link, LinkError, Outgoing};
use toolwire_protocol::{
    Feature, Message, Method, MethodName, RequestId, Version, envelope::write_notification, probe::ProbeLink,
    wire::CancelledNotificationParams,
};
use toolwire_transport::BoxFuture;

pub(super) use self::plans::Plans;
use self::{core::Core, modern::Call};
use super::{endpoint::Endpoint, fault, settings::CLOSING_PATIENCE};

/// Room for the headers of a request, so that the map does not have to grow.
const HEADERS: usize = 8;

/// A link over Streamable HTTP, in either era.
#[derive(Debug)]
pub(super) struct HttpLink {
    core: Arc<Core>,
}

impl HttpLink {
    /// Nothing is sent before the first message.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub(super) fn new(endpoint: &Endpoint, inbox: Inbox) -> Self {
        Self { core: Arc::new(Core::new(endpoint, inbox)) }
    }
}

impl Link for HttpLink {
    fn family(&self) -> ProbeLink {
        ProbeLink::Http
    }

    fn start(&self, request: Outgoing) -> Exchange {
        if self.core.is_closed() {
            return Exchange::failed(fault::closed());
        }
        let core = Arc::clone(&self.core);
        match Call::of(request, core.version()) {
            Ok(call) => Exchange::driven(move |feed| Box::pin(modern::drive(core, call, feed))),
            Err(request) => legacy::start(&core, request),
        }
    }

    fn abandon(&self, id: &RequestId, tell: bool) {
        // A modern request is not known here: it has gone with its exchange.
        if !self.core.forget(id, tell) || !tell {
            return;
        }
        let params = CancelledNotificationParams::new().request_id(id.clone());
        if let Ok(message) = write_notification(&Method::Cancelled.into(), &params) {
            self.core.sent(&message);
            self.core.post(message, "a cancellation");
        }
    }

    fn wants_subject(&self) -> bool {
        self.core.version().is_none_or(|version| version.has(Feature::MirroredHeaders))
    }

    fn notify(&self, message: Bytes) -> BoxFuture<'static, Result<(), LinkError>> {
        let core = Arc::clone(&self.core);
        Box::pin(async move {
            if core.is_closed() {
                return Err(fault::closed());
            }
            let method = method_of(&message);
            match core.version() {
                Some(version) if version.has(Feature::MirroredHeaders) => {
                    let headers = || modern::notification_headers(version, method.as_ref());
                    core.endpoint.tell(message, headers).await
                }
                _ => legacy::notify(&core, message, method.as_ref()).await,
            }
        })
    }

    fn negotiated(&self, version: Version) {
        self.core.negotiated(version);
    }

    fn why_closed(&self) -> BoxFuture<'static, Option<String>> {
        // There is no connection that could end, only requests that fail, each for its own reason.
        Box::pin(std::future::ready(None))
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let core = Arc::clone(&self.core);
        Box::pin(async move {
            let mut posts = core.end();
            // A server that does not answer must not keep us from going.
            let _ = timeout(CLOSING_PATIENCE, async { while posts.join_next().await.is_some() {} }).await;
            posts.detach_all();
            if let Some(view) = core.session.leave(core.version()) {
                core.endpoint.delete(|| view.headers(), CLOSING_PATIENCE).await;
            }
        })
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        let mut posts = self.core.end();
        posts.detach_all();
        if let Some(view) = self.core.session.leave(self.core.version()) {
            let endpoint = self.core.endpoint.clone();
            self.core
                .runtime
                .spawn(async move { endpoint.delete(|| view.headers(), CLOSING_PATIENCE).await });
        }
    }
}

/// What a notification is about.
fn method_of(message: &Bytes) -> Option<MethodName> {
    match Message::parse(message) {
        Ok(Message::Notification(notification)) => Some(notification.method),
        _ => None,
    }
}
