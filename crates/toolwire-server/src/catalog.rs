//! What a server offers at one moment: a snapshot that is replaced, never changed.
//!
//! Lists are serialised when they are first asked for after a change, and then reused: a `tools/list` costs
//! the copying of its bytes.

use std::{
    borrow::Borrow,
    collections::{HashMap, hash_map},
    hash::{Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use toolwire_protocol::{
    RpcError, ServerCapability, Version,
    classify::Served,
    codec::{ResultCodec, WireResult},
    uri_template::Variables,
    wire::{
        CacheHint, JsonObject, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
        ListToolsResult, PromptsCapability, ResourcesCapability, ServerCapabilities, ToolsCapability,
    },
};

use crate::{
    reply::Prepared,
    route::{Entry, PromptRoute, ResourceRoute, TemplateRoute, ToolRoute},
};

/// The offers of a server.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    pub(crate) tools: Registry<ToolRoute>,
    pub(crate) prompts: Registry<PromptRoute>,
    pub(crate) resources: Registry<ResourceRoute>,
    pub(crate) templates: Registry<TemplateRoute>,
    /// Template positions, the most specific first.
    by_specificity: Vec<usize>,
    served: Served,
    /// The same for those to whom the legacy era is not served.
    served_modern: Served,
    pub(crate) capabilities: ServerCapabilities,
}

/// Routes of one kind, in the order of registration, found by key.
#[derive(Debug)]
pub(crate) struct Registry<R> {
    routes: Vec<Arc<R>>,
    positions: Positions,
    /// Belongs to this snapshot alone.
    pages: Pages,
}

impl<R> Default for Registry<R> {
    fn default() -> Self {
        Self { routes: Vec::new(), positions: Positions::new(), pages: Pages::default() }
    }
}

/// A clone is about to be changed, so it starts without pages.
impl<R> Clone for Registry<R> {
    fn clone(&self) -> Self {
        Self { routes: self.routes.clone(), positions: self.positions.clone(), pages: Pages::default() }
    }
}

/// Where routes are, whatever their kind.
type Positions = HashMap<ByKey, usize>;

/// A route that is found by its key.
#[derive(Clone, Debug)]
struct ByKey(Arc<dyn Entry>);

impl Borrow<str> for ByKey {
    fn borrow(&self) -> &str {
        self.0.key()
    }
}

impl Hash for ByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key().hash(state);
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for ByKey {}

/// Serialised pages by version and first item.
#[derive(Debug, Default)]
struct Pages(Mutex<HashMap<(Version, usize), Prepared>>);

impl Pages {
    /// The page, which `write` writes if there is none yet.
    fn page(
        &self,
        key: (Version, usize),
        write: &dyn Fn(&mut Vec<u8>) -> Result<(), serde_json::Error>,
    ) -> Result<Prepared, RpcError> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = pages.get(&key) {
            return Ok(page.clone());
        }
        let mut bytes = Vec::new();
        write(&mut bytes).map_err(|error| {
            tracing::error!(%error, "a list could not be serialised");
            RpcError::internal("the list could not be serialised")
        })?;
        let page = Prepared(bytes.into());
        pages.insert(key, page.clone());
        Ok(page)
    }
}

impl<R: Entry + 'static> Registry<R> {
    /// Adds a route. Gives it back if its key is taken.
    pub(crate) fn add(&mut self, route: Arc<R>) -> Result<(), Arc<R>> {
        let key = ByKey(Arc::clone(&route) as Arc<dyn Entry>);
        let hash_map::Entry::Vacant(place) = self.positions.entry(key) else { return Err(route) };
        place.insert(self.routes.len());
        self.routes.push(route);
        Ok(())
    }

    /// Makes room for that many more routes.
    pub(crate) fn reserve(&mut self, routes: usize) {
        self.positions.reserve(routes);
        self.routes.reserve(routes);
    }

    /// Removes a route. Says whether there was one.
    pub(crate) fn remove(&mut self, key: &str) -> bool {
        let Some(position) = self.positions.remove(key) else { return false };
        self.routes.remove(position);
        for later in self.positions.values_mut().filter(|later| **later > position) {
            *later -= 1;
        }
        true
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<R>> {
        self.routes.get(*self.positions.get(key)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &R> {
        self.routes.iter().map(|route| &**route)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// One page, serialised. `list` makes the result of its routes and the cursor of the next page.
    fn page<L: WireResult>(
        &self,
        request: &PageRequest<'_>,
        list: impl Fn(&[Arc<R>], Option<String>) -> L,
    ) -> Result<Prepared, RpcError> {
        let first = request.cursor.map_or(Ok(0), |cursor| position_after(&self.positions, cursor))?;
        self.pages.page((request.version, first), &|out| {
            let rest = self.routes.get(first..).unwrap_or_default();
            let items = rest.get(..request.items).unwrap_or(rest);
            let more = items.len() < rest.len();
            let next = items.last().filter(|_| more).map(|last| BASE64_URL_SAFE_NO_PAD.encode(last.key()));
            request.codec.write(request.version, list(items, next), out)
        })
    }
}

/// A cursor names the last item of the page before, so that it means the same on every replica.
fn position_after(positions: &Positions, cursor: &str) -> Result<usize, RpcError> {
    let key = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let position = key.and_then(|key| positions.get(key.as_str()));
    position.map(|position| position + 1).ok_or_else(|| {
        RpcError::invalid_params(format!("unknown cursor {cursor:?}; start again without one"))
    })
}

/// What is needed to make a page.
pub(crate) struct PageRequest<'a> {
    pub(crate) version: Version,
    pub(crate) cursor: Option<&'a str>,
    pub(crate) items: usize,
    pub(crate) codec: &'a ResultCodec,
    pub(crate) cache: CacheHint,
}

/// What a server says it can do beside what follows from its routes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Announced {
    pub(crate) always: Vec<ServerCapability>,
    pub(crate) experimental: std::collections::BTreeMap<String, JsonObject>,
    pub(crate) extensions: std::collections::BTreeMap<String, JsonObject>,
}

impl Catalog {
    pub(crate) fn new(served: Served) -> Self {
        let mut served_modern = served.clone();
        served_modern.versions.retain(|version| version.is_modern());
        Self {
            served_modern,
            tools: Registry::default(),
            prompts: Registry::default(),
            resources: Registry::default(),
            templates: Registry::default(),
            by_specificity: Vec::new(),
            served,
            capabilities: ServerCapabilities::new(),
        }
    }

    /// Works out what follows from the routes. To be called after every change.
    pub(crate) fn settle(&mut self, announced: &Announced) {
        self.by_specificity.clear();
        let templates = &self.templates.routes;
        let specificity = |at: usize| Some(templates.get(at)?.uri.as_ref()?.specificity());
        for at in 0..templates.len() {
            // Of equals, the first comes first.
            let place = self.by_specificity.partition_point(|other| specificity(*other) >= specificity(at));
            self.by_specificity.insert(place, at);
        }

        let has = |capability| announced.always.contains(&capability);
        let tools = has(ServerCapability::Tools) || !self.tools.is_empty();
        let prompts = has(ServerCapability::Prompts) || !self.prompts.is_empty();
        let resources =
            has(ServerCapability::Resources) || !self.resources.is_empty() || !self.templates.is_empty();
        let completes = self.prompts.iter().any(|route| !route.completers.is_empty())
            || self.templates.iter().any(|route| !route.completers.is_empty());
        let completions = has(ServerCapability::Completions) || completes;
        let logging = has(ServerCapability::Logging) || self.needs().any(|needs| needs.logs);

        let mut capabilities = ServerCapabilities::new();
        capabilities.tools = tools.then(|| ToolsCapability::new().list_changed(true));
        capabilities.prompts = prompts.then(|| PromptsCapability::new().list_changed(true));
        capabilities.resources =
            resources.then(|| ResourcesCapability::new().subscribe(true).list_changed(true));
        capabilities.completions = completions.then(JsonObject::new);
        capabilities.logging = logging.then(JsonObject::new);
        capabilities.experimental = Some(announced.experimental.clone()).filter(|map| !map.is_empty());
        capabilities.extensions = Some(announced.extensions.clone()).filter(|map| !map.is_empty());
        self.capabilities = capabilities;

        for (capability, on) in [
            (ServerCapability::Tools, tools),
            (ServerCapability::Prompts, prompts),
            (ServerCapability::Resources, resources),
            (ServerCapability::ResourcesSubscribe, resources),
            (ServerCapability::Completions, completions),
            (ServerCapability::Logging, logging),
        ] {
            self.served.capabilities.set(capability, on);
        }
        self.served_modern.capabilities = self.served.capabilities;
    }

    /// What is served, with the legacy era or without it.
    pub(crate) fn served(&self, legacy: bool) -> &Served {
        if legacy { &self.served } else { &self.served_modern }
    }

    /// The template that fits a URI best, with its variables.
    pub(crate) fn template_for(&self, uri: &str) -> Option<(&Arc<TemplateRoute>, Variables)> {
        self.by_specificity.iter().filter_map(|at| self.templates.routes.get(*at)).find_map(|route| {
            let captures = route.uri.as_ref()?.match_uri(uri)?;
            Some((route, captures))
        })
    }

    pub(crate) fn needs(&self) -> impl Iterator<Item = &crate::route::Needs> {
        let tools = self.tools.iter().map(Entry::needs);
        let prompts = self.prompts.iter().map(Entry::needs);
        let resources = self.resources.iter().map(Entry::needs);
        tools.chain(prompts).chain(resources).chain(self.templates.iter().map(Entry::needs))
    }

    pub(crate) fn list_tools(&self, request: &PageRequest<'_>) -> Result<Prepared, RpcError> {
        self.tools.page(request, |routes, next| {
            let mut list =
                ListToolsResult::new(routes.iter().map(|route| route.listed()).collect::<Vec<_>>());
            list.next_cursor = next;
            list.cached(request.cache)
        })
    }

    pub(crate) fn list_prompts(&self, request: &PageRequest<'_>) -> Result<Prepared, RpcError> {
        self.prompts.page(request, |routes, next| {
            let prompts = routes.iter().map(|route| route.prompt.clone()).collect::<Vec<_>>();
            let mut list = ListPromptsResult::new(prompts);
            list.next_cursor = next;
            list.cached(request.cache)
        })
    }

    pub(crate) fn list_resources(&self, request: &PageRequest<'_>) -> Result<Prepared, RpcError> {
        self.resources.page(request, |routes, next| {
            let resources = routes.iter().map(|route| route.resource.clone()).collect::<Vec<_>>();
            let mut list = ListResourcesResult::new(resources);
            list.next_cursor = next;
            list.cached(request.cache)
        })
    }

    pub(crate) fn list_templates(&self, request: &PageRequest<'_>) -> Result<Prepared, RpcError> {
        self.templates.page(request, |routes, next| {
            let templates = routes.iter().map(|route| route.template.clone()).collect::<Vec<_>>();
            let mut list = ListResourceTemplatesResult::new(templates);
            list.next_cursor = next;
            list.cached(request.cache)
        })
    }
}
