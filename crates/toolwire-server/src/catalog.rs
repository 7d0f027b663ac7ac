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
    by_key: HashMap<ByKey<R>, usize>,
    /// Serialised pages by version and first item. Belongs to this snapshot alone.
    pages: Mutex<HashMap<(Version, usize), Prepared>>,
}

/// A route that is found by its key.
#[derive(Debug)]
struct ByKey<R>(Arc<R>);

impl<R> Clone for ByKey<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Entry> Borrow<str> for ByKey<R> {
    fn borrow(&self) -> &str {
        self.0.key()
    }
}

impl<R: Entry> Hash for ByKey<R> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key().hash(state);
    }
}

impl<R: Entry> PartialEq for ByKey<R> {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl<R: Entry> Eq for ByKey<R> {}

impl<R> Default for Registry<R> {
    fn default() -> Self {
        Self { routes: Vec::new(), by_key: HashMap::new(), pages: Mutex::default() }
    }
}

/// A clone is about to be changed, so it starts without pages.
impl<R> Clone for Registry<R> {
    fn clone(&self) -> Self {
        Self { routes: self.routes.clone(), by_key: self.by_key.clone(), pages: Mutex::default() }
    }
}

impl<R: Entry> Registry<R> {
    /// Adds a route. Gives it back if its key is taken.
    pub(crate) fn add(&mut self, route: Arc<R>) -> Result<(), Arc<R>> {
        let hash_map::Entry::Vacant(place) = self.by_key.entry(ByKey(Arc::clone(&route))) else {
            return Err(route);
        };
        place.insert(self.routes.len());
        self.routes.push(route);
        Ok(())
    }

    /// Makes room for that many more routes.
    pub(crate) fn reserve(&mut self, routes: usize) {
        self.by_key.reserve(routes);
        self.routes.reserve(routes);
    }

    /// Removes a route. Says whether there was one.
    pub(crate) fn remove(&mut self, key: &str) -> bool {
        let Some(position) = self.by_key.remove(key) else { return false };
        self.routes.remove(position);
        for later in self.by_key.values_mut().filter(|later| **later > position) {
            *later -= 1;
        }
        true
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<R>> {
        self.routes.get(*self.by_key.get(key)?)
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
        list: impl FnOnce(&[Arc<R>], Option<String>) -> L,
    ) -> Result<Prepared, RpcError> {
        let first = request.cursor.map_or(Ok(0), |cursor| self.after(cursor))?;
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = pages.get(&(request.version, first)) {
            return Ok(page.clone());
        }
        let rest = self.routes.get(first..).unwrap_or_default();
        let items = rest.get(..request.items).unwrap_or(rest);
        let more = items.len() < rest.len();
        let next = items.last().filter(|_| more).map(|last| BASE64_URL_SAFE_NO_PAD.encode(last.key()));
        let mut bytes = Vec::new();
        request.codec.write(request.version, list(items, next), &mut bytes).map_err(|error| {
            tracing::error!(%error, "a list could not be serialised");
            RpcError::internal("the list could not be serialised")
        })?;
        let page = Prepared(bytes.into());
        pages.insert((request.version, first), page.clone());
        Ok(page)
    }

    /// A cursor names the last item of the page before, so that it means the same on every replica.
    fn after(&self, cursor: &str) -> Result<usize, RpcError> {
        let key = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let position = key.and_then(|key| self.by_key.get(key.as_str()));
        position.map(|position| position + 1).ok_or_else(|| {
            RpcError::invalid_params(format!("unknown cursor {cursor:?}; start again without one"))
        })
    }
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
        self.by_specificity = (0..self.templates.routes.len()).collect();
        let templates = &self.templates.routes;
        self.by_specificity.sort_by(|a, b| {
            let specificity = |at: &usize| {
                templates.get(*at).and_then(|route| route.uri.as_ref()).map(|uri| uri.specificity())
            };
            specificity(b).cmp(&specificity(a))
        });

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
