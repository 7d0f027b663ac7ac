//! The scopes of OAuth 2.0: names of what a caller may do.

use std::{fmt, str::FromStr, sync::Arc};

/// A set of scopes, as RFC 6749 writes them (section 3.3): sorted, without duplicates, and limited in size.
///
/// Cheap to clone. What does not fit is an error and never cut off: a set with a scope missing means something else.
///
/// ```
/// use toolwire_server::Scopes;
///
/// let scopes: Scopes = "files:write files:read".parse().unwrap();
/// assert!(scopes.contains("files:read"));
/// assert_eq!(scopes.to_string(), "files:read files:write");
/// assert_eq!(scopes, Scopes::of(["files:read", "files:write"]).unwrap());
/// assert!("files\"read".parse::<Scopes>().is_err());
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Scopes(Option<Arc<[Box<str>]>>);

impl Scopes {
    /// How many scopes a set has at most.
    pub const MAX_SCOPES: usize = 64;
    /// How many bytes a scope has at most.
    pub const MAX_SCOPE_BYTES: usize = 128;

    /// No scopes.
    pub const fn new() -> Self {
        Self(None)
    }

    /// A set of single scopes, for instance of those in a list.
    ///
    /// # Errors
    /// When one of them is not a scope, or there are too many.
    pub fn of(scopes: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, ScopeError> {
        let mut set = Vec::<Box<str>>::new();
        for scope in scopes {
            let scope = scope.as_ref();
            check(scope)?;
            let Err(place) = set.binary_search_by(|known| (**known).cmp(scope)) else { continue };
            if set.len() == Self::MAX_SCOPES {
                return Err(ScopeError::TooMany);
            }
            set.insert(place, scope.into());
        }
        Ok(if set.is_empty() { Self::new() } else { Self(Some(set.into())) })
    }

    /// The scopes of a text that separates them by spaces, such as the `scope` of a token.
    ///
    /// # Errors
    /// When one of them is not a scope, or there are too many.
    pub fn parse(text: &str) -> Result<Self, ScopeError> {
        Self::of(text.split(' ').filter(|scope| !scope.is_empty()))
    }

    /// The scopes of both sets.
    ///
    /// # Errors
    /// When there are too many.
    pub fn union(&self, other: &Self) -> Result<Self, ScopeError> {
        if other.is_subset_of(self) { Ok(self.clone()) } else { Self::of(self.iter().chain(other.iter())) }
    }

    /// Whether `scope` is one of them.
    pub fn contains(&self, scope: &str) -> bool {
        self.as_slice().binary_search_by(|known| (**known).cmp(scope)).is_ok()
    }

    /// Whether `other` has all of them.
    pub fn is_subset_of(&self, other: &Self) -> bool {
        self.iter().all(|scope| other.contains(scope))
    }

    /// The scopes in the order of their bytes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.as_slice().iter().map(|scope| &**scope)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn as_slice(&self) -> &[Box<str>] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// `scope-token` of RFC 6749: visible ASCII without the quotation mark and the backslash.
fn check(scope: &str) -> Result<(), ScopeError> {
    if scope.is_empty() {
        return Err(ScopeError::Empty);
    }
    if scope.len() > Scopes::MAX_SCOPE_BYTES {
        return Err(ScopeError::TooLong { bytes: scope.len() });
    }
    let allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    match scope.bytes().position(|byte| !allowed(byte)) {
        None => Ok(()),
        Some(at) => Err(ScopeError::Character { scope: scope.to_owned(), at }),
    }
}

impl FromStr for Scopes {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        Self::parse(text)
    }
}

/// As they are written in a `scope` parameter: in order, with a space between them.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, scope) in self.iter().enumerate() {
            if at > 0 {
                f.write_str(" ")?;
            }
            f.write_str(scope)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// Why something is not a set of scopes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScopeError {
    /// A scope without a character.
    Empty,
    /// A scope of more than [`MAX_SCOPE_BYTES`](Scopes::MAX_SCOPE_BYTES).
    TooLong {
        /// How many it has.
        bytes: usize,
    },
    /// A character that scopes cannot have.
    Character {
        /// The scope.
        scope: String,
        /// The byte where the character is.
        at: usize,
    },
    /// More than [`MAX_SCOPES`](Scopes::MAX_SCOPES).
    TooMany,
}

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a scope is empty"),
            Self::TooLong { bytes } => {
                write!(f, "a scope has {bytes} bytes, more than {}", Scopes::MAX_SCOPE_BYTES)
            }
            Self::Character { scope, at } => {
                write!(
                    f,
                    "the scope {scope:?} has a character at byte {at} that is not allowed: scopes are visible ASCII \
                     without quotation marks and backslashes"
                )
            }
            Self::TooMany => write!(f, "there are more than {} scopes", Scopes::MAX_SCOPES),
        }
    }
}

impl std::error::Error for ScopeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_scope_is_an_error() {
        for text in ["a\tb", "a\\", "\"a\"", "ä", "a\u{7f}", "a\0"] {
            assert!(matches!(Scopes::parse(text), Err(ScopeError::Character { .. })), "{text:?}");
        }
        assert_eq!(Scopes::of([""]), Err(ScopeError::Empty));
        assert!(Scopes::of(["a b"]).is_err());
        assert_eq!(Scopes::parse(" !  ~ "), Scopes::of(["!", "~"]));
    }

    #[test]
    fn what_does_not_fit_is_an_error_and_not_cut_off() {
        let longest = "x".repeat(128);
        assert!(Scopes::parse(&longest).unwrap().contains(&longest));
        assert_eq!(Scopes::parse(&"x".repeat(129)), Err(ScopeError::TooLong { bytes: 129 }));
        let names: Vec<_> = (0..65).map(|n| format!("scope-{n}")).collect();
        assert_eq!(Scopes::of(&names), Err(ScopeError::TooMany));
        let most = Scopes::of(&names[1..]).unwrap();
        assert_eq!(most.len(), 64);
        assert_eq!(most.union(&Scopes::of(&names[..1]).unwrap()), Err(ScopeError::TooMany));
        assert_eq!(Scopes::parse(&"same ".repeat(1000)), Scopes::of(["same"]));
    }

    #[test]
    fn no_scopes_are_the_same_however_they_are_made() {
        assert_eq!(Scopes::new(), Scopes::parse("").unwrap());
        assert_eq!(Scopes::new().to_string(), "");
        assert!(Scopes::new().is_subset_of(&Scopes::new()));
    }
}
