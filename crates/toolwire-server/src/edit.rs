//! Several changes of what a server offers, made as one.

use std::sync::Arc;

use crate::{
    BuildError, PromptRoute, ResourceRoute, TemplateRoute, ToolRoute,
    builder::Surroundings,
    catalog::{Catalog, Offered},
    notify::Notifier,
};

/// Changes of what a server offers that become visible together. Given to the function of
/// [`Server::edit`](crate::Server::edit).
#[derive(Debug)]
pub struct Edit<'a> {
    catalog: Catalog,
    surroundings: Surroundings<'a>,
    tools: bool,
    prompts: bool,
    resources: bool,
}

impl<'a> Edit<'a> {
    pub(crate) fn new(catalog: Catalog, surroundings: Surroundings<'a>) -> Self {
        Self { catalog, surroundings, tools: false, prompts: false, resources: false }
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// When the name is taken, the schema is not valid, or a state is missing.
    pub fn add_tool(&mut self, route: impl Into<ToolRoute>) -> Result<(), BuildError> {
        self.add(route.into())?;
        self.tools = true;
        Ok(())
    }

    /// Removes a tool. Says whether there was one.
    pub fn remove_tool(&mut self, name: &str) -> bool {
        let removed = self.catalog.remove::<ToolRoute>(name);
        self.tools |= removed;
        removed
    }

    /// Adds a prompt.
    ///
    /// # Errors
    /// When the name is taken or a state is missing.
    pub fn add_prompt(&mut self, route: impl Into<PromptRoute>) -> Result<(), BuildError> {
        self.add(route.into())?;
        self.prompts = true;
        Ok(())
    }

    /// Removes a prompt. Says whether there was one.
    pub fn remove_prompt(&mut self, name: &str) -> bool {
        let removed = self.catalog.remove::<PromptRoute>(name);
        self.prompts |= removed;
        removed
    }

    /// Adds a resource.
    ///
    /// # Errors
    /// When the URI is taken or a state is missing.
    pub fn add_resource(&mut self, route: impl Into<ResourceRoute>) -> Result<(), BuildError> {
        self.add(route.into())?;
        self.resources = true;
        Ok(())
    }

    /// Removes a resource. Says whether there was one.
    pub fn remove_resource(&mut self, uri: &str) -> bool {
        let removed = self.catalog.remove::<ResourceRoute>(uri);
        self.resources |= removed;
        removed
    }

    /// Adds a resource template.
    ///
    /// # Errors
    /// When the template is taken or not valid, or a state is missing.
    pub fn add_template(&mut self, route: impl Into<TemplateRoute>) -> Result<(), BuildError> {
        self.add(route.into())?;
        self.resources = true;
        Ok(())
    }

    /// Removes a resource template. Says whether there was one.
    pub fn remove_template(&mut self, uri_template: &str) -> bool {
        let removed = self.catalog.remove::<TemplateRoute>(uri_template);
        self.resources |= removed;
        removed
    }

    fn add<R: Offered>(&mut self, route: R) -> Result<(), BuildError> {
        BuildError::check(&route, R::KIND, self.surroundings)?;
        self.catalog.add(Arc::new(route)).map_err(|route| BuildError::taken(R::KIND, route.key()))
    }

    /// What came out of it, and whom to tell.
    pub(crate) fn finish(self) -> (Catalog, impl FnOnce(&Notifier)) {
        let Self { catalog, tools, prompts, resources, .. } = self;
        let tell = move |notifier: &Notifier| {
            if tools {
                notifier.tools_changed();
            }
            if prompts {
                notifier.prompts_changed();
            }
            if resources {
                notifier.resources_changed();
            }
        };
        (catalog, tell)
    }
}
