//! Exchanging the login at an identity provider for an assertion that the issuer of a server takes (RFC 8693).

use super::response::{MAX_TOKEN_BYTES, Refusal, document};
use crate::{
    Endpoint, Issuer, Resource, Secret,
    client::{AuthErrorKind, discover, scopes::Scopes},
    fetch::{NamedBy, Request, Response},
};

const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// What the identity provider gave out at its login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SubjectKind {
    /// An ID token of OpenID Connect.
    #[default]
    IdToken,
    /// An assertion of SAML.
    Saml2,
}

impl SubjectKind {
    const fn name(self) -> &'static str {
        match self {
            Self::IdToken => "urn:ietf:params:oauth:token-type:id_token",
            Self::Saml2 => "urn:ietf:params:oauth:token-type:saml2",
        }
    }
}

/// Asks an identity provider for an identity assertion to an issuer.
#[expect(clippy::too_many_arguments, reason = "each is a parameter of the request")]
pub fn exchange_request(
    endpoint: &Endpoint,
    named_by: NamedBy,
    client_id: &str,
    subject: &Secret,
    kind: SubjectKind,
    audience: &Issuer,
    resource: Option<&Resource>,
    scopes: &Scopes,
) -> Request {
    let scope = scopes.to_string();
    let mut fields = vec![
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", ID_JAG),
        ("audience", audience.as_str()),
        ("subject_token", subject.expose()),
        ("subject_token_type", kind.name()),
        ("client_id", client_id),
    ];
    fields.extend(resource.map(|resource| ("resource", resource.as_str())));
    fields.extend(Some(("scope", scope.as_str())).filter(|_| !scopes.is_empty()));
    Request::form(endpoint.clone(), named_by, fields)
}

/// Reads the answer, which is an assertion and nothing that could be used as an access token.
pub fn accept_exchange(response: &Response) -> Result<Secret, Refusal> {
    let document = document(response)?;
    let member = |name| discover::text(&document, name).ok().flatten();
    let wrong = |detail: &str| Err(Refusal::Final(AuthErrorKind::WrongTokenType, detail.to_owned()));
    if member("issued_token_type") != Some(ID_JAG) {
        return wrong("the identity provider gave no identity assertion");
    }
    if !member("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("N_A")) {
        return wrong("the identity provider gave an identity assertion that is said to be an access token");
    }
    match member("access_token") {
        Some(token)
            if (1..=MAX_TOKEN_BYTES).contains(&token.len())
                && token.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            Ok(Secret::from(token))
        }
        _ => Err(Refusal::Final(
            AuthErrorKind::TokenInvalid,
            "the identity assertion cannot be used".to_owned(),
        )),
    }
}
