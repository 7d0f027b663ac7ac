//! `subscriptions/listen`: a request that stays open and carries changes until one side ends it.

use serde::Serialize;
use toolwire_protocol::{
    Method, RpcError,
    wire::{
        Meta, NotificationParams, ResourceUpdatedNotificationParams, ServerCapabilities, SubscriptionFilter,
        SubscriptionsAcknowledgedNotificationParams, SubscriptionsListenRequestParams,
        SubscriptionsListenResult,
    },
};

use crate::{
    Context, Reply,
    notify::{Change, Filter},
};

/// Serves one listen request. Resolves when the server shuts down; cancellation drops it before.
pub(crate) async fn serve(cx: Context) -> Result<Reply, RpcError> {
    let params: SubscriptionsListenRequestParams = cx.decode()?;
    let limit = cx.server().limits().subscriptions;
    if params.notifications.resource_subscriptions.as_ref().is_some_and(|uris| uris.len() > limit) {
        return Err(RpcError::invalid_params(format!(
            "at most {limit} resources can be subscribed to in one request"
        )));
    }
    let honoured = honour(params.notifications, &cx.server().catalog().capabilities);
    let meta = || {
        let mut meta = Meta::new();
        meta.set_subscription_id(cx.request_id());
        meta
    };
    // Subscribed before the acknowledgement is written, so that no change falls between the two.
    let subscriber = cx.server().notify().subscribe(Filter::of(&honoured));
    let acknowledged = SubscriptionsAcknowledgedNotificationParams::new(honoured).meta(meta());
    send(&cx, Method::SubscriptionsAcknowledged, &acknowledged).await?;
    while let Some(change) = subscriber.next().await {
        notify(&cx, change, meta()).await?;
    }
    Ok(Reply::Listen(SubscriptionsListenResult::new().meta(meta())))
}

/// The part of the filter that this server can honour.
fn honour(wanted: SubscriptionFilter, capabilities: &ServerCapabilities) -> SubscriptionFilter {
    let mut honoured = SubscriptionFilter::new();
    let resources = capabilities.resources.is_some();
    honoured.tools_list_changed = wanted.tools_list_changed.filter(|on| *on && capabilities.tools.is_some());
    honoured.prompts_list_changed =
        wanted.prompts_list_changed.filter(|on| *on && capabilities.prompts.is_some());
    honoured.resources_list_changed = wanted.resources_list_changed.filter(|on| *on && resources);
    honoured.resource_subscriptions = wanted.resource_subscriptions.filter(|_| resources);
    honoured
}

async fn notify(cx: &Context, change: Change, meta: Meta) -> Result<(), RpcError> {
    let list = |method| (method, NotificationParams::new());
    let (method, params) = match change {
        Change::Tools => list(Method::ToolListChanged),
        Change::Prompts => list(Method::PromptListChanged),
        Change::Resources => list(Method::ResourceListChanged),
        Change::Updated(uri) => {
            let params = ResourceUpdatedNotificationParams::new(uri).meta(meta);
            return send(cx, Method::ResourceUpdated, &params).await;
        }
    };
    send(cx, method, &params.meta(meta)).await
}

async fn send<P: Serialize + Sync>(cx: &Context, method: Method, params: &P) -> Result<(), RpcError> {
    if cx.0.outbox.send(method, params).await {
        Ok(())
    } else {
        Err(RpcError::internal("the connection is gone"))
    }
}
