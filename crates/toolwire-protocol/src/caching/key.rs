use serde_json::{Map, Value};

use crate::{Method, canonical::write_object};

/// What identifies a cacheable request: its method and the parameters that affect the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey {
    method: Method,
    /// The parameters as text in which equal parameters are equal.
    params: Box<str>,
    /// The resource a read is about.
    uri: Option<Box<str>>,
}

/// What a notification can make void at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Discovery,
    Tools,
    Prompts,
    ResourceLists,
    Contents,
}

impl Topic {
    pub(super) const COUNT: usize = 5;

    pub(super) const fn of(method: Method) -> Self {
        match method {
            Method::ListTools => Self::Tools,
            Method::ListPrompts => Self::Prompts,
            Method::ListResources | Method::ListResourceTemplates => Self::ResourceLists,
            Method::ReadResource => Self::Contents,
            _ => Self::Discovery,
        }
    }

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

impl CacheKey {
    /// The key of a request, or `None` if its result must not be stored.
    ///
    /// Stored are results of methods that the method table calls cacheable. The retry of a multi round-trip
    /// request is not among them: its result depends on answers that are not part of the key. The `_meta` of the
    /// request is left out, and the order of the parameters does not matter.
    pub fn new(method: Method, params: &Map<String, Value>) -> Option<Self> {
        let is_retry = params.contains_key("inputResponses") || params.contains_key("requestState");
        if is_retry || !method.info().cacheable {
            return None;
        }
        let mut text = String::new();
        write_object(params.iter().filter(|(name, _)| *name != "_meta"), &mut text);
        let uri = params.get("uri").and_then(Value::as_str).filter(|_| method == Method::ReadResource);
        Some(Self { method, params: text.into(), uri: uri.map(Into::into) })
    }

    /// The method of the request.
    pub const fn method(&self) -> Method {
        self.method
    }

    pub(super) const fn topic(&self) -> Topic {
        Topic::of(self.method)
    }

    /// Whether a change of the resource `updated` changes what was read under this key.
    ///
    /// A server may name a part of the resource that is watched, so that the contents of a folder are
    /// affected when a file in it changes.
    pub(super) fn is_affected_by(&self, updated: &str) -> bool {
        self.uri.as_deref().is_some_and(|uri| {
            uri == updated
                || updated
                    .strip_prefix(uri)
                    .is_some_and(|rest| uri.ends_with('/') || rest.starts_with(['/', '#']))
        })
    }

    pub(super) fn size(&self) -> usize {
        self.params.len() + self.uri.as_ref().map_or(0, |uri| uri.len())
    }
}
