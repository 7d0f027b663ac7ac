//! What a state belongs to.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use crate::{Params, RpcError, canonical};

/// What changes from round to round and therefore is no part of a binding.
const CHANGING: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// A digest of the request and its caller. A state is accepted only for the request it was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding(String);

impl Binding {
    /// The binding of a request. What changes from round to round is left out: `_meta`, `inputResponses` and
    /// `requestState`. The principal is the digest that tells callers apart; an anonymous caller is one of its own.
    ///
    /// Parameters that differ in their values have different bindings, down to the last digit of a number. The order
    /// of members, white space and the spelling of a value make no difference.
    ///
    /// # Errors
    /// When the parameters are not an object that every reader understands alike. There is no binding for those: one
    /// that is made up would be the same for all of them.
    pub fn of(method: &str, params: &Params, principal: Option<&[u8; 32]>) -> Result<Self, RpcError> {
        let text = canonical::object(params.text(), &CHANGING)
            .ok_or_else(|| RpcError::invalid_params("the parameters cannot be read as a JSON object"))?;
        let mut digest = Sha256::new();
        let (kind, principal) = principal.map_or(("anonymous", &[][..]), |key| ("principal", &key[..]));
        for part in [method.as_bytes(), kind.as_bytes(), principal, text.as_bytes()] {
            // Each part with its length, so that none can run into the next.
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        Ok(Self(BASE64_URL_SAFE_NO_PAD.encode(digest.finalize())))
    }

    /// The digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
