//! Who sends a request, as far as an authenticating layer has found out.

use std::{fmt, sync::Arc};

/// The authenticated sender of a request. A layer puts it into the extensions of the HTTP request; a legacy
/// session then belongs to the principal that opened it, and nobody else can find it.
///
/// ```
/// use toolwire_http::server::Principal;
///
/// let mut request = http::Request::post("/mcp").body(()).unwrap();
/// request.extensions_mut().insert(Principal::new("https://issuer.example|user-7"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// A principal by a name that no other one has.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

/// The name may be personal, so it stays out of logs.
impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Principal(..)")
    }
}
