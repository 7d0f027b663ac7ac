//! What is inside a sealed state.

use serde::{Deserialize, Serialize};

use super::{Binding, Memory, Unsealable};

/// A [`Memory`] that a client keeps for the server: whose it is, and until when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RequestState {
    /// The request and the caller it belongs to.
    #[serde(rename = "b")]
    pub binding: String,
    /// When it ends to be valid, in seconds since 1970.
    #[serde(rename = "e")]
    pub expires: u64,
    /// What is remembered.
    #[serde(rename = "m")]
    pub memory: Memory,
}

impl RequestState {
    /// A memory for one request and caller, until `expires`, in seconds since 1970.
    pub fn new(binding: &Binding, expires: u64, memory: Memory) -> Self {
        Self { binding: binding.as_str().to_owned(), expires, memory }
    }

    /// The text to be sealed.
    ///
    /// # Errors
    /// Never in practice: everything inside serialises.
    pub fn to_plain(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    /// Reads what was sealed, and checks that it belongs to this request and has not expired.
    ///
    /// # Errors
    /// [`Unsealable`] says why it is not accepted.
    pub fn from_plain(plain: &[u8], binding: &Binding, now: u64) -> Result<Self, Unsealable> {
        let state: Self = serde_json::from_slice(plain).map_err(|_| Unsealable::Malformed)?;
        if state.binding != binding.as_str() {
            return Err(Unsealable::Foreign);
        }
        if now >= state.expires {
            return Err(Unsealable::Expired);
        }
        Ok(state)
    }
}
