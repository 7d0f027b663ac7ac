//! Which era a message belongs to, and whether it may pass.
//!
//! One pure function looks at a message, its HTTP headers if there are any, what we serve, and what we
//! know of the legacy peer. Transports and routers never decide this for themselves. The checks have an order, from
//! the first to the last of this table, and the first that fails answers. Each has a name, which is what other
//! places call it by.
//!
//! | Check | What must hold | Refused with |
//! | --- | --- | --- |
//! | *host*, *method*, *media type*, *size*, *JSON* | the HTTP request is one for us, and its body is a message; before this, at the edge | HTTP statuses, [`EnvelopeFault`](crate::envelope::EnvelopeFault) |
//! | *response* | an answer comes from a legacy peer, who alone is asked by request | [`UnexpectedResponse`](Fault::UnexpectedResponse), [`UnknownSession`](Fault::UnknownSession) |
//! | *known version* | a header without a modern claim in the body names a version that exists | [`UnsupportedVersion`](Fault::UnsupportedVersion) |
//! | *initialize* | legacy versions are served, and this peer has not shaken hands | [`LegacyNotServed`](Fault::LegacyNotServed), [`AlreadyInitialized`](Fault::AlreadyInitialized) |
//! | *session* | a legacy request has a session that is initialised | [`SessionRequired`](Fault::SessionRequired), [`UnknownSession`](Fault::UnknownSession), [`NotInitialized`](Fault::NotInitialized) |
//! | *era* | without a session, the request claims to be a modern one | [`MissingMeta`](Fault::MissingMeta), [`LegacyNotServed`](Fault::LegacyNotServed) |
//! | *envelope* | the `_meta` of a modern request is complete | [`MissingMeta`](Fault::MissingMeta), [`InvalidMeta`](Fault::InvalidMeta) |
//! | *version header* | it agrees with `_meta` | [`HeaderMismatch`](Fault::HeaderMismatch) |
//! | *served version* | the version is served here | [`UnsupportedVersion`](Fault::UnsupportedVersion) |
//! | *method header*, *name header* | they agree with the body | [`HeaderMismatch`](Fault::HeaderMismatch) |
//! | *offered method* | the method exists in that version, comes from clients, and is advertised | [`MethodNotFound`](Fault::MethodNotFound) |
//! | *parameters* | they fit the method; after this, in the router | [`InvalidParams`](Fault::InvalidParams) |
//! | *mirrored arguments* | the headers that mirror arguments agree with them; in the router | [`HeaderMismatch`](Fault::HeaderMismatch) |
//! | *client capability* | the client can do what is needed; in the router | [`MissingClientCapability`](Fault::MissingClientCapability) |
//!
//! Those that come after need the catalog. Their answers are [`Fault`]s all the same, so that codes and statuses are in
//! one place.

mod fault;
mod served;

pub use fault::{Fault, handler_error_status};
pub use served::{CapabilitySet, Served};

use crate::{
    Kind, Message, Method, MethodName, NameSource, Version, headers,
    peek::{Peek, VersionField},
    wire::meta::{CLIENT_CAPABILITIES, PROTOCOL_VERSION},
};

/// The headers of an HTTP request that take part in the decision.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "built by every HTTP adapter")]
pub struct HeaderView<'a> {
    /// `MCP-Protocol-Version`
    pub protocol_version: Option<&'a str>,
    /// `Mcp-Method`
    pub method: Option<&'a str>,
    /// `Mcp-Name`
    pub name: Option<&'a str>,
}

/// What is known of the legacy peer behind a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every case is checked differently")]
pub enum LegacyView {
    /// Legacy revisions are not served.
    Off,
    /// No handshake yet: a fresh pipe, or an HTTP request without a session id.
    NoPeer,
    /// An HTTP request that names a session we do not have.
    UnknownSession,
    /// A handshake took place.
    Peer {
        /// The negotiated version.
        version: Version,
        /// Whether `notifications/initialized` has come.
        initialized: bool,
    },
    /// HTTP without sessions: every request is taken as initialised.
    Sessionless,
}

/// What to do with a message.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a caller must handle every case")]
pub enum Verdict {
    /// Serve it statelessly, as this modern version.
    Modern(Version),
    /// The legacy handshake.
    Initialize,
    /// Serve it for the legacy peer, as this version.
    Legacy(Version),
    /// A notification on a pipe: it belongs to whichever era knows what it speaks of.
    Either,
    /// A `ping` before any handshake: answered without a peer.
    Ping,
    /// A message nobody waits for; drop it.
    Ignore,
    /// Answer with this.
    Reject(Fault),
}

/// Decides what a message is and whether it may pass.
///
/// ```
/// use toolwire_protocol::{
///     Message,
///     classify::{LegacyView, Served, Verdict, classify},
///     peek::Peek,
/// };
///
/// let bytes = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
/// let message = Message::parse(&bytes[..].into()).unwrap();
/// let verdict = classify(&message, &Peek::default(), None, &Served::default(), LegacyView::NoPeer);
/// assert_eq!(verdict, Verdict::Initialize);
/// ```
pub fn classify(
    message: &Message,
    peek: &Peek,
    http: Option<&HeaderView<'_>>,
    served: &Served,
    legacy: LegacyView,
) -> Verdict {
    let verdict = match message {
        Message::Response(_) => response(http, legacy),
        Message::Notification(note) => notification(&note.method, http, served, legacy),
        Message::Request(request) => self::request(&request.method, peek, http, served, legacy),
    };
    verdict.unwrap_or_else(Verdict::Reject)
}

/// The check *response*: an answer needs somebody who asked, and only legacy servers ask by request.
fn response(http: Option<&HeaderView<'_>>, legacy: LegacyView) -> Result<Verdict, Fault> {
    match (legacy, http) {
        (LegacyView::Peer { version, .. }, _) => Ok(Verdict::Legacy(version)),
        (LegacyView::UnknownSession, _) => Err(Fault::UnknownSession),
        (_, Some(_)) => Err(Fault::UnexpectedResponse),
        (_, None) => Ok(Verdict::Ignore),
    }
}

/// Notifications carry no envelope of their own. On HTTP the header tells the era; on a pipe the content.
fn notification(
    method: &MethodName,
    http: Option<&HeaderView<'_>>,
    served: &Served,
    legacy: LegacyView,
) -> Result<Verdict, Fault> {
    let Some(headers) = http else { return Ok(Verdict::Either) };
    if let Some(version) = headers.protocol_version.map(VersionField::of).filter(VersionField::is_modern) {
        let version = served_modern(&version, served)?;
        if headers.method.is_some_and(|header| header != method.as_str()) {
            return Err(Fault::HeaderMismatch(format!(
                "Mcp-Method does not name the method of the body, {:?}",
                method.as_str()
            )));
        }
        return Ok(Verdict::Modern(version));
    }
    match legacy {
        LegacyView::Peer { version, .. } => {
            legacy_version_header(headers, served).map(|()| Verdict::Legacy(version))
        }
        LegacyView::Sessionless => sessionless_version(headers, served).map(Verdict::Legacy),
        LegacyView::UnknownSession => Err(Fault::UnknownSession),
        LegacyView::NoPeer => Err(Fault::SessionRequired),
        LegacyView::Off => Err(Fault::LegacyNotServed { supported: served.modern_first() }),
    }
}

fn request(
    method: &MethodName,
    peek: &Peek,
    http: Option<&HeaderView<'_>>,
    served: &Served,
    legacy: LegacyView,
) -> Result<Verdict, Fault> {
    let header = http.and_then(|headers| headers.protocol_version).map(VersionField::of);
    let modern_header = header.as_ref().is_some_and(VersionField::is_modern);
    let in_meta = peek.version().is_some() || peek.meta.as_ref().is_some_and(claims_modern_badly);
    if in_meta || modern_header {
        return modern(method, peek, http, served);
    }
    let initialize = method.known() == Some(Method::Initialize);
    if let (Some(VersionField::Unknown(requested)), false) = (&header, initialize) {
        return Err(Fault::UnsupportedVersion {
            requested: requested.clone(),
            supported: served.modern_first(),
        });
    }
    if initialize {
        return initialize_request(served, legacy);
    }
    match legacy {
        LegacyView::Peer { version, initialized } => {
            if let Some(headers) = http {
                legacy_version_header(headers, served)?;
            }
            legacy_request(method, version, initialized, served)
        }
        LegacyView::Sessionless => {
            let version =
                http.map_or(Ok(Version::V2025_03_26), |headers| sessionless_version(headers, served))?;
            legacy_request(method, version, true, served)
        }
        LegacyView::UnknownSession => Err(Fault::UnknownSession),
        LegacyView::NoPeer if http.is_some() => Err(Fault::SessionRequired),
        LegacyView::NoPeer if method.known() == Some(Method::Ping) => Ok(Verdict::Ping),
        LegacyView::Off if http.is_some() => Err(Fault::LegacyNotServed { supported: served.modern_first() }),
        LegacyView::NoPeer | LegacyView::Off => Err(Fault::MissingMeta { keys: REQUIRED_META }),
    }
}

/// A protocol version of the wrong type is a claim all the same: the sender meant the modern envelope.
fn claims_modern_badly(meta: &crate::peek::MetaPeek) -> bool {
    meta.fault.as_ref().is_some_and(|fault| fault.member == PROTOCOL_VERSION)
}

/// The check *initialize*.
fn initialize_request(served: &Served, legacy: LegacyView) -> Result<Verdict, Fault> {
    match legacy {
        LegacyView::Off => Err(Fault::LegacyNotServed { supported: served.modern_first() }),
        LegacyView::Peer { .. } => Err(Fault::AlreadyInitialized),
        LegacyView::NoPeer | LegacyView::UnknownSession | LegacyView::Sessionless => Ok(Verdict::Initialize),
    }
}

/// The checks of a modern request, from *envelope* to *offered method*.
fn modern(
    method: &MethodName,
    peek: &Peek,
    http: Option<&HeaderView<'_>>,
    served: &Served,
) -> Result<Verdict, Fault> {
    let initialize = method.known() == Some(Method::Initialize);
    if peek.meta.is_none() && initialize {
        return Err(Fault::HeaderMismatch(
            "MCP-Protocol-Version names a stateless version, but the body is an initialize request".into(),
        ));
    }
    if let Some(fault) = peek.fault.as_ref().filter(|fault| fault.member == "_meta") {
        return Err(Fault::InvalidMeta(fault.to_string()));
    }
    let missing = Fault::MissingMeta { keys: REQUIRED_META };
    let meta = peek.meta.as_ref().ok_or_else(|| missing.clone())?;
    if let Some(fault) = &meta.fault {
        return Err(Fault::InvalidMeta(fault.to_string()));
    }
    let version = meta.version.as_ref().ok_or_else(|| missing.clone())?;
    if meta.client_capabilities.is_none() {
        return Err(missing);
    }
    if let Some(headers) = http {
        version_header(headers, version)?;
    }
    let version = served_modern(version, served)?;
    if let Some(headers) = http {
        mirrored_headers(method, peek, headers)?;
    }
    if exists_for_client(method, version, served) {
        Ok(Verdict::Modern(version))
    } else {
        Err(Fault::MethodNotFound { method: method.as_str().into(), modern: true })
    }
}

/// The check *version header*, which outranks an unsupported version.
fn version_header(headers: &HeaderView<'_>, version: &VersionField) -> Result<(), Fault> {
    match headers.protocol_version {
        Some(header) if header.trim() == version.as_str() => Ok(()),
        Some(header) => Err(Fault::HeaderMismatch(format!(
            "MCP-Protocol-Version is {header:?}, but _meta says {:?}",
            version.as_str()
        ))),
        None => Err(Fault::HeaderMismatch("the header MCP-Protocol-Version is missing".into())),
    }
}

/// The check *served version*.
fn served_modern(version: &VersionField, served: &Served) -> Result<Version, Fault> {
    match version {
        VersionField::Known(known) if known.is_modern() && served.has(*known) => Ok(*known),
        // Naming legacy versions to a client that sends one in an envelope would make it try again.
        VersionField::Known(known) if !known.is_modern() => Err(Fault::UnsupportedVersion {
            requested: known.as_str().into(),
            supported: served.modern_only(),
        }),
        other => Err(Fault::UnsupportedVersion {
            requested: other.as_str().into(),
            supported: served.modern_first(),
        }),
    }
}

/// The checks *method header* and *name header*.
fn mirrored_headers(method: &MethodName, peek: &Peek, view: &HeaderView<'_>) -> Result<(), Fault> {
    let mismatch = |error: headers::HeaderMismatch| Fault::HeaderMismatch(error.to_string());
    headers::check_method(view.method, method.as_str()).map_err(mismatch)?;
    let source = match method.known().and_then(|known| known.info().name_header) {
        Some(NameSource::Name) => peek.name.as_deref(),
        Some(NameSource::Uri) => peek.uri.as_deref(),
        Some(NameSource::TaskId) => peek.task_id.as_deref(),
        None => return Ok(()),
    };
    // A body without the member fails at its parameters, with a better message.
    source.map_or(Ok(()), |body| headers::check_name(view.name, body).map_err(mismatch))
}

/// The check *known version*: a different version than the negotiated one is served as negotiated, an unknown one is not.
fn legacy_version_header(headers: &HeaderView<'_>, served: &Served) -> Result<(), Fault> {
    match headers.protocol_version.map(VersionField::of) {
        Some(VersionField::Unknown(requested)) => {
            Err(Fault::UnsupportedVersion { requested, supported: served.modern_first() })
        }
        _ => Ok(()),
    }
}

/// Without a session the header is all there is; without a header it is 2025-03-26.
fn sessionless_version(headers: &HeaderView<'_>, served: &Served) -> Result<Version, Fault> {
    match headers.protocol_version.map(VersionField::of) {
        None => Ok(Version::V2025_03_26),
        Some(VersionField::Known(version)) if served.has(version) => Ok(version),
        Some(other) => Err(Fault::UnsupportedVersion {
            requested: other.as_str().into(),
            supported: served.modern_first(),
        }),
    }
}

/// Requests of a peer that has shaken hands.
fn legacy_request(
    method: &MethodName,
    version: Version,
    initialized: bool,
    served: &Served,
) -> Result<Verdict, Fault> {
    if !initialized && method.known() != Some(Method::Ping) {
        return Err(Fault::NotInitialized { method: method.as_str().into() });
    }
    if exists_for_client(method, version, served) {
        Ok(Verdict::Legacy(version))
    } else {
        Err(Fault::MethodNotFound { method: method.as_str().into(), modern: false })
    }
}

/// The check *offered method*: in the table of that version, from a client, and advertised; or a custom method.
fn exists_for_client(method: &MethodName, version: Version, served: &Served) -> bool {
    match method {
        MethodName::Known(known) => {
            let info = known.info();
            info.kind == Kind::Request
                && info.from_client(version)
                && info.needs.is_none_or(|capability| served.capabilities.has(capability))
        }
        MethodName::Unknown(name) => served.has_custom(name),
    }
}

const REQUIRED_META: &[&str] = &[PROTOCOL_VERSION, CLIENT_CAPABILITIES];

#[cfg(test)]
mod tests;
