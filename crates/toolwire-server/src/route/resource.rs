//! Resources and resource templates.

use std::{fmt, sync::Arc};

use toolwire_protocol::{
    uri_template::UriTemplate,
    wire::{Annotations, Resource, ResourceTemplate},
};

use super::{Completers, Entry, IntoCompletion, Lister, Needs, described};
use crate::{
    Reply,
    handler::{Answer, Handler, HandlerSpec, Rejection, SharedEndpoint},
    output::{IntoResource, ResourceInfo},
};

/// A resource at a fixed URI. Made by [`resource()`] or the attribute `#[resource]`.
#[derive(Clone)]
pub struct ResourceRoute {
    pub(crate) resource: Resource,
    pub(crate) endpoint: SharedEndpoint,
    pub(crate) needs: Needs,
}

/// A family of resources, one for each way to fill in a URI template. Made by [`template()`] or the attribute
/// `#[resource]`.
#[derive(Clone)]
pub struct TemplateRoute {
    pub(crate) template: ResourceTemplate,
    pub(crate) uri: Option<Arc<UriTemplate>>,
    pub(crate) endpoint: SharedEndpoint,
    pub(crate) needs: Needs,
    pub(crate) completers: Completers,
    pub(crate) lister: Option<Lister>,
}

/// Makes a resource of a handler. Until [`name`](ResourceRoute::name) gives it one, its name is its URI.
///
/// ```
/// use toolwire_server::resource;
///
/// let route = resource("config://app", || async { "debug = true" }).name("config").mime_type("text/plain");
/// ```
pub fn resource<H, In>(uri: impl Into<String>, handler: H) -> ResourceRoute
where
    H: Handler<In>,
    H::Output: IntoResource,
{
    let uri = uri.into();
    let spec = HandlerSpec::of(&handler);
    ResourceRoute {
        resource: Resource::new(uri.clone(), uri),
        endpoint: endpoint(handler),
        needs: Needs::of(&spec),
    }
}

/// Makes a resource template of a handler, which takes the template's variables as [`Uri<T>`](crate::Uri).
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolwire_server::{Uri, template};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Page { number: u32 }
///
/// let route = template("book://pages/{number}", |Uri(page): Uri<Page>| async move {
///     (page.number < 300).then(|| format!("This is page {}.", page.number))
/// })
/// .name("page");
/// ```
pub fn template<H, In>(uri_template: impl Into<String>, handler: H) -> TemplateRoute
where
    H: Handler<In>,
    H::Output: IntoResource,
{
    let text = uri_template.into();
    let spec = HandlerSpec::of(&handler);
    let mut needs = Needs::of(&spec);
    let uri = match UriTemplate::parse(&text) {
        Ok(uri) => Some(Arc::new(uri)),
        Err(error) => {
            needs.problems.push(format!("it is not a URI template: {error}"));
            None
        }
    };
    TemplateRoute {
        template: ResourceTemplate::new(text.clone(), text),
        uri,
        endpoint: endpoint(handler),
        needs,
        completers: Completers::default(),
        lister: None,
    }
}

fn endpoint<H, In>(handler: H) -> SharedEndpoint
where
    H: Handler<In>,
    H::Output: IntoResource,
{
    Arc::new(move |cx: crate::Context| -> Answer {
        let handler = handler.clone();
        Box::pin(async move {
            let uri = cx.target().unwrap_or_default().to_owned();
            let mime_type = cx.resource_mime_type();
            let telling = cx.server().telling();
            let rejection = match handler.call(cx).await {
                Ok(output) => {
                    let info = ResourceInfo { uri: &uri, mime_type: mime_type.as_deref() };
                    return match output.into_resource(info)? {
                        Reply::Failed(failure) => {
                            Err(failure.rpc_error(telling, &format_args!("resource {uri:?}")))
                        }
                        reply => Ok(reply),
                    };
                }
                Err(rejection) => rejection.reason(),
            };
            Err(match rejection {
                Rejection::Fault(error) => error,
                Rejection::Ask(error) => error.rpc_error(),
                // The variables do not fit their types, so there is no such resource.
                Rejection::InvalidArguments(_) | Rejection::Absent(_) => {
                    tracing::debug!(uri, reason = %rejection, "the variables of a resource template do not fit");
                    crate::output::not_found(&uri)
                }
            })
        })
    })
}

impl ResourceRoute {
    described!(ResourceRoute.resource);

    /// What layers go around.
    fn endpoints(&mut self) -> impl Iterator<Item = &mut SharedEndpoint> {
        std::iter::once(&mut self.endpoint)
    }

    /// The resource's name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.resource.name = name.into();
        self
    }

    /// Its media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.resource.mime_type = Some(mime_type.into());
        self
    }

    /// Its size in bytes, before any encoding.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.resource.size = Some(bytes);
        self
    }

    /// Hints for clients.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.resource.annotations = Some(annotations);
        self
    }
}

impl TemplateRoute {
    described!(TemplateRoute.template);

    /// What layers go around.
    fn endpoints(&mut self) -> impl Iterator<Item = &mut SharedEndpoint> {
        std::iter::once(&mut self.endpoint)
    }

    /// The template's name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.template.name = name.into();
        self
    }

    /// The media type of what it stands for, if they all have the same.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.template.mime_type = Some(mime_type.into());
        self
    }

    /// Hints for clients.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.template.annotations = Some(annotations);
        self
    }

    /// Offers completions for a variable: a list of values, or an async function that takes a
    /// [`Complete`](crate::Complete).
    #[must_use]
    pub fn complete<C, In>(mut self, variable: impl Into<String>, completion: C) -> Self
    where
        C: IntoCompletion<In>,
    {
        let variable = variable.into();
        let known = self.uri.as_ref().is_none_or(|uri| uri.variables().contains(&variable.as_str()));
        if !known {
            self.needs.problems.push(format!("it has no variable {variable:?} to complete"));
        }
        self.completers.insert(variable, completion.into_completer());
        self
    }
}

impl Entry for ResourceRoute {
    fn key(&self) -> &str {
        &self.resource.uri
    }

    fn needs(&self) -> &Needs {
        &self.needs
    }
}

impl Entry for TemplateRoute {
    fn key(&self) -> &str {
        &self.template.uri_template
    }

    fn needs(&self) -> &Needs {
        &self.needs
    }

    fn completes(&self) -> bool {
        !self.completers.is_empty()
    }
}

impl fmt::Debug for ResourceRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ResourceRoute").field(&self.resource.uri).finish()
    }
}

impl fmt::Debug for TemplateRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TemplateRoute").field(&self.template.uri_template).finish()
    }
}
