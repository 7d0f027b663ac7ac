//! What a caller is missing.

use std::fmt;

use serde_json::json;
use toolwire_protocol::{ErrorCode, RpcError};

use super::Scopes;

/// Why a request is not admitted: nobody has said who is calling, or the caller has not the scopes that it takes.
///
/// It names everything that the operation needs, not only what is missing, so that a client can ask for all of it at
/// once. HTTP answers it with 401 or 403 and a challenge; where there is no status, with an error whose `data.scope`
/// has the scopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    anonymous: bool,
    needs: Scopes,
}

impl Lack {
    /// The caller is not known, and must be. `needs` may be empty.
    pub const fn principal(needs: Scopes) -> Self {
        Self { anonymous: true, needs }
    }

    /// The caller is known, and has not all the scopes that are needed.
    pub const fn scopes(needs: Scopes) -> Self {
        Self { anonymous: false, needs }
    }

    /// Whether it is the caller who is not known.
    pub const fn is_anonymous(&self) -> bool {
        self.anonymous
    }

    /// The scopes that the operation needs: all of them.
    pub const fn needs(&self) -> &Scopes {
        &self.needs
    }

    /// The status of HTTP: 401 if the caller is not known, else 403.
    pub const fn status(&self) -> u16 {
        if self.anonymous { 401 } else { 403 }
    }

    /// The answer where it is not told by the status of HTTP: an invalid request, whose `data.scope` has what is needed.
    pub fn rpc_error(&self) -> RpcError {
        let error = RpcError::new(ErrorCode::INVALID_REQUEST, self.to_string());
        if self.needs.is_empty() {
            error
        } else {
            error.with_data(&json!({ "scope": self.needs.to_string() }))
        }
    }

    /// The lack of two operations that are admitted together or not at all.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        // Scopes that do not fit into one challenge are asked for by the next one.
        let needs = self.needs.union(&other.needs).unwrap_or(self.needs);
        Self { anonymous: self.anonymous || other.anonymous, needs }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.anonymous {
            "this needs a caller who has been identified"
        } else {
            "the caller is not allowed to do this"
        };
        f.write_str(text)?;
        if self.needs.is_empty() { Ok(()) } else { write!(f, " (scopes: {})", self.needs) }
    }
}

impl std::error::Error for Lack {}
