//! Which client asks an issuer.

use std::time::SystemTime;

use super::client::{AuthMethod, Client, ClientId, Registration, Source};
use crate::client::{
    AuthError, AuthErrorKind, Step,
    discover::issuer::ServerMetadata,
    flow::{Plan, Settings, Way},
};

/// The client that asks.
#[derive(Clone, Debug)]
pub enum Identity {
    /// One that the issuer knows. If `bind`, its issuer is the one found now, and has to be kept.
    Known {
        /// The client.
        client: Client,
        /// Whether the issuer has to be kept as the client's own.
        bind: bool,
    },
    /// One has to be registered first.
    Dynamic,
}

/// Chooses: a configured client of this issuer, the document if the issuer takes documents, a stored registration that
/// still fits, a new registration. Never a new one where the application has given a client for this issuer.
///
/// The server named the issuer, and servers are not trusted: only the issuer of a client receives that client's
/// credentials, and only the issuers of configured clients receive assertions.
pub fn choose(plan: &Plan, metadata: &ServerMetadata, now: SystemTime) -> Result<Identity, AuthError> {
    let of_issuer = |client: &&ClientId| {
        plan.settings.issuer_of(client).is_some_and(|issuer| plan.means(issuer, &metadata.issuer))
    };
    if let Some(client) = plan.settings.clients.iter().find(of_issuer) {
        return known(configured(client, metadata)?, false);
    }
    if let Some(error) = without_issuer(&plan.settings, plan.way.asks_a_person()) {
        return Err(error);
    }
    if let Some(client) =
        plan.settings.clients.iter().find(|client| plan.settings.issuer_of(client).is_none())
    {
        match &plan.stored.bound {
            Some(bound) if !bound.is_or_differs_by_a_slash(&metadata.issuer) => {
                let detail = format!(
                    "the client {} belongs to the issuer {bound}, and the server now names {}; if that is right, name \
                     the issuer of the client",
                    client.id, metadata.issuer
                );
                return Err(AuthError::new(AuthErrorKind::IssuerChanged, Step::Identity, detail));
            }
            bound => return known(configured(client, metadata)?, bound.is_none()),
        }
    }
    if let Some(document) = plan.settings.document.as_ref().filter(|_| metadata.client_documents) {
        let registration = Registration {
            issuer: metadata.issuer.clone(),
            client_id: document.as_str().to_owned(),
            source: Source::Document,
            secret: None,
            secret_expires: None,
            method: AuthMethod::None,
            redirects: Vec::new(),
        };
        return known(Client { registration, key: None, audience: None }, false);
    }
    if !plan.way.asks_a_person() {
        if let Some((client, issuer)) =
            plan.settings.clients.iter().find_map(|client| Some((client, plan.settings.issuer_of(client)?)))
        {
            let detail = format!(
                "the client {} belongs to the issuer {issuer}, and the server names {}, which is sent nothing of it",
                client.id, metadata.issuer
            );
            return Err(AuthError::new(AuthErrorKind::IssuerChanged, Step::Identity, detail));
        }
        return Err(impossible(metadata, "clients that act for themselves are registered by hand"));
    }
    let fits = |stored: &&Registration| {
        stored.issuer == metadata.issuer
            && stored.source == Source::Dynamic
            && stored.is_current(now)
            && redirect_fits(&plan.way, metadata, stored)
    };
    if let Some(stored) = plan.stored.registrations.iter().find(fits).filter(|_| !plan.settings.fresh) {
        return known(Client { registration: stored.clone(), key: None, audience: None }, false);
    }
    if metadata.registration.is_none() {
        return Err(impossible(metadata, "it registers none by itself"));
    }
    Ok(Identity::Dynamic)
}

/// The client that a credential was made with, with the key that is not stored.
pub fn recorded(plan: &Plan, registration: &Registration) -> Client {
    let same = |client: &&ClientId| {
        client.id == registration.client_id
            && registration.source == Source::Configured
            && match plan.settings.issuer_of(client) {
                Some(issuer) => plan.means(issuer, &registration.issuer),
                None => !client.authenticates(),
            }
    };
    match plan.settings.clients.iter().find(same) {
        Some(known) => Client {
            registration: Registration {
                secret: known.secret.clone().or_else(|| registration.secret.clone()),
                ..registration.clone()
            },
            key: known.key.clone(),
            audience: known.audience.clone(),
        },
        None => Client { registration: registration.clone(), key: None, audience: None },
    }
}

/// Returns the error of a configuration in which a client would authenticate at any issuer that a server names.
pub(crate) fn without_issuer(settings: &Settings, asks_a_person: bool) -> Option<AuthError> {
    let unsafe_client = |client: &&ClientId| {
        settings.issuer_of(client).is_none() && (client.authenticates() || !asks_a_person)
    };
    let client = settings.clients.iter().find(unsafe_client)?;
    let detail = format!(
        "the client {} has no issuer, and would authenticate at any that a server names; set the issuer that knows it",
        client.id
    );
    Some(AuthError::new(AuthErrorKind::Misconfigured, Step::Identity, detail))
}

#[expect(clippy::unnecessary_wraps, reason = "every branch of the choice reads alike")]
fn known(client: Client, bind: bool) -> Result<Identity, AuthError> {
    Ok(Identity::Known { client, bind })
}

fn redirect_fits(way: &Way, metadata: &ServerMetadata, stored: &Registration) -> bool {
    match way {
        Way::Browser(redirects) => stored.redirect(&redirects.at(metadata).used).is_some(),
        _ => true,
    }
}

fn configured(client: &ClientId, metadata: &ServerMetadata) -> Result<Client, AuthError> {
    let method = client.method.unwrap_or_else(|| method(client, metadata.auth_methods.as_deref()));
    let lacks = |what: &str| {
        let detail =
            format!("the client {} is to authenticate by {}, and has no {what}", client.id, method.name());
        Err(AuthError::new(AuthErrorKind::Misconfigured, Step::Identity, detail))
    };
    match method {
        AuthMethod::PrivateKeyJwt => match &client.key {
            None => return lacks("key"),
            Some(key) => {
                let name = key.algorithm().name();
                let offered = metadata.auth_algorithms.as_ref();
                if offered.is_some_and(|offered| !offered.iter().any(|known| known == name)) {
                    let detail =
                        format!("the issuer {} takes no assertions signed with {name}", metadata.issuer);
                    return Err(AuthError::new(AuthErrorKind::Misconfigured, Step::Identity, detail));
                }
            }
        },
        AuthMethod::ClientSecretBasic | AuthMethod::ClientSecretPost if client.secret.is_none() => {
            return lacks("secret");
        }
        _ => {}
    }
    let registration = Registration {
        issuer: metadata.issuer.clone(),
        client_id: client.id.clone(),
        source: Source::Configured,
        secret: client.secret.clone(),
        secret_expires: None,
        method,
        redirects: Vec::new(),
    };
    Ok(Client { registration, key: client.key.clone(), audience: client.audience.clone() })
}

/// The first method that is offered and possible. Where that is none, the client does what it can: many issuers do not
/// list everything.
fn method(client: &ClientId, offered: Option<&[String]>) -> AuthMethod {
    let possible = |method: AuthMethod| match method {
        AuthMethod::None => true,
        AuthMethod::ClientSecretBasic | AuthMethod::ClientSecretPost => client.secret.is_some(),
        AuthMethod::PrivateKeyJwt => client.key.is_some(),
    };
    let order = [
        AuthMethod::PrivateKeyJwt,
        AuthMethod::ClientSecretBasic,
        AuthMethod::ClientSecretPost,
        AuthMethod::None,
    ];
    let is_offered =
        |method: AuthMethod| offered.is_some_and(|offered| offered.iter().any(|name| name == method.name()));
    let best = order.into_iter().find(|method| is_offered(*method) && possible(*method));
    let nothing_offered = || order.into_iter().find(|method| possible(*method));
    best.or_else(nothing_offered).unwrap_or(AuthMethod::None)
}

fn impossible(metadata: &ServerMetadata, why: &str) -> AuthError {
    let detail = format!(
        "no client is known for the issuer {}, and {why}; register one there, and give its identifier \
         (OAuth::builder(…).client, toolwire login --client)",
        metadata.issuer
    );
    AuthError::new(AuthErrorKind::RegistrationImpossible, Step::Identity, detail)
}
