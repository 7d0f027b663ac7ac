//! The one request context. Handlers, routers and layers see this and never the protocol era.

use std::{
    any::{Any, TypeId},
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use toolwire_protocol::{
    Method, MethodName, Params, RequestId, RpcError, Version, peek::Peek, uri_template::Variables, wire::Meta,
};
use toolwire_transport::Ledger;

use crate::{
    Caller, CallerKey, Notifier, Principal, Server,
    ask::{Asks, Journal},
    cancel::Cancel,
    engine::AskingTime,
    extract::{Log, Progress},
    handler::{FromContext, HandlerSpec, Rejection},
    outbox::Outbox,
};

/// Everything that belongs to one request: who asks, what for, and the ways back to the caller.
///
/// It is an extractor like any other, and cheap to clone. It is the same for every protocol revision:
/// what the caller can do is asked with [`client`](Self::client), never by version.
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
    /// Only the codec, which writes the answer, may look at this.
    pub(crate) version: Version,
    pub(crate) params: Params,
    pub(crate) peek: Box<Peek>,
    /// Made when a handler of a modern request first asks; there from the start for a legacy one.
    pub(crate) caller: OnceLock<Caller>,
    pub(crate) outbox: Outbox,
    /// Made when it is first needed, as it is only for requests that take their time.
    pub(crate) cancel: OnceLock<Cancel>,
    pub(crate) extensions: Extensions,
    pub(crate) captures: OnceLock<Variables>,
    pub(crate) mime_type: OnceLock<String>,
    pub(crate) tool: OnceLock<Arc<crate::route::ToolRoute>>,
    pub(crate) progress: crate::extract::ProgressGuard,
    /// Made when a handler first asks something.
    pub(crate) journal: OnceLock<Box<Mutex<Journal>>>,
    /// Made with the first question that a handler waits for.
    pub(crate) asking: OnceLock<Box<AskingTime>>,
    /// How to ask a legacy client.
    pub(crate) asks: Option<Asks>,
    /// What is held for the request is charged here.
    pub(crate) ledger: Ledger,
    pub(crate) server: Server,
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
        self.0.caller.get_or_init(|| Caller::of_request(self.0.version, self.0.peek.meta.as_ref()))
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

    /// Whether the request stays open to carry changes.
    pub(crate) fn is_listener(&self) -> bool {
        self.0.method.known() == Some(Method::Listen)
    }

    /// The media type that the resource being read was registered with.
    pub(crate) fn resource_mime_type(&self) -> Option<String> {
        self.0.mime_type.get().cloned()
    }

    /// Who is calling, if the transport has found out.
    pub fn principal(&self) -> Option<&Principal> {
        self.0.extensions.get()
    }

    /// Whom the request is counted against, where that is known.
    pub(crate) fn caller_key(&self) -> Option<CallerKey> {
        CallerKey::of(&self.0.extensions)
    }

    pub(crate) fn cancel(&self) -> &Cancel {
        self.0.cancel.get_or_init(Cancel::default)
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
