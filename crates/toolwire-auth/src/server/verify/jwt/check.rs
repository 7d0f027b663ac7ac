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
            self.check_untyped(&claims)?;
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

    /// Refuses what may be another kind of token, as its type does not say.
    fn check_untyped(&self, claims: &Map<String, Value>) -> Result<(), Invalid> {
        claims::is_access_token(claims)?;
        // Where a server and its client have one id, an ID token of some issuers differs in nothing else.
        if !self.without_client && claims::client(claims)?.is_none() {
            return Err(Invalid::new(
                "neither does its type say that it is an access token, nor is a client named",
            ));
        }
        Ok(())
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
        let client = claims::client(&claims)?;
        let audience = self.check_audience(&claims, client, resource)?;
        let scopes = claims::scopes(&claims, &self.scopes)?;
        let bound = claims::bound_to(&claims)?.map(str::to_owned);
        let mut verified = Verified::of(self.subject_of(&claims)?, client, audience, Expiry::At(expires))
            .ok_or_else(|| Invalid::new("it names neither a subject nor a client"))?
            .issuer(issuer)
            .scopes(scopes);
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

    /// Returns the subject; `None` for a token of a client that stands for no user.
    fn subject_of<'c>(&self, claims: &'c Map<String, Value>) -> Result<Option<&'c str>, Invalid> {
        let named = self.subject.as_deref().unwrap_or("sub");
        match claims.get(named) {
            Some(Value::String(subject)) if !subject.is_empty() => Ok(Some(subject)),
            Some(_) => Err(Invalid::new(format!("its claim {named} is not a name"))),
            None if self.subject.is_some() => Err(Invalid::new(format!("it has no claim {named}"))),
            None => Ok(None),
        }
    }
}
