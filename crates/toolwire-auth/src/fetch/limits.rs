//! How much may come of one request.

use std::time::Duration;

/// Limits of one request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "meant to be written as a literal with ..FetchLimits::default()"
)]
pub struct FetchLimits {
    /// The largest body of an answer, in bytes. Default 256 KiB.
    pub response_bytes: usize,
    /// How long everything may take, from the look-up of the host to the last byte. Default ten seconds.
    pub timeout: Duration,
    /// How many redirects a `GET` follows, all within its origin. Default 3. A `POST` follows none.
    pub redirects: usize,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { response_bytes: 256 * 1024, timeout: Duration::from_secs(10), redirects: 3 }
    }
}
