//! What a state belongs to.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::{Params, canonical::write_object};

/// A digest of the request and its caller. A state is accepted only for the request it was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding(String);

impl Binding {
    /// The binding of a request. What changes from round to round is left out: `_meta`, `inputResponses` and
    /// `requestState`. An anonymous caller is a caller of its own.
    pub fn of(method: &str, params: &Params, principal: Option<&str>) -> Self {
        let members: Map<String, Value> = params.decode().unwrap_or_default();
        let fixed = members
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "_meta" | "inputResponses" | "requestState"));
        let mut text = String::new();
        write_object(fixed, &mut text);
        let mut digest = Sha256::new();
        for part in
            [method, principal.map_or("anonymous", |_| "principal"), principal.unwrap_or_default(), &text]
        {
            // Each part with its length, so that none can run into the next.
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        Self(BASE64_URL_SAFE_NO_PAD.encode(digest.finalize()))
    }

    /// The digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
