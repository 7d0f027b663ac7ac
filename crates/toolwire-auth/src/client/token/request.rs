//! Asking for a token.

use std::time::SystemTime;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderValue, header};
use zeroize::Zeroizing;

use super::{TokenHint, assertion::client_assertion, bound::DpopKey};
use crate::{
    Endpoint, Issuer, Resource, Secret,
    client::{
        AuthError, AuthErrorKind, Step,
        authorize::Code,
        register::{AuthMethod, Client},
        scopes::Scopes,
    },
    fetch::{NamedBy, Request},
};

/// How a credential was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GrantKind {
    /// A person, in a browser.
    AuthorizationCode,
    /// A person, with another device.
    Device,
    /// The client for itself.
    ClientCredentials,
    /// An assertion of the platform.
    Workload,
    /// An assertion of the identity provider.
    Enterprise,
}

impl GrantKind {
    /// Its name in what is stored.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::Device => "device_code",
            Self::ClientCredentials => "client_credentials",
            Self::Workload => "workload",
            Self::Enterprise => "enterprise",
        }
    }

    /// The grant of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::AuthorizationCode, Self::Device, Self::ClientCredentials, Self::Workload, Self::Enterprise]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// What is exchanged for a token.
#[derive(Clone, Debug)]
pub enum Grant {
    /// The code of an authorization response.
    Code(Code),
    /// The refresh token of an earlier answer.
    Refresh(Secret),
    /// Nothing but the client itself.
    ClientCredentials,
    /// An assertion (RFC 7523).
    JwtBearer(Secret),
    /// The code of a device.
    Device(Secret),
}

impl Grant {
    fn fields(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Code(code) => vec![
                ("grant_type", "authorization_code"),
                ("code", code.code.expose()),
                ("redirect_uri", &code.redirect),
                ("code_verifier", code.verifier.expose()),
            ],
            Self::Refresh(token) => vec![("grant_type", "refresh_token"), ("refresh_token", token.expose())],
            Self::ClientCredentials => vec![("grant_type", "client_credentials")],
            Self::JwtBearer(assertion) => vec![
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                ("assertion", assertion.expose()),
            ],
            Self::Device(code) => vec![
                ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
                ("device_code", code.expose()),
            ],
        }
    }

    /// Whether the request itself says which scopes are wanted; elsewhere they were said before.
    const fn names_scopes(&self) -> bool {
        matches!(self, Self::Refresh(_) | Self::ClientCredentials | Self::JwtBearer(_))
    }
}

/// Everything that a token request depends on besides its grant.
#[derive(Clone, Debug)]
pub struct TokenRequest<'a> {
    /// Where tokens are given.
    pub endpoint: &'a Endpoint,
    /// Who named that.
    pub named_by: NamedBy,
    /// The issuer, for the audience of assertions.
    pub issuer: &'a Issuer,
    /// Who asks.
    pub client: &'a Client,
    /// What the token is for.
    pub resource: Option<&'a Resource>,
    /// The scopes, where the request says them.
    pub scopes: Option<&'a Scopes>,
    /// The key that the token is bound to, and the last nonce of the issuer.
    pub dpop: Option<(&'a DpopKey, Option<&'a str>)>,
    /// The time of day, as the issuer sees it.
    pub now: SystemTime,
    /// New randomness.
    pub entropy: &'a [u8; 64],
}

impl TokenRequest<'_> {
    /// The request for a grant.
    pub fn build(&self, grant: &Grant) -> Result<Request, AuthError> {
        let scope =
            self.scopes.filter(|scopes| grant.names_scopes() && !scopes.is_empty()).map(Scopes::to_string);
        let mut fields = grant.fields();
        fields.extend(scope.as_deref().map(|scope| ("scope", scope)));
        let mut request = self.authenticated(&fields)?;
        if let Some((key, nonce)) = self.dpop {
            let mut entropy = [0; 16];
            entropy.copy_from_slice(&self.entropy[32..48]);
            let proof = key.proof("POST", self.endpoint, None, nonce, self.now, entropy)?;
            request.headers.insert("dpop", header_value(&proof)?);
        }
        Ok(request)
    }

    /// The request of a device for a code.
    pub fn device(&self) -> Result<Request, AuthError> {
        let scope = self.scopes.filter(|scopes| !scopes.is_empty()).map(Scopes::to_string);
        let fields: Vec<_> = scope.as_deref().map(|scope| ("scope", scope)).into_iter().collect();
        self.authenticated(&fields)
    }

    /// The request to revoke a token (RFC 7009). What it was for is known to the issuer, and not said.
    pub fn revoke(&self, token: &Secret, hint: TokenHint) -> Result<Request, AuthError> {
        let fields = [("token", token.expose()), ("token_type_hint", hint.name())];
        TokenRequest { resource: None, ..self.clone() }.authenticated(&fields)
    }

    /// Adds who asks, and for what.
    fn authenticated(&self, fields: &[(&str, &str)]) -> Result<Request, AuthError> {
        let registration = &self.client.registration;
        let mut fields = fields.to_vec();
        fields.extend(self.resource.map(|resource| ("resource", resource.as_str())));
        let id = registration.client_id.as_str();
        let secret = || registration.secret.as_ref().map(Secret::expose).ok_or_else(|| lacks("secret"));
        let assertion: Zeroizing<String>;
        let mut authorization = None;
        match registration.method {
            AuthMethod::None => fields.push(("client_id", id)),
            AuthMethod::ClientSecretBasic => authorization = Some(basic(id, secret()?)?),
            AuthMethod::ClientSecretPost => fields.extend([("client_id", id), ("client_secret", secret()?)]),
            AuthMethod::PrivateKeyJwt => {
                let key = self.client.key.as_ref().ok_or_else(|| lacks("key"))?;
                let audience = self.client.audience.as_deref().unwrap_or(self.issuer.as_str());
                assertion =
                    Zeroizing::new(client_assertion(key, id, audience, self.now, &self.entropy[..16])?);
                fields.extend([
                    ("client_id", id),
                    ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
                    ("client_assertion", &assertion),
                ]);
            }
        }
        let mut request = Request::form(self.endpoint.clone(), self.named_by, fields);
        if let Some(value) = authorization {
            request.headers.insert(header::AUTHORIZATION, value);
        }
        Ok(request)
    }
}

/// The header of a client with a secret; both are form-encoded first (RFC 6749, 2.3.1).
fn basic(id: &str, secret: &str) -> Result<HeaderValue, AuthError> {
    let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = Zeroizing::new(format!("{}:{}", encoded(id), encoded(secret)));
    header_value(&format!("Basic {}", BASE64_STANDARD.encode(pair.as_bytes())))
}

fn header_value(text: &str) -> Result<HeaderValue, AuthError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| lacks("value that fits into a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn lacks(what: &str) -> AuthError {
    let detail = format!("the client has no {what} to authenticate with");
    AuthError::new(AuthErrorKind::Misconfigured, Step::Token, detail)
}
