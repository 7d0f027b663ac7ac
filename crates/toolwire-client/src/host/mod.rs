//! The client as a host: what it answers, remembers and passes on when the server speaks first.

mod elicit;
mod handler_clock;
mod handlers;
mod request_queue;
mod server_request;

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, atomic::AtomicBool},
};

use bytes::Bytes;
use serde::Deserialize;
use toolwire_protocol::{
    Method, MethodName, Notification, Params, RawJson, Request, RequestId, RpcError,
    caching::{CacheChange, ResponseCache},
    envelope::{write_error, write_response},
    wire::{
        ClientCapabilities, InputRequest, LoggingMessageNotificationParams, Meta,
        ResourceUpdatedNotificationParams, SubscriptionsAcknowledgedNotificationParams, TaskMetadata,
    },
};

pub use elicit::{Elicit, ElicitReply};
pub(crate) use handlers::{Handlers, quietly};
pub use server_request::ServerRequest;

use crate::{
    client::{Restoration, TaskSupports, WrappedTools},
    clock::Clock,
    connect::{ConnectionState, Facts},
    limits::ClientLimits,
    listen::{Change, Hub},
    lock::lock,
    observe::Observer,
    settings::Settings,
    task::{self, HostedTasks, Watchers},
    waiting::{Charge, Share, WaitingBytes},
};
pub(crate) use handler_clock::{CallNumber, HandlerClock, call_number};
pub(crate) use request_queue::Reply;
use request_queue::{Question, RequestQueue, Waiting};

/// Everything that the server's own messages reach.
pub(crate) struct Host {
    handlers: Arc<Handlers>,
    limits: ClientLimits,
    pub(crate) waiting_bytes: Arc<WaitingBytes>,
    clock: Arc<dyn Clock>,
    /// What the version has that was agreed on.
    facts: OnceLock<Facts>,
    queue: Mutex<RequestQueue>,
    cache: Mutex<ResponseCache>,
    pub(crate) hub: Hub,
    pub(crate) restoration: Restoration,
    pub(crate) handler_clock: HandlerClock,
    /// Who follows which task.
    pub(crate) watchers: Arc<Watchers>,
    /// Whether the server never tells of tasks by itself.
    pub(crate) no_task_news: AtomicBool,
    pub(crate) supports: TaskSupports,
    pub(crate) wrapped: WrappedTools,
    hosted: HostedTasks,
}

impl Host {
    pub(crate) fn new(handlers: Arc<Handlers>, settings: &Settings) -> Self {
        let waiting_bytes = Arc::new(WaitingBytes::new(settings.limits.waiting_bytes));
        Self {
            handlers,
            limits: settings.limits,
            waiting_bytes: Arc::clone(&waiting_bytes),
            clock: Arc::clone(&settings.clock),
            facts: OnceLock::new(),
            queue: Mutex::default(),
            cache: Mutex::new(ResponseCache::new(settings.limits.cache())),
            hub: Hub::new(waiting_bytes, settings.limits.listeners),
            restoration: Restoration::default(),
            handler_clock: HandlerClock::default(),
            watchers: Arc::default(),
            no_task_news: AtomicBool::new(false),
            supports: TaskSupports::default(),
            wrapped: WrappedTools::default(),
            hosted: HostedTasks::default(),
        }
    }

    pub(crate) const fn limits(&self) -> &ClientLimits {
        &self.limits
    }

    /// Whoever watches the conversation.
    pub(crate) fn observer(&self) -> Option<&Observer> {
        self.handlers.observer.as_ref()
    }

    pub(crate) fn capabilities(&self, facts: Facts) -> ClientCapabilities {
        self.handlers.capabilities(facts)
    }

    /// Whether this client has to do with tasks at all.
    pub(crate) fn follows_tasks(&self) -> bool {
        !self.handlers.without_tasks
    }

    /// The version was agreed on.
    pub(crate) fn negotiated(&self, facts: Facts) {
        // A second version on one connection would be a fault of ours; the first one stays.
        let _ = self.facts.set(facts);
    }

    /// Does something with the response cache at the present moment.
    pub(crate) fn with_cache<R>(&self, act: impl FnOnce(&mut ResponseCache, std::time::Instant) -> R) -> R {
        let now = self.clock.now();
        act(&mut lock(&self.cache), now)
    }

    /// Answers a question of the server.
    pub(crate) async fn fulfil(&self, request: InputRequest) -> Result<RawJson, RpcError> {
        self.handlers.fulfil(request).await
    }

    /// Takes a request of the server in.
    pub(crate) fn request(
        this: &Arc<Self>,
        request: Request,
        during: Option<RequestId>,
        answer: impl FnOnce(Bytes) + Send + 'static,
    ) {
        let method = request.method.known();
        if this.facts.get().is_some_and(|facts| !facts.server_requests) {
            tracing::warn!(method = %request.method, "a server of this version must not send requests");
            answer(write_error(Some(&request.id), &RpcError::method_not_found(request.method.as_str())));
        } else if method == Some(Method::Ping) {
            answer(respond(&request.id, "{}"));
        } else {
            // What it weighs is known before it is decoded.
            let charge = this.waiting_bytes.guard(request.params.text().len(), Share::Quarter);
            let id = request.id.clone();
            let reply: Reply = Box::new(move |outcome| {
                answer(match outcome {
                    Ok(result) => respond(&id, result.text()),
                    Err(error) => write_error(Some(&id), &error),
                });
            });
            if let Some(method) = method.filter(|method| this.runs_tasks() && is_about_tasks(*method)) {
                return this.hosted.serve(this, method, &request, reply);
            }
            match this.question(&request, during.as_ref()) {
                Ok(question) => {
                    if let Some(wish) = this.task_wish(&question) {
                        Self::begin_task(this, &wish, question, reply, charge);
                    } else {
                        let waiting = Waiting { id: request.id, during, question, reply, charge };
                        RequestQueue::accept(this, waiting);
                    }
                }
                Err(error) => reply(Err(error)),
            }
        }
    }

    /// What a request of the server is to whoever answers it.
    fn question(&self, request: &Request, during: Option<&RequestId>) -> Result<Question, RpcError> {
        if self.handlers.request.is_some() {
            return ServerRequest::new(request, during.cloned()).map(Question::Raw);
        }
        question(request).map(Question::Typed)
    }

    /// Answers a request of the server.
    async fn answer(&self, question: Question) -> Result<RawJson, RpcError> {
        match question {
            Question::Typed(question) => self.handlers.fulfil(question).await,
            Question::Raw(request) => self.handlers.pass_on(request).await,
        }
    }

    /// Whether a server may have questions answered as tasks of this client.
    fn runs_tasks(&self) -> bool {
        let facts = self.facts.get();
        // Whoever passes requests on passes on those about tasks, too.
        self.handlers.request.is_none()
            && facts
                .is_some_and(|facts| facts.core_tasks && self.handlers.capabilities(*facts).tasks.is_some())
    }

    /// That a question shall become a task, if it may.
    fn task_wish(&self, question: &Question) -> Option<TaskMetadata> {
        let Question::Typed(question) = question else { return None };
        task::wish(question).filter(|_| self.may_become_task(question)).cloned()
    }

    fn may_become_task(&self, question: &InputRequest) -> bool {
        let handled = match question {
            InputRequest::Elicit(_) => self.handlers.elicit.is_some(),
            InputRequest::CreateMessage(_) => self.handlers.sample.is_some(),
            _ => false,
        };
        handled && self.runs_tasks()
    }

    /// Answers a question by and by: the server is told of the task at once.
    fn begin_task(
        this: &Arc<Self>,
        wish: &TaskMetadata,
        question: Question,
        reply: Reply,
        charge: Option<Charge>,
    ) {
        let task = match this.hosted.begin(this, wish) {
            Ok(task) => task,
            Err(error) => return reply(Err(error)),
        };
        let (host, task_id) = (Arc::downgrade(this), task.task_id.clone());
        let id = task::queue_id(&task_id);
        reply(task::created(task));
        let end: Reply = Box::new(move |outcome| {
            if let Some(host) = host.upgrade() {
                host.hosted.end(&host, &task_id, outcome);
            }
        });
        // The call that it came with goes on meanwhile.
        RequestQueue::accept(this, Waiting { id, during: None, question, reply: end, charge });
    }

    /// Nobody wants the answer to a question any more.
    pub(crate) fn stop(&self, id: &RequestId) {
        RequestQueue::cancel(self, id);
    }

    /// Sends a notification by and by, if the server can be reached.
    pub(crate) fn notify(&self, method: MethodName, message: Bytes) {
        let Some(client) = self.restoration.client() else { return };
        tokio::spawn(async move {
            if let Err(error) = client.requester().notify(&method, message).await {
                tracing::debug!(%error, "a notification was not sent");
            }
        });
    }

    /// Takes a notification in: the cache first, so that whoever is woken does not find what is void.
    pub(crate) fn notification(&self, notification: &Notification) {
        if let Some(method) = notification.method.known() {
            self.known_notification(method, &notification.params);
        }
        self.handlers.notification(notification);
    }

    fn known_notification(&self, method: Method, params: &Params) {
        match method {
            Method::ToolListChanged => self.changed(Change::Tools, CacheChange::ToolList, params),
            Method::PromptListChanged => self.changed(Change::Prompts, CacheChange::PromptList, params),
            Method::ResourceListChanged => self.changed(Change::Resources, CacheChange::ResourceList, params),
            Method::ResourceUpdated => {
                if let Ok(updated) = params.decode::<ResourceUpdatedNotificationParams>() {
                    let change = Change::Updated(updated.uri.clone());
                    self.changed(change, CacheChange::Resource(&updated.uri), params);
                }
            }
            Method::TaskStatus | Method::TaskChanged => self.watchers.changed(params),
            Method::Progress => self.watchers.progress(params),
            Method::LoggingMessage => {
                if let Ok(message) = params.decode::<LoggingMessageNotificationParams>() {
                    self.handlers.log(message);
                }
            }
            Method::SubscriptionsAcknowledged => {
                let acknowledged = params.decode::<SubscriptionsAcknowledgedNotificationParams>();
                if let (Ok(acknowledged), Some(tag)) = (acknowledged, tag_of(params)) {
                    self.hub.acknowledged(&tag, &acknowledged.notifications);
                }
            }
            Method::Cancelled => {
                #[derive(Deserialize)]
                struct Cancelled {
                    #[serde(rename = "requestId")]
                    id: RequestId,
                }
                if let Ok(Cancelled { id }) = params.decode() {
                    RequestQueue::cancel(self, &id);
                    self.hosted.cancelled(&id);
                    self.hub.cancelled(&id);
                }
            }
            _ => {}
        }
    }

    fn changed(&self, change: Change, void: CacheChange<'_>, params: &Params) {
        lock(&self.cache).invalidate(void);
        if matches!(change, Change::Tools) {
            self.supports.forget();
            self.wrapped.forget();
        }
        self.hub.publish(tag_of(params).as_ref(), &change);
        self.handlers.change(change);
    }

    /// The connection was lost, and another will take its place.
    pub(crate) fn interrupted(&self, why: &str) {
        RequestQueue::interrupt(self);
        self.hosted.clear();
        self.handlers.connection(ConnectionState::Lost(why.to_owned()));
    }

    /// Another connection has taken the place of the one that was lost, and nothing is known to it.
    pub(crate) fn restored(&self) {
        lock(&self.cache).clear();
        self.supports.forget();
        self.wrapped.forget();
        self.handlers.connection(ConnectionState::Restored);
        self.restoration.begin();
    }

    /// The connection is over.
    pub(crate) fn closed(&self, why: &str) {
        RequestQueue::close(self);
        self.hosted.clear();
        self.hub.closed(why);
        self.handlers.connection(ConnectionState::Closed(why.to_owned()));
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("facts", &self.facts).finish_non_exhaustive()
    }
}

/// Whether a request is about tasks of this client.
const fn is_about_tasks(method: Method) -> bool {
    matches!(method, Method::GetTask | Method::GetTaskPayload | Method::ListTasks | Method::CancelTask)
}

/// What a request of the server asks, in the form that both eras share.
fn question(request: &Request) -> Result<InputRequest, RpcError> {
    let decoded = match request.method.known() {
        Some(Method::Elicit) => request.params.decode().map(InputRequest::Elicit),
        Some(Method::CreateMessage) => request.params.decode().map(InputRequest::CreateMessage),
        Some(Method::ListRoots) => {
            request.params.decode().map(|params| InputRequest::ListRoots(Some(params)))
        }
        _ => return Err(RpcError::method_not_found(request.method.as_str())),
    };
    decoded.map_err(|error| RpcError::invalid_params(format!("{}: {error}", request.method)))
}

/// The subscription that a notification belongs to.
fn tag_of(params: &Params) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Tagged {
        #[serde(rename = "_meta")]
        meta: Option<Meta>,
    }

    params.decode::<Tagged>().ok()?.meta?.subscription_id()
}

fn respond(id: &RequestId, result: &str) -> Bytes {
    let write = |out: &mut Vec<u8>| {
        out.extend_from_slice(result.as_bytes());
        Ok(())
    };
    let response: serde_json::Result<_> = write_response(id, write);
    response.unwrap_or_else(|_| write_error(Some(id), &RpcError::internal("the answer cannot be written")))
}
