//! What can be registered: tools, resources, templates and prompts, each a description and a handler.

mod completion;
mod group;
mod listing;
mod prompt;
mod resource;
mod tool;

pub use completion::{Complete, IntoCompletion};
pub(crate) use completion::{Completers, run as run_completer};
pub use group::{Group, IntoRoutes, Routes};
pub use listing::{Listed, PageAt};
pub(crate) use listing::{
    Lister, cursor as listing_cursor, read_cursor as read_listing_cursor, run as run_listing,
};
pub(crate) use prompt::check_arguments as check_prompt_arguments;
pub use prompt::{PromptRoute, prompt};
pub use resource::{ResourceRoute, TemplateRoute, resource, template};
pub use tool::{ToolRoute, tool};

use std::{any::TypeId, fmt, sync::Arc};

use crate::{Principal, access::Access, handler::HandlerSpec};

/// What every route brings along: the needs of its handler, and what was found wrong with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    pub(crate) states: Vec<(TypeId, &'static str)>,
    pub(crate) logs: bool,
    pub(crate) problems: Vec<String>,
    /// What it asks of its callers.
    pub(crate) access: Access,
    /// What the handler takes from the request by itself.
    pub(crate) taken: Vec<&'static str>,
    /// What it takes that only a request has.
    pub(crate) from_request: Vec<(TypeId, &'static str)>,
}

impl Needs {
    fn of(spec: &HandlerSpec) -> Self {
        Self {
            states: spec.states.clone(),
            logs: spec.logs,
            problems: spec.problems.clone(),
            access: Access::new(spec.principal),
            taken: spec.taken.clone(),
            from_request: spec.from_request.clone(),
        }
    }

    /// Asks for more scopes.
    fn require(&mut self, scopes: impl IntoIterator<Item = impl AsRef<str>>) {
        if let Err(error) = self.access.require(scopes) {
            self.problems.push(error.to_string());
        }
    }

    /// Hides the route from more callers.
    fn show_to(&mut self, visible: &Arc<impl Fn(&Principal) -> bool + Send + Sync + 'static>) {
        self.access.show_to(Arc::clone(visible) as _);
    }
}

/// A route, as the catalog sees it.
pub(crate) trait Entry: fmt::Debug + Send + Sync {
    /// What it is found by: a name or a URI.
    fn key(&self) -> &str;
    /// What it needs.
    fn needs(&self) -> &Needs;
    /// Whether it offers completions.
    fn completes(&self) -> bool {
        false
    }
    /// Whether its calls may become tasks.
    fn has_tasks(&self) -> bool {
        false
    }
    /// What is wrong with its key.
    fn problem(&self) -> Option<String> {
        None
    }
}

/// Setters that every route has.
macro_rules! described {
    ($route:ident . $model:ident) => {
        /// A name for people.
        #[must_use]
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.$model.title = Some(title.into());
            self
        }

        /// What it is and when to use it, for the model.
        #[must_use]
        pub fn description(mut self, description: impl Into<String>) -> Self {
            self.$model.description = Some(description.into());
            self
        }

        /// An icon. May be given several times.
        #[must_use]
        pub fn icon(mut self, icon: toolwire_protocol::wire::Icon) -> Self {
            self.$model.icons.get_or_insert_default().push(icon);
            self
        }

        /// A value for its `_meta` in lists.
        #[must_use]
        pub fn meta(mut self, key: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
            self.$model.meta.get_or_insert_default().insert(key, value);
            self
        }

        /// Asks callers for scopes, beside those it asks for already. Everybody sees it, but whoever has not all of
        /// them is refused before the handler is called: HTTP answers with 401 or 403, and names everything that is
        /// needed.
        #[must_use]
        pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
            self.needs.require(scopes);
            self
        }

        /// Shows it only to callers for whom `visible` is true; given several times, all of them have to agree. To
        /// everybody else, and to every anonymous caller, it does not exist: it is not listed, and to use it is
        /// answered as if there were no such name.
        ///
        /// `visible` is asked for every list and call, so it should be quick.
        #[must_use]
        pub fn visible_to(
            mut self,
            visible: impl Fn(&crate::Principal) -> bool + Send + Sync + 'static,
        ) -> Self {
            self.needs.show_to(&std::sync::Arc::new(visible));
            self
        }

        /// Puts a `tower` layer around the handler. The last one given is the outermost.
        #[must_use]
        pub fn layer(mut self, layer: impl crate::RouteLayer) -> Self {
            self.wrap(&layer);
            self
        }

        pub(crate) fn wrap(&mut self, layer: &impl crate::RouteLayer) {
            for endpoint in self.endpoints() {
                *endpoint = layer.wrap(crate::layer::Route(std::sync::Arc::clone(endpoint))).0;
            }
        }
    };
}
use described;
