//! Routes that belong together.

use std::sync::Arc;

use super::{Needs, PromptRoute, ResourceRoute, TemplateRoute, ToolRoute};
use crate::{Principal, RouteLayer};

/// A set of routes that is built elsewhere, layered as one, and added to a server.
///
/// ```
/// use toolwire_server::{Group, Server, tool};
///
/// fn time_tools() -> Group {
///     Group::new().tool(tool("now", || async { "noon" })).tool(tool("zone", || async { "UTC" }))
/// }
///
/// let server = Server::builder("clock", "1.0").routes(time_tools()).build().unwrap();
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

    /// Adds the routes of a list made by [`routes!`](crate::routes), of another group, or of a service.
    pub fn routes(mut self, routes: impl IntoRoutes) -> Self {
        let other = routes.into_routes();
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

    /// Asks the callers of every route that is in the group so far for scopes, beside those that it asks for already.
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let scopes: Vec<_> = scopes.into_iter().collect();
        self.change_needs(|needs| needs.require(&scopes));
        self
    }

    /// Shows every route that is in the group so far only to callers for whom `visible` is true, and to no anonymous
    /// one. To everybody else they do not exist.
    ///
    /// ```
    /// use toolwire_server::{Group, Server, tool};
    ///
    /// let audit = Group::new()
    ///     .tool(tool("audit", || async { "all is well" }))
    ///     .visible_to(|who| who.claim("role") == Some("auditor"));
    /// let server = Server::builder("files", "1.0").routes(audit).build().unwrap();
    /// ```
    pub fn visible_to(mut self, visible: impl Fn(&Principal) -> bool + Send + Sync + 'static) -> Self {
        let visible = Arc::new(visible);
        self.change_needs(|needs| needs.show_to(&visible));
        self
    }

    fn change_needs(&mut self, needs: impl Fn(&mut Needs)) {
        change(&mut self.tools, |route| needs(&mut route.needs));
        change(&mut self.prompts, |route| needs(&mut route.needs));
        change(&mut self.resources, |route| needs(&mut route.needs));
        change(&mut self.templates, |route| needs(&mut route.needs));
    }

    /// Puts `prefix` in front of every tool's and prompt's name.
    pub fn prefix(mut self, prefix: &str) -> Self {
        change(&mut self.tools, |route| route.tool.name.insert_str(0, prefix));
        change(&mut self.prompts, |route| route.prompt.name.insert_str(0, prefix));
        self
    }
}

/// Something that has routes of its own: a service with `#[tools]` on its `impl`.
///
/// ```
/// use std::sync::Arc;
/// use toolwire_server::{Group, Routes, Server, tool};
///
/// struct Clock { zone: String }
///
/// impl Routes for Clock {
///     fn routes(this: Arc<Self>) -> Group {
///         Group::new().tool(tool("zone", move || {
///             let this = Arc::clone(&this);
///             async move { this.zone.clone() }
///         }))
///     }
/// }
///
/// let server = Server::builder("clock", "1.0").routes(Clock { zone: "UTC".into() }).build().unwrap();
/// ```
pub trait Routes: Send + Sync + 'static {
    /// The routes, which share the value they belong to.
    fn routes(this: Arc<Self>) -> Group;
}

/// What [`ServerBuilder::routes`](crate::ServerBuilder::routes) and [`Group::routes`] take: a [`Group`], which is also
/// what [`routes!`](crate::routes) makes, a single route, or whatever has [`Routes`], by itself or in an `Arc` that
/// others hold as well.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no routes",
    label = "not a set of routes",
    note = "give a list of annotated functions as `routes![add, review]`, a `Group`, or a service with `#[tools]` on its `impl`"
)]
pub trait IntoRoutes {
    /// The routes.
    fn into_routes(self) -> Group;
}

impl IntoRoutes for Group {
    fn into_routes(self) -> Group {
        self
    }
}

impl<T: Routes> IntoRoutes for T {
    fn into_routes(self) -> Group {
        T::routes(Arc::new(self))
    }
}

impl<T: Routes> IntoRoutes for Arc<T> {
    fn into_routes(self) -> Group {
        T::routes(self)
    }
}

impl IntoRoutes for ToolRoute {
    fn into_routes(self) -> Group {
        Group::new().tool(self)
    }
}

impl IntoRoutes for PromptRoute {
    fn into_routes(self) -> Group {
        Group::new().prompt(self)
    }
}

impl IntoRoutes for ResourceRoute {
    fn into_routes(self) -> Group {
        Group::new().resource(self)
    }
}

impl IntoRoutes for TemplateRoute {
    fn into_routes(self) -> Group {
        Group::new().template(self)
    }
}

/// The routes of annotated functions, of every kind, as a [`Group`].
///
/// ```text
/// Server::builder("calculator", "1.0").routes(routes![add, review, geo::user]).build()?;
/// ```
#[macro_export]
macro_rules! routes {
    ($($route:ty),* $(,)?) => {
        $crate::Group::new()$(.routes(<$route>::route()))*
    };
}

fn change<R: Clone>(routes: &mut [Arc<R>], change: impl Fn(&mut R)) {
    for route in routes {
        change(Arc::make_mut(route));
    }
}
