//! What a person does with a login, apart from using it: log in, log out, and see what a login would be.

use http::Method;
use toolwire_http::client::{authorize::Refusal, fetch::Fetcher};

use super::{
    AuthError, AuthErrorKind, OAuth, Step,
    credential::{CurrentCredential, Server, Stored},
    driver::{self, Saving},
    flow::{self, Cause, Effect, Input, Plan, Redirects, Way},
    login::LOOPBACK_PORTS,
    register::{Source, recorded},
    store::{Key, Record, StoreError, StoreErrorKind, Summary},
    token::{Credential, TokenHint, TokenRequest, accept_revocation},
};
use crate::{Endpoint, Secret, challenge, fetch::NamedBy};

/// What a login would begin with, from [`OAuth::explain`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Prospect {
    /// A client is registered here, then a person is asked.
    Register(Endpoint),
    /// A person is asked.
    Ask,
}

/// What became of a credential, from [`OAuth::log_out`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoggedOut {
    /// What it was, if it could be read.
    pub summary: Option<Summary>,
    /// Whether the issuer revoked it.
    pub revoked: Result<Revoked, AuthError>,
}

/// Whether an issuer revoked a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Revoked {
    /// It did.
    Yes,
    /// It revoked what renews it. The token itself, which this issuer does not revoke, is good until it ends.
    Renewal,
    /// It revokes none.
    NotOffered,
}

impl OAuth {
    /// Logs in to a server now, whether a credential is stored or not, and says what was given. A server that refused a
    /// request has said in its refusal what it wants.
    ///
    /// # Errors
    /// As for every other login, and when what was given could not be stored.
    pub async fn log_in(
        &self,
        server: &str,
        fetcher: Fetcher,
        refusal: Option<Refusal>,
    ) -> Result<Summary, AuthError> {
        let server = self.server(server, fetcher)?;
        let cause = cause(&server, refusal);
        // A record that cannot be used cannot be replaced either, and nobody is asked in vain.
        server.config.store.load(&server.key).await.map_err(|error| not_stored(&error))?;
        let stored = match server.stored().await {
            Stored::Credential(mut credential, generation) => {
                credential.refresh = None;
                Some(CurrentCredential::of_store(*credential, generation))
            }
            Stored::Nothing | Stored::Unusable => None,
        };
        driver::run(&server, cause, true, stored, Saving::Unlocked).await?;
        let record = server.config.store.load(&server.key).await.map_err(|error| not_stored(&error))?;
        let summary = record.as_ref().and_then(|record| record.summary().ok().flatten());
        summary.ok_or_else(|| {
            let error = StoreError::new(StoreErrorKind::Failed, "what was given could not be stored");
            not_stored(&error)
        })
    }

    /// Goes the way to a login up to where a client would be registered or a person asked, and tells each step to
    /// [`on_event`](super::OAuthBuilder::on_event). Nothing is registered, asked for or written.
    ///
    /// # Errors
    /// Those that a login would end with.
    pub async fn explain(
        &self,
        server: &str,
        fetcher: Fetcher,
        refusal: Option<Refusal>,
    ) -> Result<Prospect, AuthError> {
        let server = self.server(server, fetcher)?;
        let cause = cause(&server, refusal);
        let used = format!("http://127.0.0.1:{}/callback", LOOPBACK_PORTS[0]);
        let way = Way::Browser(Redirects::new([used.clone()], used).per_issuer());
        let plan = Plan { may_ask: true, ..driver::plan(&server, way, false, None).await };
        let mut events = Vec::new();
        let mut turned = flow::begin(plan, cause, &driver::env(&server)?, &mut events);
        loop {
            server.tell(&events);
            events.clear();
            let (flow, effect) = turned?;
            let input = match effect {
                Effect::Send(request) if request.method == Method::GET => match server.send(request).await {
                    Ok(response) => Input::Response(response),
                    Err(error) => Input::Unreachable(error),
                },
                Effect::Send(request) => return Ok(Prospect::Register(request.url)),
                // It is not.
                Effect::Save(_) => Input::Saved,
                _ => return Ok(Prospect::Ask),
            };
            turned = flow.next(input, &driver::env(&server)?, &mut events);
        }
    }

    /// Asks the issuer to revoke what is stored for a server, the refresh token first, and forgets it, whether that
    /// worked or not. `None` if nothing was stored. The client that was registered for it goes as well if
    /// `forget_client`, which other servers of the same issuer may be using.
    ///
    /// Links of this `OAuth` do not use or renew the login again. Other processes end it when it is next renewed or refused,
    /// and do not store it again. The issuer that a configured client is bound to is kept.
    ///
    /// # Errors
    /// When it could not be forgotten.
    pub async fn log_out(
        &self,
        server: &str,
        fetcher: Fetcher,
        forget_client: bool,
    ) -> Result<Option<LoggedOut>, AuthError> {
        let server = self.server(server, fetcher)?;
        let (store, key) = (&server.config.store, &server.key);
        let _lock = store.lock(key).await.map_err(|error| not_stored(&error))?;
        let record = store.load(key).await.map_err(|error| not_stored(&error))?;
        let Some(record) = record.filter(Record::has_credential) else {
            server.forget();
            return Ok(None);
        };
        let credential = record.credential(&server.config.settings.dangerous.trusted);
        let revoked = match &credential {
            Ok(credential) => revoke(&server, credential).await,
            Err(error) => Err(not_stored(error)),
        };
        let removed = match record.logged_out() {
            Some(left) => store.save(key, left, record.generation()).await,
            None => store.remove(key, record.generation()).await,
        };
        removed.map_err(|error| not_stored(&error))?;
        server.forget();
        if forget_client
            && let Ok(credential) = &credential
            && credential.client.source == Source::Dynamic
        {
            forget(&server, &Key::client(credential.issuer.as_str())).await?;
        }
        Ok(Some(LoggedOut { summary: record.summary().ok().flatten(), revoked }))
    }
}

/// Why a login begins, and where the server was met.
fn cause(server: &Server, refusal: Option<Refusal>) -> Cause {
    let Some(refusal) = refusal else { return Cause::Start };
    server.reach.learn(&refusal.reached);
    Cause::Refused(challenge::parse(&refusal.headers))
}

fn not_stored(error: &StoreError) -> AuthError {
    AuthError::new(AuthErrorKind::NotStored(error.kind()), Step::Store, error.to_string())
}

async fn forget(server: &Server, key: &Key) -> Result<(), AuthError> {
    let store = &server.config.store;
    let forgotten = async {
        let _lock = store.lock(key).await?;
        match store.load(key).await? {
            Some(record) => store.remove(key, Record::generation(&record)).await,
            None => Ok(()),
        }
    };
    forgotten.await.map_err(|error| not_stored(&error))
}

/// Whether an issuer does not revoke tokens of this kind (RFC 7009, 2.2.1): many revoke no signed access tokens, which
/// servers verify without asking.
fn is_unsupported(error: &AuthError) -> bool {
    matches!(&error.kind, AuthErrorKind::TokenRefused { error } if error == "unsupported_token_type")
}

async fn revoke(server: &Server, credential: &Credential) -> Result<Revoked, AuthError> {
    let endpoints = &credential.endpoints;
    let Some(endpoint) = &endpoints.revocation else { return Ok(Revoked::NotOffered) };
    let plan = driver::plan(server, Way::Browser(Redirects::none()), false, None).await;
    let client = recorded(&plan, &credential.client);
    let named_by = if endpoint.same_origin(&endpoints.token) { endpoints.named_by } else { NamedBy::Peer };
    let refresh = credential.refresh.as_ref().map(|token| (token, TokenHint::Refresh));
    // A token that renews nothing any more is the lesser evil, so the other one comes first and both are tried.
    let tokens: Vec<(&Secret, TokenHint)> =
        refresh.into_iter().chain([(&credential.access, TokenHint::Access)]).collect();
    let mut failed = None;
    let mut revoked = Revoked::Yes;
    for (token, hint) in tokens {
        let env = driver::env(server)?;
        let request = TokenRequest {
            endpoint,
            named_by,
            issuer: &credential.issuer,
            client: &client,
            resource: None,
            scopes: None,
            dpop: None,
            now: env.now,
            entropy: &env.entropy,
        }
        .revoke(token, hint)?;
        let answered = match server.send(request).await {
            Ok(response) => accept_revocation(&response, endpoint),
            Err(error) => {
                Err(AuthError::new(AuthErrorKind::Unavailable, Step::Revocation, error.detail).at(endpoint))
            }
        };
        match answered {
            Err(error) if hint == TokenHint::Access && is_unsupported(&error) => {
                revoked = if credential.refresh.is_some() { Revoked::Renewal } else { Revoked::NotOffered };
            }
            answered => failed = failed.or_else(|| answered.err()),
        }
    }
    failed.map_or(Ok(revoked), Err)
}
