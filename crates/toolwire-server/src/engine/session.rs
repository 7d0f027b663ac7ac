//! One legacy client, from its `initialize` on. This is the only place in the server that knows sessions.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use toolwire_protocol::{
    Method, Params, Request, Response, RpcError, Version,
    classify::LegacyView,
    envelope::{write_error, write_notification, write_response},
    wire::{
        InitializeRequestParams, InitializeResult, NotificationParams, ResourceUpdatedNotificationParams,
        SetLevelRequestParams, SubscribeRequestParams, UnsubscribeRequestParams,
    },
};
use toolwire_transport::FairQueue;

use super::Answered;
use crate::{
    Client, Context, Reply, Server,
    ask::Asks,
    notify::{Change, Filter, Subscriber},
};

/// What the handshake with a legacy client fixed, and what the client has asked for since. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Session(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    version: Version,
    client: Client,
    initialized: AtomicBool,
    subscriber: Arc<Subscriber>,
    subscriptions: usize,
    asks: Asks,
}

impl Session {
    /// Answers `initialize`, and starts a session if all is well.
    ///
    /// # Errors
    /// The answer, when there can be no session.
    pub fn initialize(server: &Server, request: &Request) -> Result<(Self, Answered), Answered> {
        let refuse = |error: &RpcError| Answered { status: 200, body: write_error(Some(&request.id), error) };
        let params: InitializeRequestParams = request
            .params
            .decode()
            .map_err(|error| refuse(&RpcError::invalid_params(format!("initialize: {error}"))))?;
        let catalog = server.catalog();
        let version =
            catalog.served(server.has_legacy()).negotiate(&params.protocol_version).ok_or_else(|| {
                refuse(&RpcError::invalid_params("no version with an initialize handshake is served here"))
            })?;
        let mut result =
            InitializeResult::new(version.as_str(), catalog.capabilities.clone(), server.info().clone());
        result.instructions = server.instructions().map(Into::into);
        let body =
            write_response(&request.id, |out| server.codec().write(version, result, out)).map_err(|_| {
                refuse(&RpcError::internal("the description of the server could not be serialised"))
            })?;
        let session = Self(Arc::new(Inner {
            version,
            client: Client::from_handshake(version, params.capabilities, params.client_info),
            initialized: AtomicBool::new(false),
            subscriber: server.notify().subscribe(Filter::default()),
            subscriptions: server.limits().subscriptions,
            asks: Asks::new(server.limits().pending_asks),
        }));
        Ok((session, Answered { status: 200, body }))
    }

    /// The version that was agreed on.
    pub fn version(&self) -> Version {
        self.0.version
    }

    pub(crate) fn client(&self) -> Client {
        self.0.client.clone()
    }

    pub(crate) fn asks(&self) -> Asks {
        self.0.asks.clone()
    }

    /// Hands in the client's answer to a question. Says whether somebody waited for it.
    pub fn deliver(&self, response: Response) -> bool {
        self.0.asks.deliver(response)
    }

    /// What the ladder has to know.
    pub fn view(&self) -> LegacyView {
        LegacyView::Peer { version: self.0.version, initialized: self.0.initialized.load(Ordering::Acquire) }
    }

    /// Takes `notifications/initialized`. Says whether it was the first.
    pub fn set_initialized(&self) -> bool {
        let unsolicited = Filter::unsolicited();
        self.0.subscriber.update(|filter| {
            let uris = std::mem::take(&mut filter.uris);
            *filter = Filter { uris, ..unsolicited };
        });
        !self.0.initialized.swap(true, Ordering::AcqRel)
    }

    /// Answers what concerns the session itself; `None` for everything that has a handler.
    pub(crate) fn answer(&self, cx: &Context) -> Option<Result<Reply, RpcError>> {
        let params = cx.params();
        let outcome = match cx.method().known()? {
            Method::Ping => Ok(()),
            Method::SetLevel => self.set_level(params),
            Method::Subscribe => self.subscribe(params),
            Method::Unsubscribe => self.unsubscribe(params),
            _ => return None,
        };
        Some(outcome.map(|()| Reply::Empty))
    }

    fn set_level(&self, params: &Params) -> Result<(), RpcError> {
        let params: SetLevelRequestParams = decode(Method::SetLevel, params)?;
        self.0.client.set_log_level(params.level);
        Ok(())
    }

    fn subscribe(&self, params: &Params) -> Result<(), RpcError> {
        let params: SubscribeRequestParams = decode(Method::Subscribe, params)?;
        let limit = self.0.subscriptions;
        self.0.subscriber.update(|filter| {
            if filter.uris.len() >= limit && !filter.uris.contains(&params.uri) {
                return Err(RpcError::invalid_params(format!(
                    "at most {limit} resources can be subscribed to"
                )));
            }
            filter.uris.insert(params.uri);
            Ok(())
        })
    }

    fn unsubscribe(&self, params: &Params) -> Result<(), RpcError> {
        let params: UnsubscribeRequestParams = decode(Method::Unsubscribe, params)?;
        self.0.subscriber.update(|filter| filter.uris.remove(&params.uri));
        Ok(())
    }

    /// Sends changes without being asked, until the connection ends or the server shuts down.
    pub fn forward_changes(&self, queue: &FairQueue) -> impl Future<Output = ()> + Send + use<> {
        let (subscriber, lane) = (Arc::clone(&self.0.subscriber), queue.lane());
        async move {
            while let Some(message) = next_message(&subscriber).await {
                if lane.send(message).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Waits for the next change, and gives the message that tells the client of it; `None` when the server shuts down.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has taken no change.
    pub fn next_change(&self) -> impl Future<Output = Option<Bytes>> + Send {
        next_message(&self.0.subscriber)
    }
}

async fn next_message(subscriber: &Subscriber) -> Option<Bytes> {
    loop {
        // Parameters of our own can always be written.
        if let Ok(message) = message_of(subscriber.next().await?) {
            return Some(message);
        }
    }
}

fn message_of(change: Change) -> serde_json::Result<Bytes> {
    let list = |method: Method| write_notification(&method.into(), &NotificationParams::new());
    match change {
        Change::Tools => list(Method::ToolListChanged),
        Change::Prompts => list(Method::PromptListChanged),
        Change::Resources => list(Method::ResourceListChanged),
        Change::Updated(uri) => {
            let params = ResourceUpdatedNotificationParams::new(uri);
            write_notification(&Method::ResourceUpdated.into(), &params)
        }
    }
}

fn decode<T: serde::de::DeserializeOwned>(method: Method, params: &Params) -> Result<T, RpcError> {
    params.decode().map_err(|error| RpcError::invalid_params(format!("{method}: {error}")))
}
