//! What a request remembers between two runs of its handler.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::RawJson;

/// What was asked, answered and done in one logical call so far, wherever it is kept between two runs of the handler:
/// sealed in a [`RequestState`](super::RequestState), or with whoever runs it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Memory {
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

impl Memory {
    /// What the run after this one starts with: the answers and the steps, but no question of its own.
    #[must_use]
    pub fn for_next_run(&self) -> Self {
        Self {
            round: self.round + 1,
            call: self.call.clone(),
            asked: BTreeMap::new(),
            answers: self.answers.clone(),
            steps: self.steps.clone(),
            asked_twice: self.asked_twice.clone(),
            user: None,
        }
    }

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
}
