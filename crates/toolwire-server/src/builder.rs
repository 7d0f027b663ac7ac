//! Describing a server. What is wrong with the description is found when it is built.

use std::{
    any::TypeId,
    collections::BTreeMap,
    error::Error,
    fmt,
    future::Future,
    sync::{Arc, Mutex, OnceLock, RwLock},
};

use serde::{Serialize, de::DeserializeOwned};
use toolwire_protocol::{
    Method, RawJson, RpcError, ServerCapability, Version,
    classify::Served,
    codec::ResultCodec,
    wire::{CacheHint, Icon, Implementation, JsonObject},
};
use toolwire_store::Store;

use crate::{
    Context, Extensions, Group, IntoRoutes, Limits, Notifier, Observer, PromptRoute, Reply, ResourceRoute,
    RouteLayer, Server, StateKeys, TemplateRoute, ToolRoute,
    access::{Access, Policy},
    admission::Admission,
    catalog::{Announced, Catalog, Offered},
    dispatch,
    engine::SlowRoutes,
    extract::PrincipalSessions,
    handler::{Answer, SharedEndpoint},
    layer::Route,
    observe::Observers,
    output::Telling,
    route::Entry,
    server::Shared,
    tasks::{self, Carrier, Engine},
};

/// The description of a server. Made by [`Server::builder`].
#[must_use]
pub struct ServerBuilder {
    info: Implementation,
    instructions: Option<String>,
    limits: Limits,
    states: Extensions,
    /// A state that was given twice.
    doubled: Option<&'static str>,
    announced: Announced,
    versions: Vec<Version>,
    routes: Group,
    custom: BTreeMap<Box<str>, SharedEndpoint>,
    list_cache: CacheHint,
    layers: Vec<Box<dyn RouteLayer>>,
    state_keys: StateKeys,
    replay_check: bool,
    telling: Telling,
    policy: Policy,
    /// What is wrong with the rules about scopes.
    problems: Vec<String>,
    observers: Vec<Arc<dyn Observer>>,
    store: Option<(Store, Engine)>,
    carriers: Vec<Carrier>,
}

impl ServerBuilder {
    pub(crate) fn new(info: Implementation) -> Self {
        Self {
            info,
            instructions: None,
            limits: Limits::default(),
            states: Extensions::default(),
            doubled: None,
            announced: Announced::default(),
            versions: Version::ALL.to_vec(),
            routes: Group::new(),
            custom: BTreeMap::new(),
            list_cache: CacheHint::default(),
            layers: Vec::new(),
            state_keys: StateKeys::of_this_process(),
            replay_check: false,
            telling: Telling::default(),
            policy: Policy::default(),
            problems: Vec::new(),
            observers: Vec::new(),
            store: None,
            carriers: Vec::new(),
        }
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// One sentence about the server.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Where to read more.
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.info.website_url = Some(url.into());
        self
    }

    /// An icon. May be given several times.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.get_or_insert_default().push(icon);
        self
    }

    /// How a model should use the server as a whole.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// A value for handlers, taken as [`State<S>`](crate::State). One value per type: give a second one a type of its
    /// own, for instance as `struct Replica(Database)`.
    pub fn state<S: Clone + Send + Sync + 'static>(mut self, state: S) -> Self {
        if self.states.has(TypeId::of::<S>()) {
            self.doubled = Some(std::any::type_name::<S>());
        }
        self.states.insert(state);
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, route: impl Into<ToolRoute>) -> Self {
        self.routes.tools.push(Arc::new(route.into()));
        self
    }

    /// Adds a prompt.
    pub fn prompt(mut self, route: impl Into<PromptRoute>) -> Self {
        self.routes.prompts.push(Arc::new(route.into()));
        self
    }

    /// Adds a resource.
    pub fn resource(mut self, route: impl Into<ResourceRoute>) -> Self {
        self.routes.resources.push(Arc::new(route.into()));
        self
    }

    /// Adds a resource template.
    pub fn template(mut self, route: impl Into<TemplateRoute>) -> Self {
        self.routes.templates.push(Arc::new(route.into()));
        self
    }

    /// Adds the routes of a list made by [`routes!`](crate::routes), of a [`Group`], or of a service.
    pub fn routes(mut self, routes: impl IntoRoutes) -> Self {
        self.routes = self.routes.routes(routes);
        self
    }

    /// Answers a method that is not part of the protocol, for instance of an extension.
    ///
    /// ```
    /// use toolwire_server::{Context, Server};
    /// use toolwire_protocol::RpcError;
    ///
    /// let server = Server::builder("demo", "1.0")
    ///     .method("acme/version", |_: Context| async { Ok::<_, RpcError>(serde_json::json!({ "version": 3 })) })
    ///     .build()
    ///     .unwrap();
    /// ```
    pub fn method<F, Fut, T>(mut self, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, RpcError>> + Send + 'static,
        T: Serialize,
    {
        let handler = Arc::new(handler);
        let endpoint = move |cx: Context| -> Answer {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let answer = handler(cx).await?;
                let value = RawJson::of(&answer).map_err(|error| {
                    tracing::error!(%error, "the result of a custom method could not be serialised");
                    RpcError::internal("the result could not be serialised")
                })?;
                Ok(Reply::Custom(value))
            })
        };
        self.custom.insert(name.into().into(), Arc::new(endpoint));
        self
    }

    /// Asks the callers of a method that was added by [`method`](Self::method) for scopes.
    ///
    /// ```
    /// use toolwire_server::{Context, Server};
    /// use toolwire_protocol::RpcError;
    ///
    /// let server = Server::builder("demo", "1.0")
    ///     .method("acme/restart", |_: Context| async { Ok::<_, RpcError>("restarted") })
    ///     .method_scopes("acme/restart", ["acme:admin"])
    ///     .build()
    ///     .unwrap();
    /// ```
    pub fn method_scopes(
        mut self,
        name: impl Into<String>,
        scopes: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Self {
        let name = name.into();
        let access = self.policy.methods.entry(name.as_str().into()).or_insert_with(|| Access::new(true));
        if let Err(error) = access.require(scopes) {
            self.problems.push(format!("method {name:?}: {error}"));
        }
        self
    }

    /// Whoever has `scope` has `others` as well, and what those include.
    ///
    /// ```
    /// use toolwire_server::{Server, tool};
    ///
    /// let server = Server::builder("files", "1.0")
    ///     .tool(tool("delete", || async { "deleted" }).scopes(["files:write"]))
    ///     .scope_implies("files:admin", ["files:write", "files:read"])
    ///     .build()
    ///     .unwrap();
    /// ```
    pub fn scope_implies(
        mut self,
        scope: impl AsRef<str>,
        others: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Self {
        if let Err(error) = self.policy.rules.imply(scope.as_ref(), others) {
            self.problems.push(format!("scope_implies({:?}, …): {error}", scope.as_ref()));
        }
        self
    }

    /// Whether routes that ask for scopes are hidden from those who do not have them, as if
    /// [`visible_to`](ToolRoute::visible_to) said so. By default everybody sees them, and learns what to ask for by
    /// being refused.
    ///
    /// A resource that is hidden does not keep its URI from others: it is read from the next template that fits, which
    /// may ask for less. Where templates overlap, the broader one has to ask for what the narrower one does, or leave
    /// out what that stands for.
    pub fn hide_without_scopes(mut self, hide: bool) -> Self {
        self.policy.hide_without_scopes = hide;
        self
    }

    /// Advertises a capability that does not follow from what is registered, for instance `tools` when the
    /// first one will be added while serving.
    pub fn advertise(mut self, capability: ServerCapability) -> Self {
        self.announced.always.push(capability);
        self
    }

    /// Advertises an extension with its settings.
    pub fn extension(mut self, name: impl Into<String>, settings: JsonObject) -> Self {
        self.announced.extensions.insert(name.into(), settings);
        self
    }

    /// Advertises an experimental capability.
    pub fn experimental(mut self, name: impl Into<String>, settings: JsonObject) -> Self {
        self.announced.experimental.insert(name.into(), settings);
        self
    }

    /// Serves only these revisions. By default all of them are served.
    pub fn versions(mut self, versions: impl IntoIterator<Item = Version>) -> Self {
        self.versions = versions.into_iter().collect();
        self
    }

    /// Replaces the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The keys for what clients keep between the rounds of a request that asks. Replicas need the same ones.
    pub fn state_keys(mut self, keys: StateKeys) -> Self {
        self.state_keys = keys;
        self
    }

    /// In debug builds, runs every handler that asks a second time before its questions go out, and fails the call
    /// of one that asks something else or takes other steps: it would misbehave when it is run again for real.
    pub fn replay_check(mut self, on: bool) -> Self {
        self.replay_check = on;
        self
    }

    /// Sends callers the whole chain of an error that a handler returns, not only its own message. Such chains name
    /// hosts, paths and whatever else libraries found worth saying, so it is for callers that may know all of it.
    pub fn expose_sources(mut self) -> Self {
        self.telling = Telling::Sources;
        self
    }

    /// Whether callers are told nothing of an error that a handler returns, unless it is a
    /// [`ToolError`](crate::ToolError): they get a reference, and the log has the error with it. By default they are
    /// told its own message, and the errors behind it are logged.
    pub fn mask_errors(mut self, mask: bool) -> Self {
        self.telling = if mask { Telling::Masked } else { Telling::default() };
        self
    }

    /// How long clients may keep lists and the description of the server. By default not at all.
    pub fn list_cache(mut self, hint: CacheHint) -> Self {
        self.list_cache = hint;
        self
    }

    /// Puts a `tower` layer around every request. The last one given is the outermost.
    pub fn layer(mut self, layer: impl RouteLayer + 'static) -> Self {
        self.layers.push(Box::new(layer));
        self
    }

    /// Tells somebody who comes, who leaves and what is asked. May be given several times.
    pub fn observe(mut self, observer: impl Observer) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Keeps tasks in a store, so that they outlive the process, and replicas with the same store share them. Without it they
    /// are kept in memory, within limits, and end with the process.
    ///
    /// Sessions of the legacy era stay in the process that began them: over HTTP they need sticky routing.
    ///
    /// With [`state_keys`](Self::state_keys), everything that a store gets to see of a task but names and times is sealed.
    ///
    /// ```
    /// use toolwire_server::{Server, TaskPolicy, tool};
    /// use toolwire_store::memory::MemoryStore;
    ///
    /// let store = MemoryStore::default().store();
    /// let replica = |store| {
    ///     let report = tool("report", || async { "done" }).task(TaskPolicy::optional());
    ///     Server::builder("reports", "1.0").store(store).tool(report).build()
    /// };
    /// let (one, two) = (replica(store.clone()).unwrap(), replica(store).unwrap());
    /// ```
    pub fn store(mut self, store: Store) -> Self {
        self.store = Some((store, tasks::engine));
        self
    }

    /// Lets an extension of a request travel with the task that a call becomes, as the tenant it was made for. Everything
    /// else that a transport attaches, tokens above all, stays with the request.
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use toolwire_server::{Extension, Server, TaskPolicy, tool};
    ///
    /// #[derive(Clone, Serialize, Deserialize)]
    /// struct Tenant(String);
    ///
    /// async fn report(Extension(tenant): Extension<Tenant>) -> String {
    ///     tenant.0
    /// }
    ///
    /// let report = || tool("report", report).task(TaskPolicy::optional());
    /// assert!(Server::builder("reports", "1.0").tool(report()).build().is_err());
    /// assert!(Server::builder("reports", "1.0").carry::<Tenant>().tool(report()).build().is_ok());
    /// ```
    pub fn carry<T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static>(mut self) -> Self {
        let carrier = Carrier::of::<T>();
        if self.carriers.iter().all(|known| known.id != carrier.id) {
            self.carriers.push(carrier);
        }
        self
    }

    /// Checks the description and makes the server.
    ///
    /// # Errors
    /// [`BuildError`] names the route and says what is wrong with it.
    pub fn build(self) -> Result<Server, BuildError> {
        if self.versions.is_empty() {
            return Err(BuildError("a server must serve at least one protocol version".to_owned()));
        }
        if let Some(name) = self.doubled {
            return Err(BuildError(format!(
                "there are two states of type {name}, and no way to tell them apart; give one of them a type of its own"
            )));
        }
        if let Some(problem) = self.problems.into_iter().next() {
            return Err(BuildError(problem));
        }
        if let Some(name) = self.policy.methods.keys().find(|name| !self.custom.contains_key(*name)) {
            return Err(BuildError(format!(
                "method_scopes({name:?}, …): there is no such method; add it by .method(…)"
            )));
        }
        let mut served = Served::new(self.versions);
        for name in self.custom.keys() {
            if Method::from_name(name).is_some() {
                return Err(BuildError(format!(
                    "method {name:?}: it is part of the protocol and cannot be replaced"
                )));
            }
            served.custom_methods.insert(name.clone());
        }
        let mut catalog = Catalog::new(served);
        let Group { tools, prompts, resources, templates } = self.routes;
        let surroundings = Surroundings { states: &self.states, carriers: &self.carriers };
        fill(&mut catalog, tools, surroundings)?;
        fill(&mut catalog, prompts, surroundings)?;
        fill(&mut catalog, resources, surroundings)?;
        fill(&mut catalog, templates, surroundings)?;
        catalog.settle(&self.announced);

        let layers = (!self.layers.is_empty()).then(|| {
            let inner: SharedEndpoint = Arc::new(|cx: Context| -> Answer { dispatch::route(cx) });
            self.layers.iter().fold(Route(inner), |route, layer| layer.wrap(route)).0
        });
        let guarded = catalog.is_guarded() || !self.policy.methods.is_empty();
        Ok(Server::new(Shared {
            codec: ResultCodec::new(&self.info),
            info: self.info,
            instructions: self.instructions,
            admission: Admission::new(&self.limits),
            slow_routes: SlowRoutes::default(),
            limits: self.limits,
            states: self.states,
            announced: self.announced,
            catalog: RwLock::new(Arc::new(catalog)),
            editing: Mutex::default(),
            custom: self.custom,
            notifier: Notifier::default(),
            list_cache: self.list_cache,
            layers,
            shutdown: crate::cancel::Cancel::default(),
            state_keys: self.state_keys,
            replay_check: self.replay_check,
            telling: self.telling,
            policy: self.policy,
            guarded: guarded.into(),
            observers: Observers::new(self.observers),
            principal_sessions: PrincipalSessions::default(),
            store: self.store,
            carriers: self.carriers,
            tasks: OnceLock::new(),
        }))
    }
}

fn fill<R: Offered>(
    catalog: &mut Catalog,
    routes: Vec<Arc<R>>,
    surroundings: Surroundings<'_>,
) -> Result<(), BuildError> {
    R::registry(catalog).reserve(routes.len());
    for route in routes {
        BuildError::check(&*route, R::KIND, surroundings)?;
        catalog.add(route).map_err(|route| BuildError::taken(R::KIND, route.key()))?;
    }
    Ok(())
}

/// What a route finds around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) states: &'a Extensions,
    /// What travels with a task.
    pub(crate) carriers: &'a [Carrier],
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("info", &self.info)
            .field("routes", &self.routes)
            .finish_non_exhaustive()
    }
}

/// A server that cannot be built as described. The text says which part and what is wrong with it.
#[derive(Clone, PartialEq, Eq)]
pub struct BuildError(String);

impl BuildError {
    pub(crate) fn taken(kind: &str, key: &str) -> Self {
        Self(format!("{kind} {key:?} is registered twice"))
    }

    pub(crate) fn check(route: &dyn Entry, kind: &str, surroundings: Surroundings<'_>) -> Result<(), Self> {
        let Surroundings { states, carriers } = surroundings;
        let (key, needs) = (route.key(), route.needs());
        if key.is_empty() {
            return Err(Self(format!("a {kind} must have a name")));
        }
        if let Some(problem) = route.problem() {
            return Err(Self(format!("{kind} {key:?}: {problem}")));
        }
        if let Some(problem) = needs.problems.first() {
            return Err(Self(format!("{kind} {key:?}: {problem}")));
        }
        let carried = |id: &TypeId| carriers.iter().any(|carrier| carrier.id == *id);
        let mut lost = needs.from_request.iter().filter(|(id, _)| route.has_tasks() && !carried(id));
        if let Some((_, name)) = lost.next() {
            return Err(Self(format!(
                "{kind} {key:?}: its calls may become tasks, which go on without their request, but its handler takes \
                 {name} from the request; take it as an Option, or add .carry::<…>() to the builder if it is an extension"
            )));
        }
        match needs.states.iter().find(|(id, _)| !states.has(*id)) {
            Some((_, name)) => Err(Self(format!(
                "{kind} {key:?}: its handler takes State<{name}>, but the server has no such state; add .state(…) to the builder"
            ))),
            None => Ok(()),
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for BuildError {}
