//! What is inside a sealed state.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Binding, Unsealable};
use crate::RawJson;

/// What a server has to remember between two rounds of a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RequestState {
    /// The request and the caller it belongs to.
    #[serde(rename = "b")]
    pub binding: String,
    /// When it ends to be valid, in seconds since 1970.
    #[serde(rename = "e")]
    pub expires: u64,
    /// How many rounds there have been.
    #[serde(rename = "r")]
    pub round: u32,
    /// What stays the same through all rounds of one logical call, for idempotency keys.
    #[serde(rename = "i")]
    pub call: String,
    /// The questions that have been asked, by key, with a digest of what they said.
    #[serde(rename = "q", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asked: BTreeMap<String, String>,
    /// The answers of earlier rounds.
    #[serde(rename = "a", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, RawJson>,
    /// The results of steps that must not be repeated.
    #[serde(rename = "s", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<String, RawJson>,
    /// The questions whose answers did not fit and that have been asked a second time.
    #[serde(rename = "t", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub asked_twice: BTreeSet<String>,
    /// What the handler itself wants to remember.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub user: Option<RawJson>,
}

impl RequestState {
    /// A short digest of a question, to notice when the same key asks something else.
    pub fn digest(question: &RawJson) -> String {
        let digest = Sha256::digest(question.text());
        BASE64_URL_SAFE_NO_PAD.encode(digest.first_chunk::<12>().copied().unwrap_or_default())
    }

    /// A key that is the same in every round of one logical call, and different for every `label` in it.
    pub fn idempotency_key(call: &str, label: &str) -> String {
        let mut digest = Sha256::new();
        digest.update((call.len() as u64).to_be_bytes());
        digest.update(call);
        digest.update(label);
        BASE64_URL_SAFE_NO_PAD.encode(digest.finalize().first_chunk::<16>().copied().unwrap_or_default())
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
