//! Who may see and do what: the caller, the scopes it has, and the one decision that is made with them.

mod lack;
mod principal;
mod scope_rules;
mod scopes;

pub use lack::Lack;
pub use principal::{ClaimsError, Principal, PrincipalBuilder, PrincipalKey, RecordError};
pub use scope_rules::ScopeRules;
pub use scopes::{ScopeError, Scopes};
