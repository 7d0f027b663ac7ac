//! How the client of a scenario logs in: what its application knows, and a person who agrees to everything.
//!
//! Which kind of client it is, the suite says by the name of the scenario. What there is to do then is the SDK's.

use std::future::{self, Ready};

use anyhow::{Context as _, Result, bail};
use http::header::LOCATION;
use serde_json::Value;
use toolwire_auth::{
    Issuer, Secret,
    client::{OAuth, OAuthBuilder, flow::Idp, login::PasteBack, register::ClientId, token::SubjectKind},
    jose::{Algorithm, PrivateKey},
};
use toolwire_http::client::fetch::{Fetch, Fetcher};

use super::{Scenario, ScenarioContext};

/// The document that describes this client. The suite knows its address and does not fetch it.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// The revision whose servers have no metadata of their own.
const EARLY: &str = "2025-03-26";

/// How a client logs in.
pub(super) async fn oauth(scenario: &Scenario, url: &str) -> Result<OAuth> {
    let context = &scenario.context;
    let needs_issuer =
        context.client_secret.is_some() || context.private_key_pem.is_some() || context.valid_jwt.is_some();
    let issuer = match &context.issuer {
        None if needs_issuer => advertised_issuer(url).await?,
        known => known.clone().unwrap_or_default(),
    };
    let oauth = match &*scenario.name {
        "auth/client-credentials-basic" => {
            OAuth::client_credentials(&issuer, client(context)?, secret(context)?)
        }
        "auth/client-credentials-jwt" => OAuth::client_credentials(&issuer, client(context)?, key(context)?),
        "auth/wif-jwt-bearer" => workload(context, &issuer)?,
        "auth/enterprise-managed-authorization" | "auth/cross-app-access-complete-flow" => {
            enterprise(context, &issuer)?
        }
        _ => person(scenario, &issuer),
    };
    Ok(oauth.build()?)
}

/// Returns the issuer that the server names. An application knows the issuer of its secret; the suite gives the secret
/// alone, so its own server is taken at its word.
async fn advertised_issuer(url: &str) -> Result<String> {
    let (origin, path) = url.split_at(url.find("://").map_or(0, |at| at + 3));
    let (host, path) = path.split_at(path.find('/').unwrap_or(path.len()));
    for path in [path, ""] {
        let place = format!("{origin}{host}/.well-known/oauth-protected-resource{path}");
        let answer = Fetcher::new().fetch(Fetch::get(&place)).await?;
        let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if let Some(issuer) = document["authorization_servers"][0].as_str() {
            return Ok(issuer.to_owned());
        }
    }
    bail!("the server names no issuer")
}

/// Logs a person in, as the client that was registered by hand, if there is one.
fn person(scenario: &Scenario, issuer: &str) -> OAuthBuilder {
    let context = &scenario.context;
    let mut oauth = OAuth::builder("Toolwire conformance").client_document(DOCUMENT).login(agreeing());
    if let Some(id) = &context.client_id {
        let mut client = ClientId::new(id);
        if let Some(secret) = &context.client_secret {
            client = client.secret(secret.as_str().into());
        }
        if !issuer.is_empty() {
            client = client.issuer(issuer);
        }
        oauth = oauth.client(client);
    }
    if scenario.revision.as_deref() == Some(EARLY) { oauth.allow_2025_03_26() } else { oauth }
}

/// A person who agrees to everything. The browser does not follow the redirect: nobody listens there.
fn agreeing() -> PasteBack {
    PasteBack::new(async |page: String| {
        let shown = Fetcher::new().fetch(Fetch::get(&page)).await.ok()?;
        Some(shown.headers.get(LOCATION)?.to_str().ok()?.to_owned())
    })
}

fn workload(context: &ScenarioContext, issuer: &str) -> Result<OAuthBuilder> {
    let token = given(context.valid_jwt.as_ref(), "valid_jwt")?.clone();
    Ok(OAuth::workload(issuer, client(context)?, move |_| ready(&token)))
}

fn enterprise(context: &ScenarioContext, issuer: &str) -> Result<OAuthBuilder> {
    let idp = Idp {
        issuer: Issuer::parse(given(context.idp_issuer.as_ref(), "idp_issuer")?)?,
        client_id: given(context.idp_client_id.as_ref(), "idp_client_id")?.clone(),
        subject: SubjectKind::IdToken,
    };
    let token = given(context.idp_id_token.as_ref(), "idp_id_token")?.clone();
    let client = client(context)?.secret(secret(context)?);
    Ok(OAuth::enterprise(idp, move || ready(&token), issuer, client))
}

/// What the application has at hand.
fn ready(token: &str) -> Ready<Result<Secret>> {
    future::ready(Ok(token.into()))
}

fn client(context: &ScenarioContext) -> Result<ClientId> {
    Ok(ClientId::new(given(context.client_id.as_ref(), "client_id")?))
}

fn secret(context: &ScenarioContext) -> Result<Secret> {
    Ok(given(context.client_secret.as_ref(), "client_secret")?.as_str().into())
}

fn key(context: &ScenarioContext) -> Result<PrivateKey> {
    let name = given(context.signing_algorithm.as_ref(), "signing_algorithm")?;
    let algorithm = Algorithm::from_name(name).with_context(|| format!("cannot sign with {name}"))?;
    let pem = given(context.private_key_pem.as_ref(), "private_key_pem")?;
    Ok(PrivateKey::pem(pem, algorithm)?)
}

fn given<'a, T>(value: Option<&'a T>, name: &str) -> Result<&'a T> {
    value.with_context(|| format!("the suite gives no {name}"))
}
