//! A record, as it is written.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use super::{StoreError, StoreErrorKind};
use crate::{
    Endpoint, Issuer, Origins, Resource, Secret,
    client::{
        register::{AuthMethod, Registration, Source},
        scopes::Scopes,
        token::{Credential, DpopKey, GrantKind, KnownEndpoints, TokenType},
    },
    clock::unix_seconds,
    fetch::NamedBy,
    jose::Algorithm,
};

/// The form of records that is written and understood here.
const VERSION: u64 = 1;

/// What is stored under one key: a JSON object. Members that are not known here are kept.
#[derive(Clone, PartialEq)]
pub struct Record(Map<String, Value>);

impl Record {
    /// A record with nothing in it.
    pub fn empty() -> Self {
        Self(Map::from_iter([("version".to_owned(), VERSION.into())]))
    }

    /// Reads what [`to_json`](Self::to_json) has written.
    ///
    /// # Errors
    /// When it is not a record, or one of a version that is not known: it must not be replaced then.
    pub fn from_json(json: &[u8]) -> Result<Self, StoreError> {
        let members: Map<String, Value> =
            serde_json::from_slice(json).map_err(|_| unreadable("it is not a JSON object"))?;
        match members.get("version").and_then(Value::as_u64) {
            Some(VERSION) if members.contains_key("sealed") => {
                Err(unreadable("it is sealed with a key of the keyring"))
            }
            Some(VERSION) => Ok(Self(members)),
            Some(other) => {
                Err(unreadable(&format!("it has the version {other}, and this program knows {VERSION}")))
            }
            None => Err(unreadable("it has no version")),
        }
    }

    /// The record as text, secrets and all.
    pub fn to_json(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }

    /// Which one in a row it is; 0 if it was never stored.
    pub fn generation(&self) -> u64 {
        self.0.get("generation").and_then(Value::as_u64).unwrap_or(0)
    }

    /// The same as the next one in the row.
    #[must_use]
    pub(crate) fn after(mut self, generation: u64) -> Self {
        self.0.insert("generation".to_owned(), generation.saturating_add(1).into());
        self
    }

    /// The issuer that a configured client was bound to at this server.
    pub(crate) fn bound(&self) -> Option<Issuer> {
        Issuer::parse(self.0.get("bound")?.as_str()?).ok()
    }

    pub(crate) fn set_bound(&mut self, issuer: &Issuer) {
        self.0.insert("bound".to_owned(), issuer.as_str().into());
    }

    /// Whether there is a credential in it.
    pub(crate) fn has_credential(&self) -> bool {
        self.0.contains_key("token")
    }

    /// Puts a credential in; what else is there stays.
    pub(crate) fn set_credential(&mut self, credential: &Credential) {
        let Value::Object(members) = written(credential) else { return };
        for (name, value) in members {
            let slot = self.0.entry(name).or_insert(Value::Null);
            merge(slot, value);
        }
        if credential.dpop.is_none() {
            self.0.remove("dpop");
        }
    }

    /// Takes the refresh token out if it is this one, and says whether it was.
    pub(crate) fn reject_refresh(&mut self, rejected: &Secret) -> bool {
        let Some(Value::Object(token)) = self.0.get_mut("token") else { return false };
        let same =
            token.get("refresh").and_then(Value::as_str).is_some_and(|held| Secret::from(held) == *rejected);
        if same {
            token.remove("refresh");
        }
        same
    }

    /// The credential in it.
    pub(crate) fn credential(&self, trusted: &Origins) -> Result<Credential, StoreError> {
        let issuer =
            Issuer::parse(text(&self.0, "issuer")?).map_err(|_| unreadable("its issuer is not valid"))?;
        let (token, endpoints) = (object(&self.0, "token")?, object(&self.0, "endpoints")?);
        let resource = self.0.get("resource").and_then(Value::as_str).map(Resource::parse).transpose();
        let kind = match text(token, "type")? {
            "DPoP" => TokenType::Dpop,
            "Bearer" => TokenType::Bearer,
            _ => return Err(unreadable("its token is of an unknown type")),
        };
        let dpop = self.0.get("dpop").and_then(Value::as_object).map(dpop_key).transpose()?;
        if kind == TokenType::Dpop && dpop.is_none() {
            return Err(unreadable("the key of its token is missing"));
        }
        Ok(Credential {
            server: text(&self.0, "server")?.to_owned(),
            resource: resource.map_err(|_| unreadable("its resource is not valid"))?,
            client: registration(object(&self.0, "client")?, issuer.clone())?,
            issuer,
            grant: GrantKind::from_name(text(&self.0, "grant")?)
                .ok_or_else(|| unreadable("its grant is unknown"))?,
            requested: scopes(&self.0, "requested")?,
            granted: scopes(&self.0, "granted")?,
            access: Secret::from(text(token, "access")?),
            kind,
            expires: time(token, "expires"),
            received: time(token, "received").unwrap_or(SystemTime::UNIX_EPOCH),
            refresh: token.get("refresh").and_then(Value::as_str).map(Secret::from),
            dpop,
            endpoints: KnownEndpoints {
                token: endpoint(endpoints, "token", trusted)?
                    .ok_or_else(|| unreadable("it has no endpoint"))?,
                revocation: endpoint(endpoints, "revocation", trusted)?,
                found: time(endpoints, "found").unwrap_or(SystemTime::UNIX_EPOCH),
                named_by: match endpoints.get("namedBy").and_then(Value::as_str) {
                    Some("application") => NamedBy::Application,
                    _ => NamedBy::Peer,
                },
            },
            lineage: self.0.get("lineage").and_then(Value::as_str).map(str::to_owned),
        })
    }

    /// Returns whether the credential in it comes from the same login as another one.
    pub(crate) fn is_of_login(&self, credential: &Credential) -> bool {
        self.has_credential()
            && self.0.get("lineage").and_then(Value::as_str) == credential.lineage.as_deref()
    }

    /// Returns whether the login of a credential that was stored here has ended: there was a logout, or another login. A
    /// damaged record that names no other login says neither, and the next renewal replaces it.
    pub(crate) fn has_left_login(&self, credential: &Credential, trusted: &Origins) -> bool {
        let names_a_login = self.0.get("lineage").is_some_and(Value::is_string);
        let is_damaged = !names_a_login && self.credential(trusted).is_err();
        !self.has_credential() || !(self.is_of_login(credential) || is_damaged)
    }

    /// Returns what remains after a logout, if anything: the issuer that a configured client is bound to.
    pub(crate) fn logged_out(&self) -> Option<Self> {
        let bound = self.bound()?;
        let mut left = Self::empty();
        left.set_bound(&bound);
        Some(left.after(self.generation()))
    }

    /// What it says of a login, without anything secret; `None` if there is no credential in it.
    ///
    /// # Errors
    /// When something in it is not valid.
    pub fn summary(&self) -> Result<Option<Summary>, StoreError> {
        if !self.has_credential() {
            return Ok(None);
        }
        let (token, client) = (object(&self.0, "token")?, object(&self.0, "client")?);
        let owned = |members: &Map<String, Value>, name| text(members, name).map(str::to_owned);
        Ok(Some(Summary {
            server: owned(&self.0, "server")?,
            resource: self.0.get("resource").and_then(Value::as_str).map(str::to_owned),
            issuer: owned(&self.0, "issuer")?,
            client: owned(client, "id")?,
            requested: scopes(&self.0, "requested")?,
            granted: scopes(&self.0, "granted")?,
            expires: time(token, "expires"),
            renewable: token.get("refresh").is_some_and(Value::is_string),
            bound_to_key: self.0.get("dpop").is_some_and(|key| !key.is_null()),
        }))
    }

    /// Puts a registration in.
    pub(crate) fn set_registration(&mut self, registration: &Registration) {
        self.0.insert("issuer".to_owned(), registration.issuer.as_str().into());
        self.0.insert("client".to_owned(), client(registration));
    }

    /// The registration in it, if it is one.
    pub(crate) fn registration(&self) -> Result<Registration, StoreError> {
        let issuer =
            Issuer::parse(text(&self.0, "issuer")?).map_err(|_| unreadable("its issuer is not valid"))?;
        registration(object(&self.0, "client")?, issuer)
    }
}

/// What is known of a login, without anything secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The address of the server.
    pub server: String,
    /// What the token is for; `None` where the issuer does not want to be told.
    pub resource: Option<String>,
    /// Who gave it.
    pub issuer: String,
    /// The identifier of the client it was given to.
    pub client: String,
    /// All scopes that were ever asked for.
    pub requested: Scopes,
    /// The scopes that the token has.
    pub granted: Scopes,
    /// When it ends; `None` if the issuer does not say.
    pub expires: Option<SystemTime>,
    /// Whether it can be renewed without asking anybody.
    pub renewable: bool,
    /// Whether it is good only together with a key.
    pub bound_to_key: bool,
}

/// Replaces members, and keeps those that only the old value has.
fn merge(slot: &mut Value, new: Value) {
    match (slot, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in new {
                if value.is_null() {
                    old.remove(&name);
                } else {
                    old.insert(name, value);
                }
            }
        }
        (slot, new) => *slot = new,
    }
}

fn written(credential: &Credential) -> Value {
    let seconds = |time: SystemTime| unix_seconds(time);
    let endpoints = &credential.endpoints;
    let mut all = json!({
        "lineage": credential.lineage,
        "server": credential.server,
        "resource": credential.resource.as_ref().map(Resource::as_str),
        "issuer": credential.issuer.as_str(),
        "client": client(&credential.client),
        "grant": credential.grant.name(),
        "requested": credential.requested.iter().collect::<Vec<_>>(),
        "granted": credential.granted.iter().collect::<Vec<_>>(),
        "token": {
            "access": credential.access.expose(),
            "type": credential.kind.scheme(),
            "expires": credential.expires.map(seconds),
            "received": seconds(credential.received),
            "refresh": credential.refresh.as_ref().map(Secret::expose),
        },
        "endpoints": {
            "token": endpoints.token.as_str(),
            "revocation": endpoints.revocation.as_ref().map(Endpoint::as_str),
            "found": seconds(endpoints.found),
            "namedBy": if endpoints.named_by == NamedBy::Application { "application" } else { "peer" },
        },
    });
    if let Some(key) = &credential.dpop {
        all["dpop"] = json!({
            "key": BASE64_STANDARD.encode(key.to_pkcs8()),
            "algorithm": key.algorithm().name(),
            "thumbprint": key.thumbprint(),
        });
    }
    all
}

fn client(registration: &Registration) -> Value {
    // What the application brings along is not ours to keep.
    let secret = registration.secret.as_ref().filter(|_| registration.source == Source::Dynamic);
    json!({
        "id": registration.client_id,
        "source": match registration.source {
            Source::Configured => "configured",
            Source::Document => "document",
            Source::Dynamic => "dynamic",
        },
        "secret": secret.map(Secret::expose),
        "secretExpires": registration.secret_expires.map(unix_seconds),
        "method": registration.method.name(),
        "redirects": registration.redirects,
    })
}

fn registration(client: &Map<String, Value>, issuer: Issuer) -> Result<Registration, StoreError> {
    let source = match text(client, "source")? {
        "configured" => Source::Configured,
        "document" => Source::Document,
        "dynamic" => Source::Dynamic,
        _ => return Err(unreadable("its client is of an unknown kind")),
    };
    let redirects = client.get("redirects").and_then(Value::as_array);
    Ok(Registration {
        issuer,
        client_id: text(client, "id")?.to_owned(),
        source,
        secret: client.get("secret").and_then(Value::as_str).map(Secret::from),
        secret_expires: time(client, "secretExpires"),
        method: AuthMethod::from_name(text(client, "method")?)
            .ok_or_else(|| unreadable("its client authenticates in an unknown way"))?,
        redirects: redirects.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
    })
}

fn dpop_key(members: &Map<String, Value>) -> Result<DpopKey, StoreError> {
    let invalid = || unreadable("the key of its token is not valid");
    let der = BASE64_STANDARD.decode(text(members, "key")?).map_err(|_| invalid())?;
    let algorithm = Algorithm::from_name(text(members, "algorithm")?).ok_or_else(invalid)?;
    DpopKey::pkcs8(&zeroize::Zeroizing::new(der), algorithm).map_err(|_| invalid())
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Result<&'a str, StoreError> {
    members.get(name).and_then(Value::as_str).ok_or_else(|| unreadable(&format!("it has no {name:?}")))
}

fn object<'a>(members: &'a Map<String, Value>, name: &str) -> Result<&'a Map<String, Value>, StoreError> {
    members.get(name).and_then(Value::as_object).ok_or_else(|| unreadable(&format!("it has no {name:?}")))
}

fn scopes(members: &Map<String, Value>, name: &str) -> Result<Scopes, StoreError> {
    let list = members.get(name).and_then(Value::as_array);
    Scopes::new(list.into_iter().flatten().filter_map(Value::as_str))
        .ok_or_else(|| unreadable("its scopes are not valid"))
}

fn time(members: &Map<String, Value>, name: &str) -> Option<SystemTime> {
    let seconds = members.get(name)?.as_u64()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

fn endpoint(
    members: &Map<String, Value>,
    name: &str,
    trusted: &Origins,
) -> Result<Option<Endpoint>, StoreError> {
    let Some(text) = members.get(name).and_then(Value::as_str) else { return Ok(None) };
    Endpoint::parse_trusting(text, trusted)
        .map(Some)
        .map_err(|_| unreadable("one of its endpoints is not valid"))
}

fn unreadable(why: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Unreadable, format!("the record cannot be used: {why}"))
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("generation", &self.generation()).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests;
