//! `subscriptions/listen`: a request that stays open and carries changes until one side ends it.

use std::collections::BTreeMap;

use bytes::Bytes;
use toolwire_protocol::{
    Method, RpcError,
    envelope::write_notification,
    wire::{
        Extra, Meta, ServerCapabilities, SubscriptionFilter, SubscriptionsAcknowledgedNotificationParams,
        SubscriptionsListenRequestParams, SubscriptionsListenResult,
    },
};
use toolwire_store::{Owner, TaskId};
use toolwire_transport::ledger::Account;

use crate::{
    Context, Reply,
    admission::busy,
    engine::EndsAt,
    notify::{Change, Filter, Reader},
    tasks::{Glance, Look, Told, Watch, check_extension, owner_of},
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
    let wanted = &params.notifications;
    let uris = wanted.resource_subscriptions.iter().chain(&wanted.task_ids).flatten().map(String::len).sum();
    // What was sent is kept twice: as the parameters of the request and as the filter.
    let _uris = cx.0.ledger.charge(Account::SubscriptionBytes, uris).map_err(|reached| busy(&reached))?;
    let ids = named_tasks(&cx, &params.notifications)?;
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
    let mut filter = Filter::of(&honoured);
    filter.tasks.ids = ids.iter().copied().collect();
    let subscriber = cx.server().notify().subscribe(filter);
    subscriber.read_by(Reader::of(&cx));
    let mut tasks = TaskListener::new(&cx);
    honoured.task_ids = tasks.begin(ids).await;
    subscriber.update(|filter| filter.tasks.ids.retain(|id| tasks.has(id)));
    let acknowledged = SubscriptionsAcknowledgedNotificationParams::new(honoured).meta(meta());
    if !cx.0.outbox.send(Method::SubscriptionsAcknowledged, &acknowledged).await {
        return Err(gone());
    }
    // How they stand now: one that has ended by now would never be heard of.
    for id in tasks.ids() {
        if let Some(message) = tasks.news_of(id, meta()).await
            && !cx.0.outbox.send_message(message).await
        {
            return Err(gone());
        }
    }
    let end = cx.extension::<EndsAt>();
    loop {
        let change = tokio::select! {
            // First: changes without a pause would keep it open for ever.
            biased;
            () = EndsAt::reached(end) => break,
            change = subscriber.next() => change,
        };
        let change = match change {
            None => break,
            Some(Change::Task(id)) => {
                if let Some(message) = tasks.news_of(id, meta()).await
                    && !cx.0.outbox.send_message(message).await
                {
                    return Err(gone());
                }
                continue;
            }
            Some(change) => change,
        };
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

/// The tasks that a filter names. Whoever names some must have declared that it knows what they are.
fn named_tasks(cx: &Context, wanted: &SubscriptionFilter) -> Result<Vec<TaskId>, RpcError> {
    let Some(ids) = &wanted.task_ids else { return Ok(Vec::new()) };
    check_extension(cx)?;
    let limit = cx.server().limits().subscriptions;
    if ids.len() > limit {
        return Err(RpcError::invalid_params(format!(
            "at most {limit} tasks can be listened to in one request"
        )));
    }
    // What is not an id is not one of a task either.
    Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
}

/// The tasks that one request listens to.
struct TaskListener<'a> {
    cx: &'a Context,
    owner: Owner,
    followed: BTreeMap<TaskId, Watch>,
    told: Told,
}

impl<'a> TaskListener<'a> {
    fn new(cx: &'a Context) -> Self {
        let owner = owner_of(&cx.0.extensions);
        Self { cx, owner, followed: BTreeMap::new(), told: Told::default() }
    }

    /// Begins to follow those that exist for the caller, and gives their names.
    async fn begin(&mut self, ids: Vec<TaskId>) -> Option<Vec<String>> {
        let tasks = self.cx.server().tasks()?;
        for id in ids {
            // Followed first, so that no change falls between.
            let watch = tasks.follow(id);
            if self.look_at(id).await.is_some() {
                self.followed.insert(id, watch);
            }
        }
        Some(self.followed.keys().map(ToString::to_string).collect::<Vec<_>>()).filter(|ids| !ids.is_empty())
    }

    fn has(&self, id: &TaskId) -> bool {
        self.followed.contains_key(id)
    }

    fn ids(&self) -> Vec<TaskId> {
        self.followed.keys().copied().collect()
    }

    /// Looks at a task. `None` if there is nothing to see.
    async fn look_at(&self, id: TaskId) -> Option<Glance> {
        let tasks = self.cx.server().tasks().cloned()?;
        let (owner, version, principal) = (self.owner, self.cx.0.version, self.cx.principal().cloned());
        tasks.look_at(Look { owner, id, version, principal }).await
    }

    /// The notification that tells how a task stands, if that is news.
    async fn news_of(&mut self, id: TaskId, meta: Meta) -> Option<Bytes> {
        let seen = self.look_at(id).await?;
        if !self.told.is_news(id, seen.rev) {
            return None;
        }
        let params = seen.state.notification(self.cx.0.version, Some(meta));
        write_notification(&Method::TaskChanged.into(), &params).ok()
    }
}

fn gone() -> RpcError {
    RpcError::internal("the connection is gone")
}
