//! What a server offers at one moment.
//!
//! Readers hold a snapshot. A change is made in place while nobody does, and on a copy of the kind it is about
//! otherwise. Lists are serialised when they are first asked for after a change, and then reused: a `tools/list` costs
//! the copying of its bytes.

mod hidden;
mod pages;
mod registry;

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use toolwire_protocol::{
    Feature, RpcError, ServerCapability, Version,
    classify::Served,
    codec::ResultCodec,
    uri_template::{Specificity, Variables},
    wire::{
        CacheHint, JsonObject, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
        ListToolsResult, PromptsCapability, ResourcesCapability, ServerCapabilities, ServerTaskRequests,
        ServerTasksCapability, ToolTaskRequests, ToolsCapability,
    },
};

use self::{hidden::Tail, registry::Registry};
use crate::{
    access::{Access, Viewer},
    reply::Prepared,
    route::{Entry, Lister, PromptRoute, ResourceRoute, TemplateRoute, ToolRoute, listing_cursor},
    schema::ordered_tools,
};

/// The offers of a server. Each kind can be shared with snapshots while another one is changed.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    pub(crate) tools: Arc<Registry<ToolRoute>>,
    pub(crate) prompts: Arc<Registry<PromptRoute>>,
    pub(crate) resources: Arc<Registry<ResourceRoute>>,
    pub(crate) templates: Arc<Registry<TemplateRoute>>,
    /// The templates, the most specific first. Of equals, the first comes first.
    by_specificity: Arc<BTreeMap<Place, Arc<TemplateRoute>>>,
    /// How many templates there ever were.
    templates_ever: u64,
    served: Served,
    /// The same for those to whom the legacy era is not served.
    served_modern: Served,
    pub(crate) capabilities: ServerCapabilities,
}

/// How specific a template is, and which one it is.
type Place = (Reverse<Option<Specificity>>, u64);

/// A kind of route, as a catalog has it.
pub(crate) trait Offered: Entry + Sized + 'static {
    /// What it is called in messages.
    const KIND: &'static str;

    fn registry(catalog: &mut Catalog) -> &mut Registry<Self>;

    /// Does what is left to do when one has been added.
    fn added(catalog: &mut Catalog, route: &Arc<Self>) {
        let _ = (catalog, route);
    }

    /// Does what is left to do when one has been removed.
    fn removed(catalog: &mut Catalog, route: &Arc<Self>) {
        let _ = (catalog, route);
    }
}

impl Offered for ToolRoute {
    const KIND: &'static str = "tool";

    fn registry(catalog: &mut Catalog) -> &mut Registry<Self> {
        Arc::make_mut(&mut catalog.tools)
    }
}

impl Offered for PromptRoute {
    const KIND: &'static str = "prompt";

    fn registry(catalog: &mut Catalog) -> &mut Registry<Self> {
        Arc::make_mut(&mut catalog.prompts)
    }
}

impl Offered for ResourceRoute {
    const KIND: &'static str = "resource";

    fn registry(catalog: &mut Catalog) -> &mut Registry<Self> {
        Arc::make_mut(&mut catalog.resources)
    }
}

impl Offered for TemplateRoute {
    const KIND: &'static str = "template";

    fn registry(catalog: &mut Catalog) -> &mut Registry<Self> {
        Arc::make_mut(&mut catalog.templates)
    }

    fn added(catalog: &mut Catalog, route: &Arc<Self>) {
        let place = (Reverse(specificity(route)), catalog.templates_ever);
        catalog.templates_ever += 1;
        Arc::make_mut(&mut catalog.by_specificity).insert(place, Arc::clone(route));
        catalog.listings_changed(route);
    }

    fn removed(catalog: &mut Catalog, route: &Arc<Self>) {
        let specificity = Reverse(specificity(route));
        let templates = Arc::make_mut(&mut catalog.by_specificity);
        let mut equals = templates.range((specificity, 0)..=(specificity, u64::MAX));
        if let Some(place) = equals.find(|(_, known)| Arc::ptr_eq(known, route)).map(|(place, _)| *place) {
            templates.remove(&place);
        }
        catalog.listings_changed(route);
    }
}

/// What is announced of tasks. Only those who can be told apart may list theirs, so that is not part of it.
fn task_capability() -> ServerTasksCapability {
    let calls = ToolTaskRequests::new().call(JsonObject::new());
    ServerTasksCapability::new().cancel(JsonObject::new()).requests(ServerTaskRequests::new().tools(calls))
}

fn specificity(route: &TemplateRoute) -> Option<Specificity> {
    route.uri.as_ref().map(|uri| uri.specificity())
}

/// What is needed to make a page.
pub(crate) struct PageRequest<'a> {
    pub(crate) version: Version,
    pub(crate) cursor: Option<&'a str>,
    pub(crate) items: usize,
    pub(crate) codec: &'a ResultCodec,
    pub(crate) cache: CacheHint,
    pub(crate) viewer: Viewer<'a>,
}

/// What a server says it can do beside what follows from its routes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Announced {
    pub(crate) always: Vec<ServerCapability>,
    pub(crate) experimental: BTreeMap<String, JsonObject>,
    pub(crate) extensions: BTreeMap<String, JsonObject>,
}

impl Catalog {
    pub(crate) fn new(served: Served) -> Self {
        let mut served_modern = served.clone();
        served_modern.versions.retain(|version| version.has(Feature::StatelessRequests));
        Self {
            served_modern,
            tools: Arc::default(),
            prompts: Arc::default(),
            resources: Arc::default(),
            templates: Arc::default(),
            by_specificity: Arc::default(),
            templates_ever: 0,
            served,
            capabilities: ServerCapabilities::new(),
        }
    }

    /// Adds a route. Gives it back if its key is taken.
    #[expect(clippy::needless_pass_by_value, reason = "it is given away, and given back if its key is taken")]
    pub(crate) fn add<R: Offered>(&mut self, route: Arc<R>) -> Result<(), Arc<R>> {
        R::registry(self).add(Arc::clone(&route))?;
        R::added(self, &route);
        Ok(())
    }

    /// Removes a route. Says whether there was one.
    pub(crate) fn remove<R: Offered>(&mut self, key: &str) -> bool {
        let removed = R::registry(self).remove(key);
        if let Some(route) = &removed {
            R::removed(self, route);
        }
        removed.is_some()
    }

    /// The list of resources ends differently with a listing behind it.
    fn listings_changed(&mut self, route: &TemplateRoute) {
        if route.lister.is_some() {
            Arc::make_mut(&mut self.resources).forget_pages();
        }
    }

    /// The templates that can list what they stand for, and whose listings the viewer may use: a listing is part of its
    /// route, and asks for what the route asks for.
    pub(crate) fn listings<'a>(
        &'a self,
        viewer: &'a Viewer<'_>,
    ) -> impl Iterator<Item = (&'a TemplateRoute, &'a Lister)> {
        let guarded = self.templates.is_guarded();
        let usable = move |route: &&Arc<TemplateRoute>| !guarded || viewer.may_use(&route.needs.access);
        let listing = |route: &'a Arc<TemplateRoute>| Some((&**route, route.lister.as_ref()?));
        self.templates.iter(viewer).filter(usable).filter_map(listing)
    }

    /// Whether some have other listings than others.
    fn listings_differ(&self, viewer: &Viewer<'_>) -> bool {
        let asks = |route: &Arc<TemplateRoute>| route.lister.is_some() && !route.needs.access.is_open();
        self.templates.may_hide(viewer)
            || (self.templates.is_guarded() && self.templates.iter_for_all().any(asks))
    }

    /// Whether the viewer has no fixed resources to list, but listings.
    pub(crate) fn lists_only_templates(&self, viewer: &Viewer<'_>) -> bool {
        self.resources.iter(viewer).next().is_none() && self.listings(viewer).next().is_some()
    }

    /// Whether a route asks something of its callers.
    pub(crate) fn is_guarded(&self) -> bool {
        self.tools.is_guarded()
            || self.prompts.is_guarded()
            || self.resources.is_guarded()
            || self.templates.is_guarded()
    }

    /// What is asked of those who read a resource.
    pub(crate) fn access_of(&self, uri: &str, viewer: &Viewer<'_>) -> Option<&Access> {
        if !self.resources.is_guarded() && !self.templates.is_guarded() {
            return None;
        }
        match self.resources.get(uri, viewer) {
            Some(route) => Some(&route.needs.access),
            None => self.template_for(uri, viewer).map(|(route, _)| &route.needs.access),
        }
    }

    /// Whether what answers for this URI is hidden from the viewer, or asks for more than the viewer has. Whoever has
    /// subscribed to what lies above it was not asked for that.
    pub(crate) fn conceals(&self, uri: &str, viewer: &Viewer<'_>) -> bool {
        let guarded = self.resources.is_guarded() || self.templates.is_guarded();
        if !guarded && !self.resources.may_hide(viewer) && !self.templates.may_hide(viewer) {
            return false;
        }
        let fits = |route: &&Arc<TemplateRoute>| {
            route.uri.as_ref().is_some_and(|template| template.match_uri(uri).is_some())
        };
        let fixed = self.resources.get_for_all(uri).map(|route| &route.needs);
        let needs = fixed.or_else(|| self.by_specificity.values().find(fits).map(|route| &route.needs));
        needs.is_some_and(|needs| !viewer.may_use(&needs.access))
    }

    /// Works out what follows from the routes. To be called after every change; it costs the same however many there
    /// are.
    pub(crate) fn settle(&mut self, announced: &Announced) {
        let has = |capability| announced.always.contains(&capability);
        let tools = has(ServerCapability::Tools) || !self.tools.is_empty();
        let prompts = has(ServerCapability::Prompts) || !self.prompts.is_empty();
        let resources =
            has(ServerCapability::Resources) || !self.resources.is_empty() || !self.templates.is_empty();
        let completes = self.prompts.any_completes() || self.templates.any_completes();
        let completions = has(ServerCapability::Completions) || completes;
        let logs = self.tools.any_logs()
            || self.prompts.any_logs()
            || self.resources.any_logs()
            || self.templates.any_logs();
        let logging = has(ServerCapability::Logging) || logs;
        let tasks = has(ServerCapability::Tasks) || self.tools.any_tasks();

        let mut capabilities = ServerCapabilities::new();
        capabilities.tools = tools.then(|| ToolsCapability::new().list_changed(true));
        capabilities.prompts = prompts.then(|| PromptsCapability::new().list_changed(true));
        capabilities.resources =
            resources.then(|| ResourcesCapability::new().subscribe(true).list_changed(true));
        capabilities.completions = completions.then(JsonObject::new);
        capabilities.logging = logging.then(JsonObject::new);
        capabilities.tasks = tasks.then(task_capability);
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
            (ServerCapability::Tasks, tasks),
        ] {
            self.served.capabilities.set(capability, on);
        }
        self.served_modern.capabilities = self.served.capabilities;
    }

    /// What is served, with the legacy era or without it.
    pub(crate) fn served(&self, legacy: bool) -> &Served {
        if legacy { &self.served } else { &self.served_modern }
    }

    /// The template that fits a URI best, of those that exist for the viewer, with its variables.
    pub(crate) fn template_for(
        &self,
        uri: &str,
        viewer: &Viewer<'_>,
    ) -> Option<(&Arc<TemplateRoute>, Variables)> {
        let may_hide = self.templates.may_hide(viewer);
        self.by_specificity.values().find_map(|route| {
            let captures = route.uri.as_ref()?.match_uri(uri)?;
            (!may_hide || viewer.sees(&route.needs.access)).then_some((route, captures))
        })
    }

    pub(crate) fn list_tools(&self, request: &PageRequest<'_>) -> Result<Prepared, RpcError> {
        self.tools.page(
            request,
            Tail::default(),
            |routes, next, cache| {
                let mut list =
                    ListToolsResult::new(routes.iter().map(|route| route.listed()).collect::<Vec<_>>());
                list.next_cursor = next;
                list.cached(cache)
            },
            in_order,
        )
    }

    pub(crate) fn list_prompts(&self, request: &PageRequest<'_>) -> Result<Prepared, RpcError> {
        self.prompts.page(
            request,
            Tail::default(),
            |routes, next, cache| {
                let prompts = routes.iter().map(|route| route.prompt.clone()).collect::<Vec<_>>();
                let mut list = ListPromptsResult::new(prompts);
                list.next_cursor = next;
                list.cached(cache)
            },
            |_, _| (),
        )
    }

    pub(crate) fn list_resources(&self, request: &PageRequest<'_>) -> Result<Prepared, RpcError> {
        let viewer = &request.viewer;
        let listed = || self.listings(viewer).next().is_some();
        let may_hide = self.listings_differ(viewer);
        let is_hidden = may_hide && !listed();
        self.resources.page(
            request,
            Tail { may_hide, is_hidden },
            |routes, next, cache| {
                let resources = routes.iter().map(|route| route.resource.clone()).collect::<Vec<_>>();
                let mut list = ListResourcesResult::new(resources);
                // The listings come after what is fixed.
                list.next_cursor = next.or_else(|| listed().then(|| listing_cursor(0, "")));
                list.cached(cache)
            },
            |_, _| (),
        )
    }

    pub(crate) fn list_templates(&self, request: &PageRequest<'_>) -> Result<Prepared, RpcError> {
        self.templates.page(
            request,
            Tail::default(),
            |routes, next, cache| {
                let templates = routes.iter().map(|route| route.template.clone()).collect::<Vec<_>>();
                let mut list = ListResourceTemplatesResult::new(templates);
                list.next_cursor = next;
                list.cached(cache)
            },
            |_, _| (),
        )
    }
}

/// Puts the members of the tools' schemas in order, which JSON objects in memory do not have.
fn in_order(tools: &[&Arc<ToolRoute>], list: &mut Vec<u8>) {
    let orders = tools.iter().map(|route| &route.input.order);
    let ordered = std::str::from_utf8(list).ok().and_then(|text| ordered_tools(text, orders));
    if let Some(ordered) = ordered {
        *list = ordered.into_bytes();
    }
}

#[cfg(test)]
mod tests;
