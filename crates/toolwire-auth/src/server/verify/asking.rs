//! How verifiers ask an issuer: with what, and where else than they may by themselves.

use std::sync::Arc;

use super::SettingError;
use crate::{
    Origins,
    fetch::{Fetch, Guarded},
};

/// What a verifier was told about asking.
#[derive(Debug, Default)]
pub(super) struct Asking {
    trusted: Vec<String>,
    fetch: Option<Arc<dyn Fetch>>,
}

impl Asking {
    /// Asks with this.
    pub(super) fn with(&mut self, fetch: impl Fetch + 'static) {
        self.fetch = Some(Arc::new(fetch));
    }

    /// Asks at this origin wherever it is, and without TLS if its URL says so.
    pub(super) fn trust(&mut self, origin: impl Into<String>) {
        self.trusted.push(origin.into());
    }

    /// The origins that are trusted, and what asks.
    pub(super) fn ready(&self) -> Result<(Origins, Arc<dyn Fetch>), SettingError> {
        let trusted = Origins::parse(self.trusted.iter().map(String::as_str))
            .map_err(|why| SettingError::new(format!("an origin that is trusted {why}")))?;
        let fetch = self.fetch.clone().unwrap_or_else(|| Arc::new(Guarded::new().trust(trusted.clone())));
        Ok((trusted, fetch))
    }
}
