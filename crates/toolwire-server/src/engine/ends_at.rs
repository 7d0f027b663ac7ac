//! The end of what stays open for longer than a request.

use tokio::time::{Instant, sleep_until};

/// When a stream or a connection ends, because what its client has proved who it is with is not valid any longer.
///
/// A transport puts it among the [`Extensions`](crate::Extensions) of a request. What listens ends by then with its
/// result, and a connection that carries whole messages reads nothing more. Calls that are under way are not cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a point in time")]
pub struct EndsAt(pub Instant);

impl EndsAt {
    /// Whether the time has come.
    pub fn is_over(self) -> bool {
        self.0 <= Instant::now()
    }

    /// Resolves when the time has come; never if there is none.
    pub(crate) async fn reached(end: Option<Self>) {
        match end {
            Some(Self(end)) => sleep_until(end).await,
            None => std::future::pending().await,
        }
    }
}
