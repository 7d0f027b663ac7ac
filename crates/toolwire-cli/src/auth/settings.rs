//! How a login was made, for those who renew it: nothing of it is secret.

use std::{fs, io, path::PathBuf};

use serde::{Deserialize, Serialize};
use toolwire::auth::{
    Secret,
    client::{
        OAuth, OAuthBuilder,
        register::ClientId,
        store::{FileStore, StoreErrorKind},
    },
};

use super::{CLIENT_NAME, Site, unstored};
use crate::{
    failure::{Code, Explain, Failure, Result},
    private_file,
    terminal::{self, printable_line},
};

/// What the command line of a login said that its renewals need, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Settings {
    /// The client that was registered by hand.
    pub(crate) client: Option<String>,
    /// The variable with its secret.
    pub(crate) secret_env: Option<String>,
    /// Where the browser goes with the answer.
    pub(crate) redirect: Option<String>,
    pub(crate) issuer: Option<String>,
    pub(crate) resource: Option<String>,
    pub(crate) trust_origins: Vec<String>,
    pub(crate) assume_pkce: bool,
    pub(crate) omit_resource: bool,
    pub(crate) early: bool,
}

impl Settings {
    fn path(store: &FileStore, site: &Site) -> PathBuf {
        store.folder().join("settings").join(format!("{}.json", site.digest()))
    }

    /// Those of a server; none are like those of a login without options.
    pub(crate) fn load(store: &FileStore, site: &Site) -> Result<Self> {
        let path = Self::path(store, site);
        match private_file::read_own(&path) {
            // They say which issuer and origins are trusted: whoever wrote them could send the login elsewhere.
            Ok(Err(why)) => {
                let why = format!("{} {why}", path.display());
                Err(unstored(StoreErrorKind::Exposed, &why, &path))
            }
            Ok(Ok(bytes)) => serde_json::from_slice(&bytes).map_err(|error| {
                Failure::new(Code::ConfigBroken, format!("{}: {error}", path.display()))
                    .hint(format!("remove it, and log in again: toolwire login {}", site.typed))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).context(path.display()),
        }
    }

    /// Keeps them.
    pub(crate) fn save(&self, store: &FileStore, site: &Site) -> Result<()> {
        if *self == Self::default() {
            return Self::forget(store, site);
        }
        let path = Self::path(store, site);
        let folder = path.parent().unwrap_or(&path);
        private_file::create_folder(folder).context(folder.display())?;
        let text = serde_json::to_vec(self).map_err(io::Error::from)?;
        private_file::replace(&path, &text).context(path.display())
    }

    /// Removes them.
    pub(crate) fn forget(store: &FileStore, site: &Site) -> Result<()> {
        let path = Self::path(store, site);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context(path.display()),
            _ => Ok(()),
        }
    }

    /// A client that keeps to them. The secret is taken from its variable, if that is set and an issuer receives it.
    pub(crate) fn oauth(&self) -> OAuthBuilder {
        let mut builder = OAuth::builder(CLIENT_NAME);
        if let Some(id) = &self.client {
            let mut client = ClientId::new(id);
            if let Some(issuer) = &self.issuer {
                client = client.issuer(issuer);
                if let Some(secret) = self.secret_env.as_deref().and_then(|name| Secret::env(name).ok()) {
                    crate::redact::remember_variable("secret", secret.expose());
                    client = client.secret(secret);
                }
            } else if let Some(variable) = &self.secret_env {
                terminal::warn(format!(
                    "the secret in {} is not used, because this login names no issuer to receive it; log in again with \
                     --issuer URL",
                    printable_line(variable)
                ));
            }
            builder = builder.client(client);
        }
        if let Some(issuer) = &self.issuer {
            builder = builder.issuer(issuer);
        }
        if let Some(resource) = &self.resource {
            builder = builder.resource(resource);
        }
        if self.early {
            builder = builder.allow_2025_03_26();
        }
        // Many servers write the issuer with another final slash than its metadata; the way shows it as a warning.
        let mut dangerous = builder.dangerous().ignore_issuer_slash();
        for origin in &self.trust_origins {
            dangerous = dangerous.trust_origin(origin);
        }
        if let Some(issuer) = self.issuer.as_deref().filter(|_| self.assume_pkce) {
            dangerous = dangerous.assume_pkce(issuer);
        }
        if let Some(issuer) = self.issuer.as_deref().filter(|_| self.omit_resource) {
            dangerous = dangerous.omit_resource(issuer);
        }
        dangerous.safe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_with_a_secret_and_without_an_issuer_has_a_client_that_can_log_out() {
        // A variable that is set wherever tests run.
        let settings = Settings {
            client: Some("mine".to_owned()),
            secret_env: Some("PATH".to_owned()),
            ..Settings::default()
        };
        settings.oauth().build().unwrap();
    }
}
