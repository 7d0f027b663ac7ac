//! The handlers that the user of the client brought, and the capabilities that follow from them.

use std::{
    any::Any,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    task::Poll,
};

use toolwire_protocol::{
    ErrorCode, Notification, RawJson, RpcError,
    wire::{
        CapabilityMap, ClientCapabilities, ClientTaskRequests, ClientTasksCapability,
        CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitationCapability,
        ElicitationTaskRequests, InputRequest, JsonObject, ListRootsResult, LoggingMessageNotificationParams,
        Root, RootsCapability, SamplingCapability, SamplingTaskRequests, TASKS_EXTENSION,
    },
};
use toolwire_transport::BoxFuture;

use super::{
    elicit::{Elicit, ElicitReply},
    server_request::ServerRequest,
};
use crate::{
    connect::{ConnectionState, Facts},
    listen::Change,
    observe::Observer,
};

type Handler<I, O> = Box<dyn Fn(I) -> BoxFuture<'static, O> + Send + Sync>;
type PassOn = Handler<ServerRequest, Result<RawJson, RpcError>>;
type Listener<I> = Box<dyn Fn(I) + Send + Sync>;

/// What the user of the client brought.
#[derive(Default)]
pub(crate) struct Handlers {
    pub(crate) elicit: Option<Handler<Elicit, ElicitReply>>,
    pub(crate) elicit_url: bool,
    /// The questions of tasks are answered without a handler.
    pub(crate) elicit_later: bool,
    pub(crate) sample: Option<Handler<CreateMessageRequestParams, Result<CreateMessageResult, RpcError>>>,
    pub(crate) sample_tools: bool,
    pub(crate) sample_context: bool,
    pub(crate) roots: Option<Handler<(), Vec<Root>>>,
    /// Takes the place of the handlers before, with the capabilities that it stands for.
    pub(crate) request: Option<(PassOn, ClientCapabilities)>,
    pub(crate) notification: Option<Listener<Notification>>,
    pub(crate) log: Option<Listener<LoggingMessageNotificationParams>>,
    pub(crate) change: Option<Listener<Change>>,
    pub(crate) connection: Option<Listener<ConnectionState>>,
    pub(crate) observer: Option<Observer>,
    pub(crate) extensions: CapabilityMap,
    pub(crate) experimental: CapabilityMap,
    /// Neither are tasks of servers followed, nor are any run for them.
    pub(crate) without_tasks: bool,
}

impl Handlers {
    /// What the client can do: nothing that has no handler, but for what is said to be answered later.
    pub(super) fn capabilities(&self, facts: Facts) -> ClientCapabilities {
        if let Some((_, declared)) = &self.request {
            return declared.clone();
        }
        let mut can = ClientCapabilities::new();
        let later = self.elicit_later && facts.tasks_extension && !self.without_tasks;
        if self.elicit.is_some() || later {
            let modes = ElicitationCapability::new().form(JsonObject::new());
            can = can.elicitation(if self.elicit_url { modes.url(JsonObject::new()) } else { modes });
        }
        if self.sample.is_some() {
            let mut sampling = SamplingCapability::new();
            sampling.tools = self.sample_tools.then(JsonObject::new);
            sampling.context = self.sample_context.then(JsonObject::new);
            can = can.sampling(sampling);
        }
        if self.roots.is_some() {
            let roots = RootsCapability::new();
            can = can.roots(if facts.roots_changes { roots.list_changed(true) } else { roots });
        }
        let mut extensions = self.extensions.clone();
        if facts.tasks_extension && !self.without_tasks {
            extensions.entry(TASKS_EXTENSION.to_owned()).or_default();
        }
        if !extensions.is_empty() {
            can = can.extensions(extensions);
        }
        if facts.core_tasks && !self.without_tasks {
            can.tasks = self.tasks();
        }
        if !self.experimental.is_empty() {
            can = can.experimental(self.experimental.clone());
        }
        can
    }

    /// Which questions may become tasks of this client: those that can take a while, if there is a handler.
    fn tasks(&self) -> Option<ClientTasksCapability> {
        let mut requests = ClientTaskRequests::new();
        requests.sampling =
            self.sample.as_ref().map(|_| SamplingTaskRequests::new().create_message(JsonObject::new()));
        requests.elicitation =
            self.elicit.as_ref().map(|_| ElicitationTaskRequests::new().create(JsonObject::new()));
        let some = requests.sampling.is_some() || requests.elicitation.is_some();
        some.then(|| {
            let can = ClientTasksCapability::new().list(JsonObject::new()).cancel(JsonObject::new());
            can.requests(requests)
        })
    }

    /// Answers a question of the server. A handler that panics becomes an error.
    pub(super) async fn fulfil(&self, request: InputRequest) -> Result<RawJson, RpcError> {
        if self.request.is_some() {
            return self.pass_on(ServerRequest::of_round(&request)?).await;
        }
        let method = request.method();
        let missing = || RpcError::method_not_found(method);
        let answer = match request {
            InputRequest::Elicit(params) => {
                let handler = self.elicit.as_ref().ok_or_else(missing)?;
                if matches!(params, ElicitRequestParams::Url(_)) && !self.elicit_url {
                    return Err(RpcError::invalid_params("this client does not send people to URLs"));
                }
                let elicit = Elicit::new(params);
                let reply = guarded(method, || handler(elicit.clone())).await?;
                RawJson::of(&reply.complete(elicit.schema()))
            }
            InputRequest::CreateMessage(params) => {
                let handler = self.sample.as_ref().ok_or_else(missing)?;
                if params.tools.is_some() && !self.sample_tools {
                    return Err(RpcError::invalid_params("this client does not offer tools to the model"));
                }
                RawJson::of(&guarded(method, || handler(*params)).await??)
            }
            InputRequest::ListRoots(_) => {
                let handler = self.roots.as_ref().ok_or_else(missing)?;
                RawJson::of(&ListRootsResult::new(guarded(method, || handler(())).await?))
            }
            _ => return Err(missing()),
        };
        answer.map_err(|error| RpcError::internal(format!("the answer cannot be written: {error}")))
    }

    /// Hands a request of the server on as it came. A handler that panics becomes an error.
    pub(super) async fn pass_on(&self, request: ServerRequest) -> Result<RawJson, RpcError> {
        let method = request.method().clone();
        let Some((handler, _)) = &self.request else {
            return Err(RpcError::method_not_found(method.as_str()));
        };
        guarded(method.as_str(), || handler(request)).await?
    }

    pub(super) fn notification(&self, notification: &Notification) {
        if let Some(listener) = &self.notification {
            quietly(|| listener(notification.clone()));
        }
    }

    pub(super) fn log(&self, message: LoggingMessageNotificationParams) {
        if let Some(listener) = &self.log {
            quietly(|| listener(message));
        }
    }

    pub(super) fn connection(&self, state: ConnectionState) {
        if let Some(listener) = &self.connection {
            quietly(|| listener(state));
        }
    }

    pub(super) fn change(&self, change: Change) {
        if let Some(listener) = &self.change {
            quietly(|| listener(change));
        }
    }
}

/// Runs a handler to its end, and catches it when it panics.
async fn guarded<T>(method: &str, handler: impl FnOnce() -> BoxFuture<'static, T>) -> Result<T, RpcError> {
    let panicked = |payload: Box<dyn Any + Send>| {
        tracing::error!(method, panic = panic_text(&*payload), "a handler panicked");
        RpcError::new(ErrorCode::INTERNAL_ERROR, format!("the client failed to answer {method}"))
    };
    let mut future = catch_unwind(AssertUnwindSafe(handler)).map_err(panicked)?;
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(payload) => Poll::Ready(Err(panicked(payload))),
    })
    .await
}

/// Calls a listener; one that panics does not take the connection with it.
pub(crate) fn quietly(call: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(call)) {
        tracing::error!(panic = panic_text(&*payload), "a listener panicked");
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("something else than text")
}
