//! A client, as the application or the issuer gave it.

use std::{sync::Arc, time::SystemTime};

use crate::{Issuer, Secret, jose::PrivateKey};

/// A client that was registered by hand.
///
/// ```
/// use toolwire_auth::{Secret, client::register::ClientId};
///
/// let client = ClientId::new("notes").issuer("https://login.example").secret(Secret::from("hunter2"));
/// assert!(!format!("{client:?}").contains("hunter2"));
/// ```
#[derive(Clone, Debug)]
pub struct ClientId {
    pub(crate) id: String,
    pub(crate) issuer: Option<String>,
    pub(crate) secret: Option<Secret>,
    pub(crate) key: Option<Arc<PrivateKey>>,
    pub(crate) method: Option<AuthMethod>,
    pub(crate) audience: Option<String>,
}

impl ClientId {
    /// A client by its identifier.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), issuer: None, secret: None, key: None, method: None, audience: None }
    }

    /// Sets the issuer that knows the client, exactly as that identifies itself. A client with a secret or a key needs
    /// one. A client that has neither, of a user, is otherwise bound to the first issuer found for each server.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// The secret it authenticates with.
    #[must_use]
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// The key it signs assertions with.
    #[must_use]
    pub fn key(mut self, key: PrivateKey) -> Self {
        self.key = Some(Arc::new(key));
        self
    }

    /// How it authenticates, if the issuer does not say so itself.
    #[must_use]
    pub fn method(mut self, method: AuthMethod) -> Self {
        self.method = Some(method);
        self
    }

    /// The audience of its assertions, for issuers that want another than their identifier.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// Returns whether it has something to authenticate with, which only its issuer may receive.
    pub(crate) const fn authenticates(&self) -> bool {
        self.secret.is_some() || self.key.is_some()
    }

    /// The identifier.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthMethod {
    /// Not at all: it only says who it is.
    None,
    /// By its secret, in a header.
    ClientSecretBasic,
    /// By its secret, in the body.
    ClientSecretPost,
    /// By an assertion that it signed.
    PrivateKeyJwt,
}

impl AuthMethod {
    /// Its name in metadata.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// The method of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::None, Self::ClientSecretBasic, Self::ClientSecretPost, Self::PrivateKeyJwt]
            .into_iter()
            .find(|method| method.name() == name)
    }
}

/// Where a client comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The application gave its identifier.
    Configured,
    /// It is the URL of a document.
    Document,
    /// The issuer made it.
    Dynamic,
}

/// A client at one issuer: what is stored of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The issuer it belongs to.
    pub issuer: Issuer,
    /// Its identifier there.
    pub client_id: String,
    /// Where it comes from.
    pub source: Source,
    /// Its secret.
    pub secret: Option<Secret>,
    /// When that ends.
    pub secret_expires: Option<SystemTime>,
    /// How it authenticates.
    pub method: AuthMethod,
    /// The redirects that were registered; empty where they are the application's business.
    pub redirects: Vec<String>,
}

impl Registration {
    /// The redirect to use, if one that fits is registered: the one that is listened on, or its twin by the name of
    /// this machine.
    pub fn redirect(&self, used: &str) -> Option<String> {
        let known = |redirect: &str| self.redirects.iter().any(|known| known == redirect);
        if self.redirects.is_empty() || known(used) {
            return Some(used.to_owned());
        }
        by_name(used).filter(|twin| known(twin))
    }

    /// Whether its secret can still be used.
    pub fn is_current(&self, now: SystemTime) -> bool {
        self.secret_expires.is_none_or(|expires| now < expires)
    }
}

/// Returns the redirect with `localhost` instead of the address.
pub(crate) fn by_name(redirect: &str) -> Option<String> {
    redirect.strip_prefix("http://127.0.0.1").map(|rest| format!("http://localhost{rest}"))
}

/// Returns the redirect with the address instead of `localhost`.
pub(crate) fn by_address(redirect: &str) -> Option<String> {
    redirect.strip_prefix("http://localhost").map(|rest| format!("http://127.0.0.1{rest}"))
}

/// A client that can ask for tokens.
#[derive(Clone, Debug)]
pub struct Client {
    /// What the issuer knows.
    pub registration: Registration,
    /// The key of its assertions.
    pub key: Option<Arc<PrivateKey>>,
    /// The audience of its assertions, if it is not the issuer.
    pub audience: Option<String>,
}
