//! `subscriptions/listen`: a request that stays open and carries changes until one side ends it.

use toolwire_protocol::{
    Method, RpcError,
    wire::{
        Extra, Meta, ServerCapabilities, SubscriptionFilter, SubscriptionsAcknowledgedNotificationParams,
        SubscriptionsListenRequestParams, SubscriptionsListenResult,
    },
};
use toolwire_transport::ledger::Account;

use crate::{
    Context, Reply,
    admission::busy,
    engine::EndsAt,
    notify::{Filter, Reader},
};

/// Serves one listen request. Resolves when the server shuts down, or what the client has proved who it is
/// with is not valid any longer; cancellation drops it before.
pub(crate) async fn serve(cx: Context) -> Result<Reply, RpcError> {
    let params: SubscriptionsListenRequestParams = cx.decode()?;
    let limit = cx.server().limits().subscriptions;
    if params.notifications.resource_subscriptions.as_ref().is_some_and(|uris| uris.len() > limit) {
        return Err(RpcError::invalid_params(format!(
            "at most {limit} resources can be subscribed to in one request"
        )));
    }
    let uris = params.notifications.resource_subscriptions.iter().flatten().map(String::len).sum();
    // What was sent is kept twice: as the parameters of the request and as the filter.
    let _uris = cx.0.ledger.charge(Account::SubscriptionBytes, uris).map_err(|reached| busy(&reached))?;
    let custom = own_notifications(&cx, &params.notifications.extra);
    let names = custom.iter().map(|(name, _)| name.len()).sum();
    let _names = cx.0.ledger.charge(Account::SubscriptionBytes, names).map_err(|reached| busy(&reached))?;
    let mut honoured = honour(params.notifications, &cx.server().catalog().capabilities);
    honoured.extra = custom;
    let meta = || {
        let mut meta = Meta::new();
        meta.set_subscription_id(cx.request_id());
        meta
    };
    // Subscribed before the acknowledgement is written, so that no change falls between the two.
    let subscriber = cx.server().notify().subscribe(Filter::of(&honoured));
    subscriber.read_by(Reader::of(&cx));
    let acknowledged = SubscriptionsAcknowledgedNotificationParams::new(honoured).meta(meta());
    if !cx.0.outbox.send(Method::SubscriptionsAcknowledged, &acknowledged).await {
        return Err(gone());
    }
    let end = cx.extension::<EndsAt>();
    loop {
        let change = tokio::select! {
            // First: changes without a pause would keep it open for ever.
            biased;
            () = EndsAt::reached(end) => break,
            change = subscriber.next() => change,
        };
        let Some(change) = change else { break };
        let message = change.message(Some(meta())).map_err(|error| RpcError::internal(error.to_string()))?;
        if !cx.0.outbox.send_message(message).await {
            return Err(gone());
        }
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

/// Notifications of the server's own, which a filter has by name, for callers who know what they mean.
fn own_notifications(cx: &Context, wanted: &Extra) -> Extra {
    let limit = cx.server().limits().subscriptions;
    let mut honoured = Extra::new();
    for (name, on) in wanted.iter().take(limit) {
        if *on == true && !Method::is_reserved(name) && cx.caller().takes_notification(name) {
            honoured.insert(name, true);
        }
    }
    honoured
}

fn gone() -> RpcError {
    RpcError::internal("the connection is gone")
}
