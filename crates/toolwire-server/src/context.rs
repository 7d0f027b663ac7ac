//! The one request context. Handlers, routers and layers see this and never the protocol era.

use std::{
    any::{Any, TypeId},
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use toolwire_protocol::{
    Method, MethodName, Params, RequestId, RpcError, Version, peek::Peek, uri_template::Variables, wire::Meta,
};
use toolwire_transport::{Ledger, ledger::Charge};

use crate::{
    Caller, CallerId, CallerKey, Lack, Notifier, NotifyError, Principal, Server,
    access::Viewer,
    ask::{Asking, Journal},
    cancel::Cancel,
    engine::AskingTime,
    extract::{Log, Progress, ProgressGuard},
    handler::{FromContext, HandlerSpec, Rejection},
    notify::Custom,
    outbox::Outbox,
    tasks::{InTask, Run},
};

/// Everything that belongs to one request: who asks, what for, and the ways back to the caller.
///
/// It is an extractor like any other, and cheap to clone. It is the same for every protocol revision:
/// what the caller can do is asked with [`caller`](Self::caller), never by version.
///
/// ```
/// use toolwire_server::{Context, Server, tool};
///
/// async fn whoami(cx: Context) -> String {
///     match cx.caller().info() {
///         Some(info) => format!("you are {}", info.name),
///         None => "you did not say".to_owned(),
///     }
/// }
///
/// let server = Server::builder("demo", "1.0").tool(tool("whoami", whoami)).build().unwrap();
/// ```
#[derive(Clone)]
pub struct Context(pub(crate) Arc<RequestInner>);

/// What is behind a [`Context`].
pub(crate) struct RequestInner {
    pub(crate) id: RequestId,
    pub(crate) method: MethodName,
    /// For the codec, which writes the answer, and for whoever needs to know whether there is a
    /// [`Feature`](toolwire_protocol::Feature).
    pub(crate) version: Version,
    pub(crate) params: Params,
    pub(crate) peek: Box<Peek>,
    /// The connection that the request came by, where one request follows another.
    pub(crate) connection: Option<CallerId>,
    /// What is known of the caller from the start, as it is of a legacy one.
    pub(crate) known_caller: Option<Caller>,
    /// What the request says of its caller; read when a handler first asks.
    pub(crate) told_caller: OnceLock<Caller>,
    pub(crate) outbox: Outbox,
    /// Made when it is first needed, as it is only for requests that take their time.
    pub(crate) cancel: OnceLock<Cancel>,
    pub(crate) extensions: Extensions,
    pub(crate) captures: OnceLock<Variables>,
    pub(crate) mime_type: OnceLock<String>,
    pub(crate) tool: OnceLock<Arc<crate::route::ToolRoute>>,
    pub(crate) progress: ProgressGuard,
    /// Made when a handler first asks something.
    pub(crate) journal: OnceLock<Box<Mutex<Journal>>>,
    /// Made with the first question that a handler waits for.
    pub(crate) asking_time: OnceLock<Box<AskingTime>>,
    /// What the answers to questions weigh, which the handler has until it is done.
    pub(crate) answers: Mutex<Option<Charge>>,
    pub(crate) asking: Asking,
    /// Where a run that has left its request sends what it has to say.
    pub(crate) detached: OnceLock<Box<Outbox>>,
    /// What a call has that may become a task.
    pub(crate) task: OnceLock<Arc<InTask>>,
    /// What is held for the request is charged here.
    pub(crate) ledger: Ledger,
    pub(crate) server: Server,
    /// What the caller turned out to be missing while the request was handled.
    pub(crate) lack: Mutex<Option<Box<Lack>>>,
}

/// What a [`Context`] is made of. Everything else about a request is found out while it is served.
pub(crate) struct RequestParts {
    pub(crate) id: RequestId,
    pub(crate) method: MethodName,
    pub(crate) version: Version,
    pub(crate) params: Params,
    pub(crate) peek: Box<Peek>,
    pub(crate) connection: Option<CallerId>,
    pub(crate) known_caller: Option<Caller>,
    pub(crate) outbox: Outbox,
    pub(crate) extensions: Extensions,
    pub(crate) asking: Asking,
    pub(crate) ledger: Ledger,
    pub(crate) server: Server,
}

impl RequestParts {
    /// The only way to make a context.
    #[inline]
    pub(crate) fn into_context(self) -> Context {
        Context(Arc::new(RequestInner {
            id: self.id,
            method: self.method,
            version: self.version,
            params: self.params,
            peek: self.peek,
            connection: self.connection,
            known_caller: self.known_caller,
            told_caller: OnceLock::new(),
            outbox: self.outbox,
            cancel: OnceLock::new(),
            extensions: self.extensions,
            captures: OnceLock::new(),
            mime_type: OnceLock::new(),
            tool: OnceLock::new(),
            progress: ProgressGuard::default(),
            journal: OnceLock::new(),
            asking_time: OnceLock::new(),
            answers: Mutex::default(),
            asking: self.asking,
            detached: OnceLock::new(),
            task: OnceLock::new(),
            ledger: self.ledger,
            server: self.server,
            lack: Mutex::default(),
        }))
    }
}

impl Context {
    /// The id of the request.
    pub fn request_id(&self) -> &RequestId {
        &self.0.id
    }

    /// The method of the request.
    pub fn method(&self) -> &MethodName {
        &self.0.method
    }

    /// What the request is about: the name of a tool or prompt, or the URI of a resource.
    ///
    /// It is the very member that decides who answers, whatever else the parameters hold.
    pub fn target(&self) -> Option<&str> {
        let (name, uri) = (self.0.peek.name.as_deref(), self.0.peek.uri.as_deref());
        match self.method().known() {
            Some(Method::CallTool | Method::GetPrompt) => name,
            Some(Method::ReadResource | Method::Subscribe | Method::Unsubscribe) => uri,
            _ => name.or(uri),
        }
    }

    /// The parameters as they came.
    pub fn params(&self) -> &Params {
        &self.0.params
    }

    /// What is known of the caller.
    pub fn caller(&self) -> &Caller {
        let told = || Caller::of_request(self.0.version, self.0.peek.meta.as_ref(), self.0.connection);
        self.0.known_caller.as_ref().unwrap_or_else(|| self.0.told_caller.get_or_init(told))
    }

    /// The `_meta` of the request, without what the protocol itself reads from it being lost.
    pub fn meta(&self) -> Meta {
        let raw = self.0.peek.meta.as_ref().map(|meta| &meta.raw[..]);
        raw.and_then(|raw| serde_json::from_slice(raw).ok()).unwrap_or_default()
    }

    /// Reports how far the work has come. Does nothing when the caller did not ask for it.
    pub fn progress(&self) -> Progress {
        Progress::new(self.clone())
    }

    /// Sends log messages to the caller, as far as it wants them.
    pub fn log(&self) -> Log {
        Log::new(self.clone())
    }

    /// Sends the caller a notification of one's own, on the stream of this request. Says whether it was sent: it is not
    /// after the answer, when the caller reads too slowly, or when the caller would not know what it means. A client
    /// whose requests stand alone says so by declaring an extension of the same vendor, `acme/anything` for
    /// `acme/step`; a legacy session gets them all.
    ///
    /// ```
    /// use toolwire_server::{Context, NotifyError, tool};
    ///
    /// async fn build(cx: Context) -> Result<&'static str, NotifyError> {
    ///     cx.notify_custom("acme/step", &serde_json::json!({ "step": "compile" }))?;
    ///     Ok("built")
    /// }
    ///
    /// let route = tool("build", build);
    /// ```
    ///
    /// # Errors
    /// When the name is one of the protocol, or the parameters are not an object.
    pub fn notify_custom<P: Serialize + ?Sized>(
        &self,
        method: &str,
        params: &P,
    ) -> Result<bool, NotifyError> {
        let custom = Custom::new(method, params)?;
        if !self.caller().takes_notification(method) {
            return Ok(false);
        }
        let message = custom.message(None).map_err(|error| NotifyError::Params(error.to_string()))?;
        Ok(self.0.outbox.push_message(message))
    }

    /// Tells clients that something has changed.
    pub fn notify(&self) -> &Notifier {
        self.0.server.notify()
    }

    /// The server this request came to, for instance to add a tool while serving.
    pub fn server(&self) -> &Server {
        &self.0.server
    }

    /// Which run of the handler this is: 1 for the first, and one more each time it is run again with the answers
    /// to its questions. The same request may come back to another process for that.
    pub fn round(&self) -> u32 {
        let retry = self.0.peek.request_state.is_some() || self.0.peek.input_responses.is_some();
        if retry || self.0.journal.get().is_some() { self.journal().round() } else { 1 }
    }

    /// Resolves when the caller has cancelled the request. A handler is stopped by itself then; this is
    /// for work it has handed to other tasks.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + 'static {
        let cancel = self.cancel().clone();
        async move { cancel.cancelled().await }
    }

    /// Whether the caller has cancelled the request.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancel.get().is_some_and(Cancel::is_cancelled)
    }

    /// A state given to [`ServerBuilder::state`](crate::ServerBuilder::state).
    pub fn state<S: Clone + Send + Sync + 'static>(&self) -> Option<S> {
        self.0.server.states().get::<S>().cloned()
    }

    /// Something a transport attached to the request, for instance the parts of an HTTP request.
    pub fn extension<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.0.extensions.get::<T>().cloned()
    }

    /// The raw `arguments` of a `tools/call` or `prompts/get`; the empty object if there were none.
    pub fn arguments(&self) -> Bytes {
        self.0.peek.arguments.clone().unwrap_or_else(|| Bytes::from_static(b"{}"))
    }

    /// Decodes the parameters of the request, for handlers of custom methods.
    ///
    /// # Errors
    /// Invalid params, saying where.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        self.0
            .params
            .decode()
            .map_err(|error| RpcError::invalid_params(format!("{}: {error}", self.0.method)))
    }

    /// Whether the request stays open until something happens.
    pub(crate) fn is_listener(&self) -> bool {
        self.0.method.known().is_some_and(|method| method.info().open_ended)
    }

    /// The media type that the resource being read was registered with.
    pub(crate) fn resource_mime_type(&self) -> Option<String> {
        self.0.mime_type.get().cloned()
    }

    /// Who is calling, if the transport has found out.
    pub fn principal(&self) -> Option<&Principal> {
        self.0.extensions.get()
    }

    /// Through whose eyes the catalog is looked at.
    pub(crate) fn viewer(&self) -> Viewer<'_> {
        self.0.server.viewer(self.principal())
    }

    /// Whom the request is counted against, where that is known.
    pub(crate) fn caller_key(&self) -> Option<CallerKey> {
        CallerKey::of(&self.0.extensions)
    }

    pub(crate) fn cancel(&self) -> &Cancel {
        self.0.cancel.get_or_init(Cancel::default)
    }

    /// Cancels the request, unless its handler goes on without it.
    pub(crate) fn cancel_request(&self) {
        if self.0.detached.get().is_none() {
            self.cancel().cancel();
        }
    }

    /// Whether the request was cancelled, and not only a run that has left it.
    pub(crate) fn is_request_cancelled(&self) -> bool {
        self.is_cancelled() && self.0.detached.get().is_none()
    }

    /// How questions reach the caller.
    pub(crate) fn asking(&self) -> &Asking {
        if self.0.task.get().is_some_and(|task| task.is_running()) {
            return &Asking::Task;
        }
        match self.0.detached.get() {
            None => &self.0.asking,
            Some(_) => &Asking::Closed("the request was answered already"),
        }
    }

    /// The run of a task that the handler belongs to, if it does.
    pub(crate) fn task_run(&self) -> Option<Arc<dyn Run>> {
        self.0.task.get()?.run()
    }

    /// Where a handler waits between its extractors and its body, until it is known whether its call becomes a task.
    #[doc(hidden)]
    #[inline]
    pub async fn threshold(&self) {
        if let Some(task) = self.0.task.get() {
            task.gate.pass().await;
        }
    }

    /// Where the handler sends messages.
    pub(crate) fn outbox(&self) -> &Outbox {
        self.0.detached.get().map_or(&self.0.outbox, |own| own)
    }

    pub(crate) fn journal(&self) -> MutexGuard<'_, Journal> {
        self.0.journal.get_or_init(Box::default).lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn captures(&self) -> Option<&Variables> {
        self.0.captures.get()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.target();
        f.debug_struct("Context")
            .field("id", &self.0.id)
            .field("method", &self.0.method)
            .field("target", &target)
            .finish_non_exhaustive()
    }
}

impl FromContext for Context {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        Ok(cx.clone())
    }

    fn describe(spec: &mut HandlerSpec) {
        spec.logs();
    }
}

/// Values by their type: what a transport attaches to a request, and the states of a server.
///
/// There are never many, so a list is quicker than a map.
#[derive(Clone, Default)]
pub struct Extensions(Vec<(TypeId, Arc<dyn Any + Send + Sync>)>);

impl Extensions {
    /// With room for so many values.
    pub fn with_capacity(values: usize) -> Self {
        Self(Vec::with_capacity(values))
    }

    /// Adds a value, replacing one of the same type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        let id = TypeId::of::<T>();
        let value = Arc::new(value);
        match self.0.iter_mut().find(|(known, _)| *known == id) {
            Some((_, place)) => *place = value,
            None => self.0.push((id, value)),
        }
    }

    /// The value of type `T`, if there is one.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        let id = TypeId::of::<T>();
        self.0.iter().find(|(known, _)| *known == id)?.1.downcast_ref()
    }

    pub(crate) fn has(&self, id: TypeId) -> bool {
        self.0.iter().any(|(known, _)| *known == id)
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extensions({})", self.0.len())
    }
}
