//! `WWW-Authenticate`, read and written.
//!
//! ```
//! use http::{HeaderMap, HeaderValue, header::WWW_AUTHENTICATE};
//! use toolwire_auth::challenge::{self, Challenge};
//!
//! let mut headers = HeaderMap::new();
//! headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(r#"Bearer realm="x", scope="files:read""#));
//! let [challenge] = &challenge::parse(&headers)[..] else { panic!() };
//! assert_eq!(challenge.scope(), Some("files:read"));
//! assert_eq!(challenge, &Challenge::new("Bearer").with("realm", "x").with("scope", "files:read"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod parse;
mod write;

use std::fmt;

pub use self::{
    parse::{MAX_CHALLENGES, MAX_HEADER_BYTES, MAX_PARAMETERS, Reading, parse, read},
    write::Unwritable,
};

/// One challenge: a scheme, and either parameters or one opaque text.
#[derive(Clone, PartialEq, Eq)]
pub struct Challenge {
    scheme: String,
    token68: Option<String>,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    /// A challenge without parameters.
    pub fn new(scheme: impl Into<String>) -> Self {
        Self { scheme: scheme.into(), token68: None, parameters: Vec::new() }
    }

    /// Adds a parameter, or replaces that of the same name.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.parameters.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.parameters.push((name.to_owned(), value.into()));
        self
    }

    /// The scheme as it was written; compare it by [`Challenge::is`].
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Whether it is of a scheme, whose case does not count.
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// A parameter, by its name, whose case does not count.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The opaque text of a challenge that has one instead of parameters.
    pub fn token68(&self) -> Option<&str> {
        self.token68.as_deref()
    }

    /// `error`: what was wrong with the request.
    pub fn error(&self) -> Option<&str> {
        self.get("error")
    }

    /// `scope`: what the request needs, separated by spaces.
    pub fn scope(&self) -> Option<&str> {
        self.get("scope")
    }

    /// `resource_metadata`: where the metadata of the server are (RFC 9728).
    pub fn resource_metadata(&self) -> Option<&str> {
        self.get("resource_metadata")
    }
}

/// Scheme and names alone: what a server puts into values may be meant for the client only.
impl fmt::Debug for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.parameters.iter().map(|(name, _)| name.as_str()).collect();
        write!(f, "Challenge({} {names:?})", self.scheme)
    }
}
