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
pub use prompt::{PromptRoute, prompt};
pub use resource::{ResourceRoute, TemplateRoute, resource, template};
pub use tool::{ToolRoute, tool};

use std::{any::TypeId, fmt};

use crate::handler::HandlerSpec;

/// What every route brings along: the needs of its handler, and what was found wrong with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    pub(crate) states: Vec<(TypeId, &'static str)>,
    pub(crate) logs: bool,
    pub(crate) problems: Vec<String>,
    /// What the handler takes from the request by itself.
    pub(crate) taken: Vec<&'static str>,
}

impl Needs {
    fn of(spec: &HandlerSpec) -> Self {
        Self {
            states: spec.states.clone(),
            logs: spec.logs,
            problems: spec.problems.clone(),
            taken: spec.taken.clone(),
        }
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

        /// Puts a `tower` layer around the handler. The last one given is the outermost.
        #[must_use]
        pub fn layer(mut self, layer: impl crate::RouteLayer) -> Self {
            self.wrap(&layer);
            self
        }

        pub(crate) fn wrap(&mut self, layer: &impl crate::RouteLayer) {
            self.endpoint = layer.wrap(crate::layer::Route(std::sync::Arc::clone(&self.endpoint))).0;
        }
    };
}
use described;
