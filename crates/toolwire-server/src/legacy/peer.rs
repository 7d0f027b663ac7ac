//! One legacy client, from its `initialize` on.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde::Serialize;
use toolwire_protocol::{
    Method, Params, RpcError, Version,
    envelope::write_notification,
    wire::{
        InitializeRequestParams, InitializeResult, NotificationParams, ResourceUpdatedNotificationParams,
        SetLevelRequestParams, SubscribeRequestParams, UnsubscribeRequestParams,
    },
};
use toolwire_transport::{FairQueue, Lane};

use crate::{
    Client, Reply, Server,
    notify::{Change, Filter, Subscriber},
    reply::Prepared,
};

/// What the handshake fixed, and what the client has asked for since.
#[derive(Debug)]
pub(crate) struct LegacyPeer {
    pub(crate) version: Version,
    pub(crate) client: Client,
    initialized: AtomicBool,
    subscriber: Arc<Subscriber>,
}

impl LegacyPeer {
    /// Answers `initialize`.
    pub(crate) fn initialize(server: &Server, params: &Params) -> Result<(Self, Reply), RpcError> {
        let params: InitializeRequestParams =
            params.decode().map_err(|error| RpcError::invalid_params(format!("initialize: {error}")))?;
        let catalog = server.catalog();
        let version = catalog.served.negotiate(&params.protocol_version).ok_or_else(|| {
            RpcError::invalid_params("no version with an initialize handshake is served here")
        })?;
        let mut result =
            InitializeResult::new(version.as_str(), catalog.capabilities.clone(), server.info().clone());
        result.instructions = server.instructions().map(Into::into);
        let mut bytes = Vec::new();
        let written = server.codec().write(version, result, &mut bytes);
        written.map_err(|_| RpcError::internal("the description of the server could not be serialised"))?;
        let peer = Self {
            version,
            client: Client::from_handshake(version, params.capabilities, params.client_info),
            initialized: AtomicBool::new(false),
            subscriber: server.notify().subscribe(Filter::default()),
        };
        Ok((peer, Reply::Prepared(Prepared(bytes.into()))))
    }

    pub(crate) fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::Acquire)
    }

    /// Takes `notifications/initialized`. Says whether it was the first.
    pub(crate) fn set_initialized(&self) -> bool {
        let unsolicited = Filter::unsolicited();
        self.subscriber.update(|filter| {
            let uris = std::mem::take(&mut filter.uris);
            *filter = Filter { uris, ..unsolicited };
        });
        !self.initialized.swap(true, Ordering::AcqRel)
    }

    /// Answers what concerns the session itself; `None` for everything that has a handler.
    pub(crate) fn answer(
        &self,
        method: Method,
        params: &Params,
        limit: usize,
    ) -> Option<Result<Reply, RpcError>> {
        let outcome = match method {
            Method::Ping => Ok(()),
            Method::SetLevel => self.set_level(params),
            Method::Subscribe => self.subscribe(params, limit),
            Method::Unsubscribe => self.unsubscribe(params),
            _ => return None,
        };
        Some(outcome.map(|()| Reply::Empty))
    }

    fn set_level(&self, params: &Params) -> Result<(), RpcError> {
        let params: SetLevelRequestParams = decode(Method::SetLevel, params)?;
        self.client.set_log_level(params.level);
        Ok(())
    }

    fn subscribe(&self, params: &Params, limit: usize) -> Result<(), RpcError> {
        let params: SubscribeRequestParams = decode(Method::Subscribe, params)?;
        self.subscriber.update(|filter| {
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
        self.subscriber.update(|filter| filter.uris.remove(&params.uri));
        Ok(())
    }

    /// Sends changes without being asked, until the connection ends or the server shuts down.
    pub(crate) fn forward_changes(&self, queue: &FairQueue) -> impl Future<Output = ()> + Send + 'static {
        let (subscriber, lane) = (Arc::clone(&self.subscriber), queue.lane());
        async move {
            while let Some(change) = subscriber.next().await {
                if !forward(&lane, change).await {
                    return;
                }
            }
        }
    }
}

async fn forward(lane: &Lane, change: Change) -> bool {
    let list = |method| send(lane, method, NotificationParams::new());
    match change {
        Change::Tools => list(Method::ToolListChanged).await,
        Change::Prompts => list(Method::PromptListChanged).await,
        Change::Resources => list(Method::ResourceListChanged).await,
        Change::Updated(uri) => {
            send(lane, Method::ResourceUpdated, ResourceUpdatedNotificationParams::new(uri)).await
        }
    }
}

async fn send<P: Serialize>(lane: &Lane, method: Method, params: P) -> bool {
    match write_notification(&method.into(), &params) {
        Ok(message) => lane.send(message).await.is_ok(),
        Err(_) => true,
    }
}

fn decode<T: serde::de::DeserializeOwned>(method: Method, params: &Params) -> Result<T, RpcError> {
    params.decode().map_err(|error| RpcError::invalid_params(format!("{method}: {error}")))
}
