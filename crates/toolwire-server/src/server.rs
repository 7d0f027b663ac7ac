//! A server: what it offers, and the handle to change that while it serves.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use toolwire_protocol::{
    codec::ResultCodec,
    wire::{CacheHint, Implementation},
};
use toolwire_store::Store;

use crate::{
    BuildError, Extensions, Limits, Notifier, Principal, PromptRoute, ResourceRoute, ServerBuilder,
    StateKeys, TemplateRoute, ToolRoute,
    access::{Policy, Viewer},
    admission::Admission,
    builder::Surroundings,
    catalog::{Announced, Catalog, Offered},
    edit::Edit,
    engine::SlowRoutes,
    extract::PrincipalSessions,
    handler::SharedEndpoint,
    observe::Observers,
    output::Telling,
    tasks::{Carrier, Engine, Parts, Tasks},
};

/// An MCP server, ready to serve any number of clients over any number of transports.
///
/// It is a handle: clones are the same server. Tools, prompts and resources can be added and removed at any
/// time; clients that listen are told.
///
/// ```
/// use toolwire_server::{Server, tool};
///
/// let server = Server::builder("demo", "1.0").tool(tool("one", || async { "1" })).build().unwrap();
/// server.add_tool(tool("two", || async { "2" })).unwrap();
/// assert!(server.remove_tool("one"));
/// assert!(!server.remove_tool("one"));
/// ```
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
    /// Whether the revisions that start with `initialize` are served by this handle.
    legacy: bool,
}

pub(crate) struct Shared {
    pub(crate) info: Implementation,
    pub(crate) instructions: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) states: Extensions,
    pub(crate) announced: Announced,
    pub(crate) catalog: RwLock<Arc<Catalog>>,
    /// Held by whoever changes the catalog, which may take longer than readers should wait.
    pub(crate) editing: Mutex<()>,
    pub(crate) custom: BTreeMap<Box<str>, SharedEndpoint>,
    pub(crate) notifier: Notifier,
    pub(crate) codec: ResultCodec,
    pub(crate) list_cache: CacheHint,
    pub(crate) layers: Option<SharedEndpoint>,
    pub(crate) shutdown: crate::cancel::Cancel,
    pub(crate) state_keys: StateKeys,
    pub(crate) replay_check: bool,
    pub(crate) admission: Admission,
    pub(crate) slow_routes: SlowRoutes,
    pub(crate) telling: Telling,
    pub(crate) policy: Policy,
    /// Whether anything has ever asked something of its callers.
    pub(crate) guarded: AtomicBool,
    pub(crate) observers: Observers,
    pub(crate) principal_sessions: PrincipalSessions,
    /// Where things are kept, and how the engine of tasks is made for it.
    pub(crate) store: Option<(Store, Engine)>,
    pub(crate) carriers: Vec<Carrier>,
    /// Made with the first tool that has tasks, or with a store.
    pub(crate) tasks: OnceLock<Arc<dyn Tasks>>,
}

/// A server that others may have.
#[derive(Clone)]
pub(crate) struct WeakServer {
    shared: Weak<Shared>,
    legacy: bool,
}

impl WeakServer {
    /// The server, unless nobody has it any more.
    pub(crate) fn upgrade(&self) -> Option<Server> {
        Some(Server { shared: self.shared.upgrade()?, legacy: self.legacy })
    }
}

impl fmt::Debug for WeakServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakServer")
    }
}

impl Server {
    /// Starts to describe a server. Its name and version are what clients see.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(Implementation::new(name, version))
    }

    pub(crate) fn new(shared: Shared) -> Self {
        let server = Self { shared: Arc::new(shared), legacy: true };
        server.make_tasks(&server.catalog());
        server
    }

    /// Makes the engine of tasks when there is the first reason to have one.
    fn make_tasks(&self, catalog: &Catalog) {
        if self.shared.tasks.get().is_some() {
            return;
        }
        let store = self.shared.store.as_ref();
        let offered = || catalog.tools.iter_for_all().find_map(|route| Some(route.task.as_ref()?.engine));
        let Some(engine) = store.map(|(_, engine)| *engine).or_else(offered) else { return };
        self.shared.tasks.get_or_init(|| {
            engine(Parts {
                server: WeakServer { shared: Arc::downgrade(&self.shared), legacy: self.legacy },
                store: store.map(|(store, _)| store.clone()),
                limits: self.shared.limits.clone(),
                keys: self.shared.state_keys.clone(),
                name: self.shared.info.name.clone(),
                carriers: self.shared.carriers.clone(),
            })
        });
    }

    /// The tasks of the server, if it has some.
    pub(crate) fn tasks(&self) -> Option<&Arc<dyn Tasks>> {
        self.shared.tasks.get()
    }

    fn surroundings(&self) -> Surroundings<'_> {
        Surroundings { states: &self.shared.states, carriers: &self.shared.carriers }
    }

    /// The same server for a place where clients of the legacy era are not served: there it neither answers them nor
    /// names their versions.
    #[must_use]
    pub fn modern_only(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), legacy: false }
    }

    /// The name and version that clients see.
    pub fn info(&self) -> &Implementation {
        &self.shared.info
    }

    /// Tells clients about changes.
    pub fn notify(&self) -> &Notifier {
        &self.shared.notifier
    }

    /// The limits the server was built with.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Adds a tool while serving, and tells clients.
    ///
    /// # Errors
    /// When the name is taken, the schema is not valid, or a state is missing.
    pub fn add_tool(&self, route: impl Into<ToolRoute>) -> Result<(), BuildError> {
        self.add(route.into(), Notifier::tools_changed)
    }

    /// Removes a tool while serving, and tells clients. Says whether there was one.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.remove::<ToolRoute>(name, Notifier::tools_changed)
    }

    /// Adds a prompt while serving, and tells clients.
    ///
    /// # Errors
    /// When the name is taken or a state is missing.
    pub fn add_prompt(&self, route: impl Into<PromptRoute>) -> Result<(), BuildError> {
        self.add(route.into(), Notifier::prompts_changed)
    }

    /// Removes a prompt while serving, and tells clients. Says whether there was one.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.remove::<PromptRoute>(name, Notifier::prompts_changed)
    }

    /// Adds a resource while serving, and tells clients.
    ///
    /// # Errors
    /// When the URI is taken or a state is missing.
    pub fn add_resource(&self, route: impl Into<ResourceRoute>) -> Result<(), BuildError> {
        self.add(route.into(), Notifier::resources_changed)
    }

    /// Removes a resource while serving, and tells clients. Says whether there was one.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.remove::<ResourceRoute>(uri, Notifier::resources_changed)
    }

    /// Adds a resource template while serving, and tells clients.
    ///
    /// # Errors
    /// When the template is taken or not valid, or a state is missing.
    pub fn add_template(&self, route: impl Into<TemplateRoute>) -> Result<(), BuildError> {
        self.add(route.into(), Notifier::resources_changed)
    }

    /// Removes a resource template while serving, and tells clients. Says whether there was one.
    pub fn remove_template(&self, uri_template: &str) -> bool {
        self.remove::<TemplateRoute>(uri_template, Notifier::resources_changed)
    }

    /// Makes several changes that become visible together: clients are told once for each kind, and see all of them or
    /// none. If `edit` fails, nothing has changed.
    ///
    /// Other changes wait meanwhile, so `edit` must not make any by other means than the [`Edit`] it gets.
    ///
    /// ```
    /// use toolwire_server::{Server, tool};
    ///
    /// let server = Server::builder("demo", "1.0").tool(tool("one", || async { "1" })).build().unwrap();
    /// let outcome = server.edit(|edit| {
    ///     edit.remove_tool("one");
    ///     edit.add_tool(tool("two", || async { "2" }))?;
    ///     edit.add_tool(tool("two", || async { "again" }))
    /// });
    /// assert!(outcome.is_err());
    /// assert!(server.remove_tool("one") && !server.remove_tool("two"));
    /// ```
    ///
    /// # Errors
    /// What `edit` fails with.
    pub fn edit<T>(
        &self,
        edit: impl FnOnce(&mut Edit<'_>) -> Result<T, BuildError>,
    ) -> Result<T, BuildError> {
        let editing = self.shared.editing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = Edit::new(Catalog::clone(&self.catalog()), self.surroundings());
        let outcome = edit(&mut changes)?;
        let (mut catalog, tell) = changes.finish();
        catalog.settle(&self.shared.announced);
        self.note_guards(&catalog);
        self.make_tasks(&catalog);
        *self.shared.catalog.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalog);
        drop(editing);
        tell(&self.shared.notifier);
        Ok(outcome)
    }

    /// Ends every connection in an orderly way: subscriptions get their last message, running requests may
    /// finish within the limit `drain_timeout`, nothing new is taken.
    pub fn shutdown(&self) {
        self.shared.shutdown.cancel();
        self.shared.notifier.close();
    }

    fn add<R: Offered>(&self, route: R, tell: impl FnOnce(&Notifier)) -> Result<(), BuildError> {
        BuildError::check(&route, R::KIND, self.surroundings())?;
        self.change(|catalog| catalog.add(Arc::new(route)))
            .map_err(|route| BuildError::taken(R::KIND, route.key()))?;
        tell(&self.shared.notifier);
        Ok(())
    }

    fn remove<R: Offered>(&self, key: &str, tell: impl FnOnce(&Notifier)) -> bool {
        let removed = self.change(|catalog| catalog.remove::<R>(key));
        if removed {
            tell(&self.shared.notifier);
        }
        removed
    }

    /// Changes the catalog where it is, or a copy of what is changed if somebody holds a snapshot.
    fn change<T>(&self, change: impl FnOnce(&mut Catalog) -> T) -> T {
        let _editing = self.shared.editing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut current = self.shared.catalog.write().unwrap_or_else(PoisonError::into_inner);
        let catalog = Arc::make_mut(&mut current);
        let outcome = change(catalog);
        catalog.settle(&self.shared.announced);
        self.note_guards(catalog);
        self.make_tasks(catalog);
        outcome
    }

    fn note_guards(&self, catalog: &Catalog) {
        if catalog.is_guarded() {
            self.shared.guarded.store(true, Ordering::Release);
        }
    }

    /// Whether anything asks something of its callers. If nothing ever has, there is nothing to decide.
    pub(crate) fn is_guarded(&self) -> bool {
        self.shared.guarded.load(Ordering::Acquire)
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    /// The catalog as this caller may see it.
    pub(crate) fn viewer<'a>(&'a self, principal: Option<&'a Principal>) -> Viewer<'a> {
        Viewer::new(principal, &self.shared.policy)
    }

    /// Whether a caller must not be told of changes of a resource, since it may not read it.
    pub(crate) fn conceals(&self, uri: &str, principal: Option<&Principal>) -> bool {
        self.catalog().conceals(uri, &self.viewer(principal))
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.shared.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the legacy era is served by this handle.
    pub(crate) fn has_legacy(&self) -> bool {
        self.legacy
    }

    pub(crate) fn states(&self) -> &Extensions {
        &self.shared.states
    }

    pub(crate) fn codec(&self) -> &ResultCodec {
        &self.shared.codec
    }

    pub(crate) fn list_cache(&self) -> CacheHint {
        self.shared.list_cache
    }

    pub(crate) fn instructions(&self) -> Option<&str> {
        self.shared.instructions.as_deref()
    }

    pub(crate) fn custom(&self, method: &str) -> Option<&SharedEndpoint> {
        self.shared.custom.get(method)
    }

    pub(crate) fn outer_layers(&self) -> Option<&SharedEndpoint> {
        self.shared.layers.as_ref()
    }

    pub(crate) fn replay_check(&self) -> bool {
        self.shared.replay_check
    }

    /// How much of an error reaches the caller.
    pub(crate) fn telling(&self) -> Telling {
        self.shared.telling
    }

    pub(crate) fn observers(&self) -> &Observers {
        &self.shared.observers
    }

    /// The sessions of those who have none by the protocol.
    pub(crate) fn principal_sessions(&self) -> &PrincipalSessions {
        &self.shared.principal_sessions
    }

    pub(crate) fn state_keys(&self) -> &StateKeys {
        &self.shared.state_keys
    }

    pub(crate) fn slow_routes(&self) -> &SlowRoutes {
        &self.shared.slow_routes
    }

    pub(crate) fn admission(&self) -> &Admission {
        &self.shared.admission
    }

    pub(crate) fn shutting_down(&self) -> &crate::cancel::Cancel {
        &self.shared.shutdown
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.shared.info.name)
            .field("version", &self.shared.info.version)
            .finish_non_exhaustive()
    }
}
