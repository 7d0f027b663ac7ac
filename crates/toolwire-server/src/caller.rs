//! What is known of the caller of a request.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU8, AtomicU64, Ordering},
};

use bytes::Bytes;
use toolwire_protocol::{
    Feature, RawJson, Version,
    peek::MetaPeek,
    wire::{ClientCapabilities, Implementation, LoggingLevel},
};

use crate::{
    Context,
    extract::SessionValues,
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
    id: CallerId,
    version: Version,
    info: Lazy<Option<Implementation>>,
    capabilities: Lazy<ClientCapabilities>,
    log_level: AtomicU8,
    /// What handlers keep for the session. A request that stands alone has none.
    values: Option<SessionValues>,
}

/// Which session or connection a request came by. Two requests with the same id came by the same one.
///
/// It says nothing of who somebody is, which is what a [`Principal`](crate::Principal) is for, and is not known
/// to the caller. No two have the same one while the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerId {
    scope: CallerScope,
    number: u64,
}

/// What a [`CallerId`] is the identity of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CallerScope {
    /// A legacy session: all requests since one handshake, on any transport.
    Session,
    /// A pipe or a socket, whose requests stand alone otherwise.
    Connection,
    /// Nothing but this one request, as over HTTP.
    Request,
}

impl CallerId {
    pub(crate) fn new(scope: CallerScope) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { scope, number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// It as bytes, which no other one of this process has.
    pub(crate) fn to_bytes(self) -> [u8; 8] {
        self.number.to_be_bytes()
    }

    /// What it is the identity of.
    pub fn scope(self) -> CallerScope {
        self.scope
    }
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

    fn text(&self) -> Option<&str> {
        self.raw.as_deref().and_then(|raw| std::str::from_utf8(raw).ok())
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

const LEVELS: [LoggingLevel; 8] = [
    LoggingLevel::Debug,
    LoggingLevel::Info,
    LoggingLevel::Notice,
    LoggingLevel::Warning,
    LoggingLevel::Error,
    LoggingLevel::Critical,
    LoggingLevel::Alert,
    LoggingLevel::Emergency,
];

impl Caller {
    /// The caller behind a request that stands alone, as far as its `_meta` tells.
    pub(crate) fn of_request(
        version: Version,
        meta: Option<&MetaPeek>,
        connection: Option<CallerId>,
    ) -> Self {
        let log = meta.and_then(|meta| meta.log_level.as_deref()).and_then(Self::read_log_level);
        Self(Arc::new(Facts {
            id: connection.unwrap_or_else(|| CallerId::new(CallerScope::Request)),
            values: None,
            version,
            info: Lazy::raw(meta.and_then(|meta| meta.client_info.clone())),
            capabilities: Lazy::raw(meta.and_then(|meta| meta.client_capabilities.clone())),
            log_level: AtomicU8::new(log.map_or(SILENT, |level| level as u8)),
        }))
    }

    pub(crate) fn read_log_level(text: &str) -> Option<LoggingLevel> {
        serde_json::from_value(text.into()).ok()
    }

    /// A legacy client has not set a level until it does; until then it gets what a person would want to see.
    pub(crate) fn from_handshake(
        version: Version,
        capabilities: ClientCapabilities,
        info: Implementation,
    ) -> Self {
        Self(Arc::new(Facts {
            id: CallerId::new(CallerScope::Session),
            values: Some(SessionValues::default()),
            version,
            info: Lazy::value(Some(info)),
            capabilities: Lazy::value(capabilities),
            log_level: AtomicU8::new(LoggingLevel::Info as u8),
        }))
    }

    /// Which session or connection the request came by.
    pub fn id(&self) -> CallerId {
        self.0.id
    }

    /// The name and version the caller gave, if it did. It is not verified.
    pub fn info(&self) -> Option<&Implementation> {
        self.0.info.get().as_ref()
    }

    /// The capabilities the caller declared.
    pub fn capabilities(&self) -> &ClientCapabilities {
        self.0.capabilities.get()
    }

    /// The capabilities as JSON, for those who pass them on: what is not part of the model is in it, too.
    pub fn raw_capabilities(&self) -> RawJson {
        let raw = self.0.capabilities.text().and_then(|text| RawJson::parse(text).ok());
        raw.or_else(|| RawJson::of(self.capabilities()).ok())
            .unwrap_or_else(|| RawJson::from(&serde_json::json!({})))
    }

    /// The lowest level of log messages that the caller wants; `None` if it wants none. A session that has not set
    /// one gets those from [`Info`](LoggingLevel::Info) on.
    pub fn log_level(&self) -> Option<LoggingLevel> {
        let threshold = self.0.log_level.load(Ordering::Relaxed);
        LEVELS.into_iter().find(|level| *level as u8 == threshold)
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

    /// Whether the caller may be sent this notification of a server's own. One that can be told nothing without asking
    /// has to declare an extension of the same vendor: `acme/step` belongs to `acme/anything`.
    pub(crate) fn takes_notification(&self, method: &str) -> bool {
        if self.0.values.is_some() {
            return true;
        }
        // Looked up in their order, and not one by one: both are long if the client wants it so.
        let Some((vendor, _)) = method.split_once('/') else { return false };
        let from = format!("{vendor}/");
        let extensions = self.capabilities().extensions.as_ref();
        let first = extensions.and_then(|all| all.range(from.clone()..).next());
        first.is_some_and(|(name, _)| name.starts_with(&from))
    }

    /// What handlers keep for the session, if there is one.
    pub(crate) fn session_values(&self) -> Option<&SessionValues> {
        self.0.values.as_ref()
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
