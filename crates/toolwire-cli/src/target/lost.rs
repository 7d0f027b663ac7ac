//! What a server has sent that could not be understood, and may be the answer that is missing.

use std::sync::{Arc, Mutex, PoisonError};

/// The last such thing, in one sentence. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost(Arc<Mutex<Option<String>>>);

impl Lost {
    /// Remembers a sentence.
    pub(crate) fn note(&self, why: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_owned());
    }

    /// The last sentence.
    pub(crate) fn last(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
