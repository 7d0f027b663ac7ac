//! What may be used only once.

use std::{fmt, time::Duration};

use crate::{Op, Quota};

/// Remembers what has been used, over all nodes.
pub trait NonceStore: fmt::Debug + Send + Sync {
    /// Takes a nonce, and remembers that for `keep`. `true` for the first to take it, `false` for all others. `by` is
    /// for whom it is counted, so that one caller leaves room for the others.
    ///
    /// A call that is repeated because its outcome was not known may say `false` although nobody else has taken it: it is better
    /// that somebody has to start again than that something happens twice.
    ///
    /// # Errors
    /// `Full` when no more can be remembered, for all or for this caller. Then it has to be treated as used.
    fn consume<'a>(&'a self, by: &'a Quota, nonce: [u8; 24], keep: Duration) -> Op<'a, bool>;
}
