//! What a server has sent that could not be understood, and may be the answer that is missing.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// The last such thing, in one sentence. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    last: Mutex<Option<String>>,
    too_large: Notify,
}

impl Lost {
    /// Remembers a sentence.
    pub(crate) fn note(&self, why: &str) {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_owned());
    }

    /// Remembers a sentence about a message that was too large.
    pub(crate) fn note_too_large(&self, why: &str) {
        self.note(why);
        self.0.too_large.notify_one();
    }

    /// The last sentence.
    pub(crate) fn last(&self) -> Option<String> {
        self.0.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until something was lost because it was too large: whoever waits for it waits in vain.
    pub(crate) async fn too_large(&self) -> String {
        self.0.too_large.notified().await;
        self.last().unwrap_or_default()
    }
}
