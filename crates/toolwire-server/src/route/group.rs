//! Routes that belong together.

use std::sync::Arc;

use super::{PromptRoute, ResourceRoute, TemplateRoute, ToolRoute};
use crate::RouteLayer;

/// A set of routes that is built elsewhere, layered as one, and merged into a server.
///
/// ```
/// use toolwire_server::{Group, Server, tool};
///
/// fn time_tools() -> Group {
///     Group::new().tool(tool("now", || async { "noon" })).tool(tool("zone", || async { "UTC" }))
/// }
///
/// let server = Server::builder("clock", "1.0").merge(time_tools()).build().unwrap();
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Group {
    pub(crate) tools: Vec<Arc<ToolRoute>>,
    pub(crate) prompts: Vec<Arc<PromptRoute>>,
    pub(crate) resources: Vec<Arc<ResourceRoute>>,
    pub(crate) templates: Vec<Arc<TemplateRoute>>,
}

impl Group {
    /// An empty group.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    pub fn tool(mut self, route: impl Into<ToolRoute>) -> Self {
        self.tools.push(Arc::new(route.into()));
        self
    }

    /// Adds a prompt.
    pub fn prompt(mut self, route: impl Into<PromptRoute>) -> Self {
        self.prompts.push(Arc::new(route.into()));
        self
    }

    /// Adds a resource.
    pub fn resource(mut self, route: impl Into<ResourceRoute>) -> Self {
        self.resources.push(Arc::new(route.into()));
        self
    }

    /// Adds a resource template.
    pub fn template(mut self, route: impl Into<TemplateRoute>) -> Self {
        self.templates.push(Arc::new(route.into()));
        self
    }

    /// Adds the routes of another group.
    pub fn merge(mut self, other: Self) -> Self {
        self.tools.extend(other.tools);
        self.prompts.extend(other.prompts);
        self.resources.extend(other.resources);
        self.templates.extend(other.templates);
        self
    }

    /// Puts a `tower` layer around every route that is in the group so far.
    #[expect(clippy::needless_pass_by_value, reason = "layers are given away everywhere else, too")]
    pub fn layer(mut self, layer: impl RouteLayer) -> Self {
        change(&mut self.tools, |route| route.wrap(&layer));
        change(&mut self.prompts, |route| route.wrap(&layer));
        change(&mut self.resources, |route| route.wrap(&layer));
        change(&mut self.templates, |route| route.wrap(&layer));
        self
    }

    /// Puts `prefix` in front of every tool's and prompt's name.
    pub fn prefix(mut self, prefix: &str) -> Self {
        change(&mut self.tools, |route| route.tool.name.insert_str(0, prefix));
        change(&mut self.prompts, |route| route.prompt.name.insert_str(0, prefix));
        self
    }
}

fn change<R: Clone>(routes: &mut [Arc<R>], change: impl Fn(&mut R)) {
    for route in routes {
        change(Arc::make_mut(route));
    }
}
