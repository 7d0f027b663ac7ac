//! Text that nobody may see by accident.

use std::{error, fmt};

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A token, password or assertion.
///
/// It has no `Display` and no `Serialize`, its `Debug` shows nothing of it, comparing takes the same time wherever two
/// secrets of one length differ, and its memory is overwritten when it is dropped.
///
/// ```
/// use toolwire_auth::Secret;
///
/// let secret = Secret::from("hunter2");
/// assert_eq!(format!("{secret:?}"), "Secret(..)");
/// assert_eq!(secret.expose(), "hunter2");
/// ```
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Keeps a text as a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The secret in an environment variable, without the line end that a shell leaves.
    pub fn env(name: &str) -> Result<Self, SecretError> {
        let text = std::env::var(name).map_err(|cause| match cause {
            std::env::VarError::NotPresent => SecretError::missing(name),
            std::env::VarError::NotUnicode(_) => SecretError::unreadable(name),
        })?;
        let text = Zeroizing::new(text);
        match text.trim_end_matches(['\r', '\n']) {
            "" => Err(SecretError::empty(name)),
            trimmed => Ok(Self::new(trimmed)),
        }
    }

    /// The text itself, for the one place that sends or checks it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// An environment variable that holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretError {
    name: String,
    what: &'static str,
}

impl SecretError {
    fn missing(name: &str) -> Self {
        Self { name: name.to_owned(), what: "is not set" }
    }

    fn empty(name: &str) -> Self {
        Self { name: name.to_owned(), what: "is empty" }
    }

    fn unreadable(name: &str) -> Self {
        Self { name: name.to_owned(), what: "is not valid UTF-8" }
    }
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the environment variable {} {}", self.name, self.what)
    }
}

impl error::Error for SecretError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing() {
        let secret = Secret::from("marked");
        assert_eq!(format!("{secret:?} {:#?}", Some(&secret)).matches("marked").count(), 0);
    }

    #[test]
    fn equality_is_that_of_the_text() {
        assert_eq!(Secret::from("a"), Secret::from("a"));
        assert_ne!(Secret::from("a"), Secret::from("b"));
        assert_ne!(Secret::from("a"), Secret::from("ab"));
    }

    #[test]
    fn a_missing_variable_is_named() {
        let error = Secret::env("TOOLWIRE_NOT_SET_ANYWHERE").unwrap_err();
        assert_eq!(error.to_string(), "the environment variable TOOLWIRE_NOT_SET_ANYWHERE is not set");
    }
}
