//! What is known of the caller of a request.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU8, Ordering},
};

use bytes::Bytes;
use toolwire_protocol::{
    Feature, Version,
    peek::MetaPeek,
    wire::{ClientCapabilities, Implementation, LoggingLevel},
};

use crate::{
    Context,
    handler::{FromContext, Rejection},
};

/// What the caller has said of itself. An extractor.
///
/// In the legacy era this comes from the handshake, in the modern era from the request itself; a handler
/// cannot tell which, and need not.
#[derive(Clone, Debug)]
pub struct Caller(Arc<Facts>);

#[derive(Debug)]
struct Facts {
    version: Version,
    info: Lazy<Option<Implementation>>,
    capabilities: Lazy<ClientCapabilities>,
    log_level: AtomicU8,
}

/// Decoded at most once, and only if somebody asks.
#[derive(Debug)]
struct Lazy<T> {
    raw: Option<Bytes>,
    value: OnceLock<T>,
}

impl<T: Default + serde::de::DeserializeOwned> Lazy<T> {
    fn raw(raw: Option<Bytes>) -> Self {
        Self { raw, value: OnceLock::new() }
    }

    fn value(value: T) -> Self {
        Self { raw: None, value: value.into() }
    }

    fn get(&self) -> &T {
        self.value.get_or_init(|| {
            self.raw.as_deref().and_then(|raw| serde_json::from_slice(raw).ok()).unwrap_or_default()
        })
    }
}

/// Something a caller may be able to do for a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallerCan {
    /// Show the user a form and return what was filled in.
    ElicitForm,
    /// Send the user to a URL.
    ElicitUrl,
    /// Ask a model.
    Sample,
    /// Ask a model that may call tools.
    SampleWithTools,
    /// List the roots.
    ListRoots,
}

/// No log messages at all.
const SILENT: u8 = u8::MAX;

impl Caller {
    /// The caller behind a request that stands alone, as far as its `_meta` tells.
    pub(crate) fn of_request(version: Version, meta: Option<&MetaPeek>) -> Self {
        let log = meta.and_then(|meta| meta.log_level.as_deref()).and_then(Self::log_level);
        Self(Arc::new(Facts {
            version,
            info: Lazy::raw(meta.and_then(|meta| meta.client_info.clone())),
            capabilities: Lazy::raw(meta.and_then(|meta| meta.client_capabilities.clone())),
            log_level: AtomicU8::new(log.map_or(SILENT, |level| level as u8)),
        }))
    }

    pub(crate) fn log_level(text: &str) -> Option<LoggingLevel> {
        serde_json::from_value(text.into()).ok()
    }

    /// A legacy client has not set a level until it does; until then it gets what a person would want to see.
    pub(crate) fn from_handshake(
        version: Version,
        capabilities: ClientCapabilities,
        info: Implementation,
    ) -> Self {
        Self(Arc::new(Facts {
            version,
            info: Lazy::value(Some(info)),
            capabilities: Lazy::value(capabilities),
            log_level: AtomicU8::new(LoggingLevel::Info as u8),
        }))
    }

    /// The name and version the caller gave, if it did. It is not verified.
    pub fn info(&self) -> Option<&Implementation> {
        self.0.info.get().as_ref()
    }

    /// The capabilities the caller declared.
    pub fn capabilities(&self) -> &ClientCapabilities {
        self.0.capabilities.get()
    }

    /// Whether the caller can do this for a handler.
    pub fn can(&self, what: CallerCan) -> bool {
        let capabilities = self.capabilities();
        let has = |feature| self.0.version.has(feature);
        match what {
            CallerCan::ElicitForm => has(Feature::Elicitation) && capabilities.elicits_form(),
            CallerCan::ElicitUrl => has(Feature::UrlElicitation) && capabilities.elicits_url(),
            CallerCan::Sample => capabilities.sampling.is_some(),
            CallerCan::SampleWithTools => {
                has(Feature::SamplingWithTools)
                    && capabilities.sampling.as_ref().is_some_and(|sampling| sampling.tools.is_some())
            }
            CallerCan::ListRoots => capabilities.roots.is_some(),
        }
    }

    /// Whether the caller declared this extension.
    pub fn has_extension(&self, name: &str) -> bool {
        self.capabilities().extensions.as_ref().is_some_and(|extensions| extensions.contains_key(name))
    }

    pub(crate) fn wants_log(&self, level: LoggingLevel) -> bool {
        let threshold = self.0.log_level.load(Ordering::Relaxed);
        threshold != SILENT && level as u8 >= threshold
    }

    pub(crate) fn set_log_level(&self, level: LoggingLevel) {
        self.0.log_level.store(level as u8, Ordering::Relaxed);
    }
}

impl FromContext for Caller {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        Ok(cx.caller().clone())
    }
}
