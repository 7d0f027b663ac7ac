//! The metadata of a server (RFC 9728): which issuers it trusts.

use serde_json::{Map, Value};

use super::{flag, object, text, texts, well_known};
use crate::{
    Endpoint, Issuer, Origins, Resource,
    challenge::Challenge,
    client::{AuthError, AuthErrorKind, Step, scopes::Scopes},
    fetch::Response,
};

const NAME: &str = "oauth-protected-resource";
/// The most issuers of one document that are looked at.
pub const MAX_LISTED_ISSUERS: usize = 16;

/// Where metadata may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The address.
    pub url: Endpoint,
    /// Whether the server named it, or it is one where metadata often are.
    pub advertised: bool,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceMetadata {
    /// What tokens are for, exactly as it was written.
    pub resource: Resource,
    /// The issuers it trusts.
    pub issuers: Vec<Issuer>,
    /// The scopes of a first login.
    pub scopes: Option<Scopes>,
    /// Whether only tokens that are bound to a key are accepted.
    pub dpop_required: bool,
    /// The algorithms for proofs, if it says.
    pub dpop_algorithms: Option<Vec<String>>,
}

/// What an answer leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// These are the metadata.
    Found(ResourceMetadata),
    /// There are none here.
    Absent(&'static str),
    /// There are those of another server here.
    Mismatch(AuthError),
}

/// The places to look at, in their order: the one that the challenge names, and that one alone; without it the
/// well-known one of the server's path, then the one of its root.
pub fn places(
    server: &Endpoint,
    challenge: Option<&Challenge>,
    trusted: &Origins,
) -> Result<Vec<Place>, AuthError> {
    if let Some(advertised) = challenge.and_then(Challenge::resource_metadata) {
        let url = Endpoint::parse_trusting(advertised, trusted).map_err(|why| {
            let detail = format!("the address of the metadata that the challenge names {why}");
            AuthError::new(AuthErrorKind::MetadataRefused, Step::Resource, detail)
        })?;
        return Ok(vec![Place { url, advertised: true }]);
    }
    let (of_path, of_root) = (own_place(server), well_known(server, NAME, "", None));
    let guess = |url| Place { url, advertised: false };
    if of_path == of_root { Ok(vec![guess(of_root)]) } else { Ok(vec![guess(of_path), guess(of_root)]) }
}

/// The well-known place of a resource.
fn own_place(resource: &Endpoint) -> Endpoint {
    let url = resource.url();
    let path = if url.path() == "/" { "" } else { url.path() };
    well_known(resource, NAME, path, url.query())
}

/// Judges the answer of a place. `pinned` is a resource that the application insists on.
pub fn accept(
    place: &Place,
    server: &Endpoint,
    pinned: Option<&Resource>,
    response: &Response,
) -> Result<Next, AuthError> {
    let fail = |kind, detail: String| Err(AuthError::new(kind, Step::Resource, detail).at(&place.url));
    let status = response.status;
    if status.is_server_error() || matches!(status.as_u16(), 408 | 429) {
        return fail(
            AuthErrorKind::Unavailable,
            format!("the server answers with status {}", status.as_u16()),
        );
    }
    if status.is_client_error() {
        return Ok(Next::Absent("nothing is there"));
    }
    let refuse = |detail: String| {
        if place.advertised {
            fail(AuthErrorKind::MetadataRefused, detail)
        } else {
            Ok(Next::Absent("what is there are no metadata"))
        }
    };
    if !status.is_success() {
        return refuse(format!(
            "the answer has status {}, and redirects to other origins are not followed",
            status.as_u16()
        ));
    }
    let Some(document) = object(&response.body) else {
        return refuse("the metadata are not a JSON object without duplicate names".to_owned());
    };
    let metadata = match read(&document) {
        Ok(metadata) => metadata,
        Err(detail) => return refuse(detail),
    };
    if !document.contains_key("authorization_servers") && !place.advertised {
        return Ok(Next::Absent("what is there names no issuers"));
    }
    let fits = match pinned {
        Some(pinned) => metadata.resource == *pinned || speaks_of(&metadata.resource, server, place),
        None => speaks_of(&metadata.resource, server, place),
    };
    if fits {
        return Ok(Next::Found(metadata));
    }
    let detail = format!(
        "the metadata are those of {}, which is not the server that was asked; if it is the same one, give its address \
         as it is written there, or set the resource",
        metadata.resource
    );
    let mismatch = AuthError::new(AuthErrorKind::ResourceMismatch, Step::Resource, detail).at(&place.url);
    if place.advertised { Err(mismatch) } else { Ok(Next::Mismatch(mismatch)) }
}

fn read(document: &Map<String, Value>) -> Result<ResourceMetadata, String> {
    let resource = text(document, "resource")?.ok_or("the metadata have no \"resource\"")?;
    let resource = Resource::parse(resource).map_err(|why| format!("\"resource\" {why}"))?;
    let listed = texts(document, "authorization_servers")?.unwrap_or_default();
    Ok(ResourceMetadata {
        resource,
        issuers: listed.iter().take(MAX_LISTED_ISSUERS).filter_map(|text| Issuer::parse(text).ok()).collect(),
        scopes: texts(document, "scopes_supported")?.map(Scopes::lenient),
        dpop_required: flag(document, "dpop_bound_access_tokens_required")?,
        dpop_algorithms: texts(document, "dpop_signing_alg_values_supported")?
            .map(|names| names.into_iter().map(str::to_owned).collect()),
    })
}

/// Returns whether a token for a resource is good for more than a server: the resource is above it, or has no query where
/// the server has one.
pub(crate) fn is_broader(resource: &Resource, server: &Endpoint) -> bool {
    let Ok(named) = url::Url::parse(resource.as_str()) else { return false };
    let (above, below) = (without_final_slash(named.path()), without_final_slash(server.url().path()));
    is_above(above, below) || (above == below && named.query() != server.url().query())
}

/// Returns whether metadata from a place may speak of a resource to a client that asked for a server: the resource is that
/// very server, or it is above it and the metadata come from the resource's own place. A foreign origin can speak of
/// nothing but the server.
///
/// RFC 9728, 3.3, wants the resource to be the server. Many servers name their host instead, so that is accepted with a
/// [warning](is_broader): a server that shares its host with others can have a token asked for that they accept, too.
fn speaks_of(resource: &Resource, server: &Endpoint, place: &Place) -> bool {
    let Ok(named) =
        Endpoint::parse_trusting(resource.as_str(), &Origins::parse([server.as_str()]).unwrap_or_default())
    else {
        return false;
    };
    if !named.same_origin(server) {
        return false;
    }
    let (named_url, server_url) = (named.url(), server.url());
    let same_query = named_url.query().is_none() || named_url.query() == server_url.query();
    let (above, below) = (without_final_slash(named_url.path()), without_final_slash(server_url.path()));
    same_query && (above == below || (is_above(above, below) && place.url == own_place(&named)))
}

fn without_final_slash(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

/// Returns whether a path is above another by whole segments.
fn is_above(above: &str, below: &str) -> bool {
    below.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}
