//! Options about the way to a login, for those commands that go it.

use clap::Args;

use super::Settings;
use crate::failure::{Code, Failure, Result};

/// What differs from provider to provider.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Provider")]
pub(crate) struct ChainOptions {
    /// Use this client, which was registered by hand
    #[arg(long, value_name = "ID")]
    pub(crate) client: Option<String>,

    /// Take the secret of that client from this environment variable; only --issuer receives it
    #[arg(long, value_name = "VARIABLE", requires = "client")]
    pub(crate) secret_env: Option<String>,

    /// Log in at this issuer, whatever the server says
    #[arg(long, value_name = "URL")]
    pub(crate) issuer: Option<String>,

    /// Ask for a token for this resource, whatever the server says
    #[arg(long, value_name = "URI")]
    pub(crate) resource: Option<String>,

    /// Trust this origin wherever it is, without TLS if it is written so
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) trust_origin: Vec<String>,

    /// The issuer knows PKCE, though it does not say so
    #[arg(long, requires = "issuer")]
    pub(crate) assume_pkce: bool,

    /// Do not tell the issuer which server the token is for
    #[arg(long, requires = "issuer")]
    pub(crate) omit_resource: bool,

    /// Take a server without metadata for one of 2025-03-26
    #[arg(long)]
    pub(crate) early: bool,
}

impl ChainOptions {
    /// These, and where they say nothing, those of an earlier login.
    pub(crate) fn over(&self, earlier: Settings) -> Result<Settings> {
        if let Some(variable) = &self.secret_env
            && std::env::var_os(variable).is_none_or(|value| value.is_empty())
        {
            let text = format!("--secret-env: the variable {variable} is not set");
            return Err(Failure::new(Code::Usage, text).hint(format!("set it first: export {variable}=…")));
        }
        let mut trust_origins = earlier.trust_origins;
        trust_origins.extend(self.trust_origin.iter().cloned());
        trust_origins.sort();
        trust_origins.dedup();
        // Another client has another secret.
        let secret_env = match (&self.secret_env, &self.client) {
            (None, None) => earlier.secret_env,
            (given, _) => given.clone(),
        };
        let issuer = self.issuer.clone().or(earlier.issuer);
        if secret_env.is_some() && issuer.is_none() {
            let text = "--secret-env: the server must not decide who receives the secret; name the issuer that knows the client";
            return Err(Failure::new(Code::Usage, text).hint("add --issuer URL"));
        }
        Ok(Settings {
            client: self.client.clone().or(earlier.client),
            secret_env,
            redirect: earlier.redirect,
            issuer,
            resource: self.resource.clone().or(earlier.resource),
            trust_origins,
            assume_pkce: self.assume_pkce || earlier.assume_pkce,
            omit_resource: self.omit_resource || earlier.omit_resource,
            early: self.early || earlier.early,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_again_stays_and_another_client_has_another_secret() {
        let earlier = Settings {
            client: Some("a".into()),
            secret_env: Some("A".into()),
            issuer: Some("https://i".into()),
            assume_pkce: true,
            ..Settings::default()
        };
        let same = ChainOptions::default().over(earlier.clone()).unwrap();
        assert_eq!(same, earlier);
        let other = ChainOptions { client: Some("b".into()), ..ChainOptions::default() };
        let other = other.over(earlier.clone()).unwrap();
        assert_eq!((other.client.as_deref(), other.secret_env), (Some("b"), None));
        assert!(other.assume_pkce);
        // A login of an earlier version may have a secret without an issuer.
        let without = ChainOptions::default().over(Settings { issuer: None, ..earlier.clone() });
        assert_eq!(without.unwrap_err().code(), Code::Usage);
        let named = ChainOptions { issuer: Some("https://i".into()), ..ChainOptions::default() };
        named.over(Settings { issuer: None, ..earlier }).unwrap();
    }
}
