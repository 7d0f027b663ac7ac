//! The kinds of routes that a catalog has.

use std::{cmp::Reverse, sync::Arc};

use toolwire_protocol::uri_template::Specificity;

use super::{Catalog, Registry};
use crate::route::{Entry, PromptRoute, ResourceRoute, TemplateRoute, ToolRoute};

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

fn specificity(route: &TemplateRoute) -> Option<Specificity> {
    route.uri.as_ref().map(|uri| uri.specificity())
}
