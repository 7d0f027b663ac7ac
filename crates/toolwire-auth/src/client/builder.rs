//! How a client logs in, put together.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use serde_json::Map;
use toolwire_http::client::{
    authorize::{Authorization, Authorize},
    fetch::Fetcher,
};

use super::{
    AuthError, AuthErrorKind, Event, Step,
    authorize::PROTOCOL_PARAMETERS,
    authorizer::Authorizer,
    credential::Server,
    flow::{Audience, Dpop, FixedEndpoints, Idp, Settings},
    login::Person,
    register::{self, ClientDocument, ClientId},
    scopes::Scopes,
    store::{CredentialStore, MemoryStore},
};
use crate::{
    Endpoint, Issuer, Origins, Resource, Secret,
    clock::{Clock, SystemClock},
    entropy::{Entropy, SystemEntropy},
    fetch::{BoxFuture, Fetch, Guarded},
    jose::PrivateKey,
};

/// Logs in to servers, and renews what it was given. Clones share their credentials.
///
/// ```no_run
/// use toolwire_auth::client::{OAuth, login::Browser, store::FileStore};
/// use toolwire_http::client::Http;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let oauth = OAuth::builder("Notes").login(Browser::loopback()).store(FileStore::of("notes")?).build()?;
/// let server = Http::builder("http://127.0.0.1:8080/mcp").auth(oauth).build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OAuth {
    config: Arc<Config>,
    servers: Arc<Mutex<HashMap<String, Weak<Server>>>>,
}

/// How a grant is obtained, and what that takes.
pub(super) enum Means {
    /// A person is asked, if there is a way to one.
    Person(Option<Person>),
    ClientCredentials,
    Workload(Assertion<Audience>),
    Enterprise(Idp, Assertion<()>),
}

/// Asks the application for a token of its platform or of its login.
pub(super) type Assertion<A> = Arc<dyn Fn(A) -> BoxFuture<'static, Result<Secret, String>> + Send + Sync>;

/// Everything that was set.
pub(super) struct Config {
    pub(super) settings: Settings,
    pub(super) means: Means,
    pub(super) account: String,
    pub(super) store: Arc<dyn CredentialStore>,
    pub(super) on_event: Option<OnEvent>,
    pub(super) fetch: Option<Arc<dyn Fetch>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
}

type OnEvent = Arc<dyn Fn(&Event) + Send + Sync>;

impl OAuth {
    /// Logs people in. The name is what they see when they are asked for consent.
    pub fn builder(name: impl Into<String>) -> OAuthBuilder {
        OAuthBuilder::new(name.into(), Means::Person(None))
    }

    /// Creates a builder of a client that requests tokens for itself, without a user. Only `issuer`, written exactly as
    /// it identifies itself, receives the client's credentials, even if a server names another one.
    pub fn client_credentials(issuer: &str, client: ClientId, proof: impl Into<ClientProof>) -> OAuthBuilder {
        let client = match proof.into() {
            ClientProof::Secret(secret) => client.secret(secret),
            ClientProof::Key(key) => client.key(*key),
        };
        OAuthBuilder::of_client(issuer, client, Means::ClientCredentials)
    }

    /// Creates a builder of a client that requests tokens with a token of the platform it runs on (RFC 7523).
    /// `assertion` is called for each request, with the audience that the platform's token has to be for. Only `issuer`,
    /// written exactly as it identifies itself, receives that token, even if a server names another one.
    pub fn workload<F, R, E>(issuer: &str, client: ClientId, assertion: F) -> OAuthBuilder
    where
        F: Fn(Audience) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Secret, E>> + Send + 'static,
        E: fmt::Display,
    {
        OAuthBuilder::of_client(issuer, client, Means::Workload(asked(assertion)))
    }

    /// Creates a builder of a client that requests tokens with the ID token of a login at the company's identity
    /// provider. `id_token` is called for each request, and its token goes to the identity provider alone; only `issuer`
    /// receives the client's credentials, even if a server names another one.
    pub fn enterprise<F, R, E>(idp: Idp, id_token: F, issuer: &str, client: ClientId) -> OAuthBuilder
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Secret, E>> + Send + 'static,
        E: fmt::Display,
    {
        OAuthBuilder::of_client(issuer, client, Means::Enterprise(idp, asked(move |()| id_token())))
    }

    /// What a client that logs in like this announces with
    /// [`ClientBuilder::extension`](toolwire_client::ClientBuilder::extension): names and settings.
    pub fn extensions(&self) -> Vec<(&'static str, Map<String, serde_json::Value>)> {
        match self.config.means {
            Means::ClientCredentials => {
                vec![("io.modelcontextprotocol/oauth-client-credentials", Map::new())]
            }
            Means::Enterprise(..) => {
                vec![("io.modelcontextprotocol/enterprise-managed-authorization", Map::new())]
            }
            Means::Person(_) | Means::Workload(_) => Vec::new(),
        }
    }

    /// The state that all links to one server share.
    pub(super) fn server(&self, url: &str, fetcher: Fetcher) -> Result<Arc<Server>, AuthError> {
        let endpoint =
            Endpoint::parse_trusting(url, &self.config.settings.dangerous.trusted).map_err(|why| {
                let detail = format!("the address of the server {why}, so no token is sent there");
                AuthError::new(AuthErrorKind::Misconfigured, Step::Use, detail)
            })?;
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        // As in the store: two spellings of one address are one login.
        let key = endpoint.as_str().to_owned();
        if let Some(known) = servers.get(&key).and_then(Weak::upgrade) {
            return Ok(known);
        }
        servers.retain(|_, server| server.strong_count() > 0);
        let guarded = || {
            let trusted = self.config.settings.dangerous.trusted.clone();
            Arc::new(Guarded::new().with(fetcher).trust(trusted)) as Arc<dyn Fetch>
        };
        let fetch = self.config.fetch.clone().unwrap_or_else(guarded);
        let server = Arc::new(Server::new(Arc::clone(&self.config), endpoint, fetch));
        servers.insert(key, Arc::downgrade(&server));
        Ok(server)
    }
}

impl Authorization for OAuth {
    fn bind(
        &self,
        server: &str,
        fetcher: Fetcher,
    ) -> Result<Arc<dyn Authorize>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Arc::new(Authorizer::new(self.server(server, fetcher)?)))
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("name", &self.config.settings.client_name).finish_non_exhaustive()
    }
}

fn asked<A, F, R, E>(ask: F) -> Assertion<A>
where
    F: Fn(A) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Secret, E>> + Send + 'static,
    E: fmt::Display,
{
    Arc::new(move |audience| {
        let asked = ask(audience);
        Box::pin(async move { asked.await.map_err(|error| error.to_string()) })
    })
}

/// What a program proves that it is a client with.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientProof {
    /// A secret.
    Secret(Secret),
    /// A key that it signs assertions with.
    Key(Box<PrivateKey>),
}

impl From<Secret> for ClientProof {
    fn from(secret: Secret) -> Self {
        Self::Secret(secret)
    }
}

impl From<PrivateKey> for ClientProof {
    fn from(key: PrivateKey) -> Self {
        Self::Key(Box::new(key))
    }
}

/// Puts together an [`OAuth`]. From [`OAuth::builder`].
#[must_use = "it is made by `build`"]
pub struct OAuthBuilder {
    config: Config,
    trusted: Vec<String>,
    /// The first thing that was wrong.
    fault: Option<AuthError>,
}

impl OAuthBuilder {
    fn new(name: String, means: Means) -> Self {
        let config = Config {
            settings: Settings::new(name),
            means,
            account: String::new(),
            store: Arc::new(MemoryStore::new()),
            on_event: None,
            fetch: None,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
        };
        Self { config, trusted: Vec::new(), fault: None }
    }

    /// A client that acts without a user, at the one issuer that knows it.
    fn of_client(issuer: &str, client: ClientId, means: Means) -> Self {
        let mut builder = Self::new(client.id().to_owned(), means);
        builder.checked("the issuer", Issuer::parse(issuer));
        builder.client(client.issuer(issuer))
    }

    fn fail(&mut self, detail: impl Into<String>) {
        self.fault.get_or_insert_with(|| AuthError::new(AuthErrorKind::Misconfigured, Step::Use, detail));
    }

    /// Takes a value, or remembers what was wrong with it.
    fn checked<T, E: fmt::Display>(&mut self, what: &str, value: Result<T, E>) -> Option<T> {
        value.map_err(|why| self.fail(format!("{what} {why}"))).ok()
    }

    /// Uses this client, which was registered by hand, where its issuer is asked. One with a secret or a key needs an
    /// issuer: its own ([`ClientId::issuer`]) or that of the builder ([`issuer`](Self::issuer)).
    pub fn client(mut self, client: ClientId) -> Self {
        self.config.settings.clients.push(client);
        self
    }

    /// Uses the document at this URL, which describes the client, where the issuer takes documents.
    pub fn client_document(mut self, url: &str) -> Self {
        match ClientDocument::parse(url) {
            Ok(document) => self.config.settings.document = Some(document),
            Err(error) => {
                self.fault.get_or_insert(error);
            }
        }
        self
    }

    /// How people are asked. Without it nobody is, and a server that asks for a login is an error.
    pub fn login(mut self, person: impl Into<Person>) -> Self {
        match &mut self.config.means {
            Means::Person(slot) => *slot = Some(person.into()),
            _ => self.fail("this client gets its tokens without a person, and was given a way to one"),
        }
        self
    }

    /// Where credentials are kept; in memory by default.
    pub fn store(mut self, store: impl CredentialStore) -> Self {
        self.config.store = Arc::new(store);
        self
    }

    /// Keeps the credential under a name, for those who have several accounts at one server.
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.config.account = account.into();
        self
    }

    /// Is called with everything that happens on the way to a credential, with the rule and the verdict, without
    /// secrets.
    pub fn on_event(mut self, on_event: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.config.on_event = Some(Arc::new(on_event));
        self
    }

    /// The issuer, whatever the server says.
    pub fn issuer(mut self, issuer: &str) -> Self {
        self.config.settings.issuer = self.checked("the issuer", Issuer::parse(issuer));
        self
    }

    /// The endpoints of an issuer that has no metadata.
    pub fn endpoints(mut self, issuer: &str, authorization: &str, token: &str) -> Self {
        let issuer = self.checked("the issuer", Issuer::parse(issuer));
        let authorization = self.checked("the authorization endpoint", Endpoint::parse(authorization));
        let token = self.checked("the token endpoint", Endpoint::parse(token));
        if let (Some(issuer), Some(authorization), Some(token)) = (issuer, authorization, token) {
            self.config.settings.endpoints.push(FixedEndpoints { issuer, authorization, token });
        }
        self
    }

    /// What tokens are asked for, whatever the server says.
    pub fn resource(mut self, resource: &str) -> Self {
        self.config.settings.resource = self.checked("the resource", Resource::parse(resource));
        self
    }

    /// Scopes that are asked for besides those that the server wants.
    pub fn scopes<T: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = T>) -> Self {
        match Scopes::new(scopes) {
            Some(scopes) => self.config.settings.scopes = self.config.settings.scopes.union(&scopes),
            None => self.fail("one of the scopes is not one"),
        }
        self
    }

    /// A parameter that is added to the authorization request; never one that the protocol uses.
    pub fn authorize_param(mut self, name: &str, value: &str) -> Self {
        if PROTOCOL_PARAMETERS.contains(&name) {
            self.fail(format!("the parameter {name:?} of the authorization request is the protocol's own"));
        }
        self.config.settings.authorize_params.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Asks for consent even if it was given before.
    pub const fn consent(mut self) -> Self {
        self.config.settings.consent = true;
        self
    }

    /// Whether tokens are bound to a key (RFC 9449); by default if the server asks for it.
    pub const fn dpop(mut self, dpop: Dpop) -> Self {
        self.config.settings.dpop = dpop;
        self
    }

    /// Logs in to servers of 2025-03-26, which have no metadata of their own.
    pub const fn allow_2025_03_26(mut self) -> Self {
        self.config.settings.allow_2025_03_26 = true;
        self
    }

    /// Registers a client anew, whether one is stored or not.
    pub const fn fresh(mut self) -> Self {
        self.config.settings.fresh = true;
        self
    }

    /// What weakens a rule, for one issuer or origin.
    pub const fn dangerous(self) -> DangerousBuilder {
        DangerousBuilder(self)
    }

    /// Fetches metadata and tokens by other means than over the network, for tests.
    #[doc(hidden)]
    pub fn fetch(mut self, fetch: impl Fetch + 'static) -> Self {
        self.config.fetch = Some(Arc::new(fetch));
        self
    }

    /// Tells the time by another clock, for tests.
    #[doc(hidden)]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.config.clock = Arc::new(clock);
        self
    }

    /// Checks what was given. Nothing is sent or read yet.
    pub fn build(mut self) -> Result<OAuth, AuthError> {
        let trusted = Origins::parse(self.trusted.iter().map(String::as_str).collect::<Vec<_>>());
        if let Some(origins) = self.checked("a trusted origin", trusted) {
            self.config.settings.dangerous.trusted = origins;
        }
        let person = matches!(self.config.means, Means::Person(_));
        if let Some(error) = register::without_issuer(&self.config.settings, person) {
            self.fault.get_or_insert(error);
        }
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(OAuth { config: Arc::new(self.config), servers: Arc::default() }),
        }
    }
}

/// Settings that weaken a rule. From [`OAuthBuilder::dangerous`].
#[must_use = "it is made by `build`"]
#[derive(Debug)]
pub struct DangerousBuilder(OAuthBuilder);

impl DangerousBuilder {
    /// Asks this origin whoever names it, wherever it is, and without TLS if it is written so.
    pub fn trust_origin(mut self, origin: impl Into<String>) -> Self {
        self.0.trusted.push(origin.into());
        self
    }

    /// This issuer knows PKCE, though it does not say so.
    pub fn assume_pkce(mut self, issuer: &str) -> Self {
        let issuer = self.0.checked("the issuer", Issuer::parse(issuer));
        self.0.config.settings.dangerous.assume_pkce.extend(issuer);
        self
    }

    /// This issuer is not told which server its tokens are for.
    pub fn omit_resource(mut self, issuer: &str) -> Self {
        let issuer = self.0.checked("the issuer", Issuer::parse(issuer));
        self.0.config.settings.dangerous.omit_resource.extend(issuer);
        self
    }

    /// Accepts metadata whose issuer differs from the one that was asked by one final slash, more or less, after a path as
    /// well: `https://login.example` and `https://login.example/` are one issuer without it. The spelling of the metadata
    /// counts from then on.
    pub const fn ignore_issuer_slash(mut self) -> Self {
        self.0.config.settings.dangerous.ignore_issuer_slash = true;
        self
    }

    /// Back to what weakens nothing.
    pub fn safe(self) -> OAuthBuilder {
        self.0
    }

    /// Checks what was given, as [`OAuthBuilder::build`] does.
    pub fn build(self) -> Result<OAuth, AuthError> {
        self.0.build()
    }
}

impl fmt::Debug for OAuthBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthBuilder")
            .field("name", &self.config.settings.client_name)
            .finish_non_exhaustive()
    }
}
