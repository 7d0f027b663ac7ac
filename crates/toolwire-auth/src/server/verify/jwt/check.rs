//! What is checked of a signed token, in this order: its form, its type, its signature, its claims.

use std::time::SystemTime;

use serde_json::{Map, Value};

use super::{
    super::{Audience, Expiry, Invalid, PresentedToken, Verified, VerifyError, claims},
    Jwt,
};
use crate::jose::{Compact, Header, JwsError};

impl Jwt {
    pub(super) async fn check(
        &self,
        token: &PresentedToken,
        now: SystemTime,
    ) -> Result<Verified, VerifyError> {
        let prepared = self.prepared()?;
        let parsed = Compact::parse(token.expose()).map_err(|why| Invalid::new(why.to_string()))?;
        let header = parsed.header();
        if !self.algorithms.contains(&header.algorithm()) {
            return Err(Invalid::new(JwsError::Algorithm.to_string()).into());
        }
        let says_access = self.check_type(header)?;
        let payload = prepared.keys.verify(&parsed, now).await?;
        let claims = payload.object().map_err(|why| Invalid::new(why.to_string()))?;
        if !says_access {
            claims::is_access_token(&claims)?;
        }
        Ok(self.read(claims, &prepared.resource, now)?)
    }

    /// Whether a token says by its type that it is an access token. What says that it is something else is refused.
    fn check_type(&self, header: &Header) -> Result<bool, Invalid> {
        match header.typ() {
            _ if header.is_type("at+jwt") => Ok(true),
            _ if self.strict_type => Err(Invalid::new("its type is not at+jwt")),
            None => Ok(false),
            Some(_) if header.is_type("JWT") => Ok(false),
            Some(_) => Err(Invalid::new("its type is that of another kind of token")),
        }
    }

    /// What the claims say, if the token is valid.
    fn read(&self, claims: Map<String, Value>, resource: &str, now: SystemTime) -> Result<Verified, Invalid> {
        let issuer =
            claims::text(&claims, "iss")?.ok_or_else(|| Invalid::new("it names no issuer"))?.to_owned();
        let known = self.issuers.iter().find(|known| known.text == issuer);
        let known = known.ok_or_else(|| Invalid::new("it names another issuer"))?;
        if let Some((claim, tenant)) = &known.claim
            && claims.get(claim).and_then(Value::as_str) != Some(tenant)
        {
            return Err(Invalid::new(format!("its claim {claim} is not that of its issuer")));
        }
        let expires = claims::times(&claims, now)?.ok_or_else(|| Invalid::new("it has no expiry"))?;
        let client = claims::client(&claims)?.map(str::to_owned);
        let audience = self.check_audience(&claims, client.as_deref(), resource)?;
        let subject = self.subject_of(&claims, client.as_deref())?;
        let scopes = claims::scopes(&claims, &self.scopes)?;
        let bound = claims::bound_to(&claims)?.map(str::to_owned);
        let mut verified =
            Verified::new(subject, audience, Expiry::At(expires)).issuer(issuer).scopes(scopes);
        verified.client_id = client;
        verified.key = bound;
        Ok(verified.claims(claims))
    }

    fn check_audience(
        &self,
        claims: &Map<String, Value>,
        client: Option<&str>,
        resource: &str,
    ) -> Result<Audience, Invalid> {
        match claims::audience(claims, resource, &self.audiences)? {
            Some(audience) => Ok(audience),
            None if client.is_some_and(|client| self.clients.iter().any(|known| known == client)) => {
                tracing::info!("a token without an audience was accepted by its client, as configured");
                Ok(Audience::Vouched)
            }
            None => Err(Invalid::new("it names no audience")),
        }
    }

    fn subject_of(&self, claims: &Map<String, Value>, client: Option<&str>) -> Result<String, Invalid> {
        let named = self.subject.as_deref().unwrap_or("sub");
        match claims.get(named) {
            Some(Value::String(subject)) if !subject.is_empty() => Ok(subject.clone()),
            Some(_) => Err(Invalid::new(format!("its claim {named} is not a name"))),
            None if self.subject.is_some() => Err(Invalid::new(format!("it has no claim {named}"))),
            None => client
                .map(str::to_owned)
                .ok_or_else(|| Invalid::new("it names neither a subject nor a client")),
        }
    }
}
