//! What is said about a schema that does not compile and a value that does not fit.

use std::{error, fmt};

use super::{MAX_EVALUATION_DEPTH, MAX_INSTANCE_DEPTH, MAX_STEPS};

/// A schema that is not one: a keyword with a value it cannot have, a dangling local reference, or a limit
/// exceeded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaError {
    /// Where in the schema, as a JSON pointer; the root is the empty string.
    pub path: String,
    /// What is wrong there.
    pub reason: String,
}

impl SchemaError {
    pub(super) fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into() }
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.path.is_empty() { "the root" } else { &self.path };
        write!(f, "invalid schema at {place}: {}", self.reason)
    }
}

impl error::Error for SchemaError {}

/// What a violation is about, to tell which alternative of an `anyOf` a value was meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Type,
    Value,
    Other,
}

/// One place where a value does not fit its schema.
///
/// Its `Display` is one line such as `/days: expected an integer, found the string "three"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where in the value, as a JSON pointer; the root is the empty string.
    pub path: String,
    /// What the schema asks for there.
    pub expected: String,
    /// What is there instead.
    pub found: String,
    message: String,
    pub(super) kind: Kind,
}

impl Violation {
    pub(super) fn mismatch(kind: Kind, path: String, expected: String, found: String) -> Self {
        let message = format!("expected {expected}, found {found}");
        Self { path, expected, found, message, kind }
    }

    pub(super) fn missing(path: String, property: &str, because_of: Option<&str>) -> Self {
        let because = because_of.map(|other| format!(", needed together with {other}")).unwrap_or_default();
        Self {
            path,
            expected: format!("the property {property}{because}"),
            found: "nothing".to_owned(),
            message: format!("missing required property {property}{because}"),
            kind: Kind::Other,
        }
    }

    pub(super) fn unexpected(path: String, property: &str, allowed: &str, meant: Option<&str>) -> Self {
        let (expected, list) = if allowed.is_empty() {
            ("no property of this name".to_owned(), String::new())
        } else {
            (format!("only the properties {allowed}"), format!("; allowed: {allowed}"))
        };
        let hint = meant.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        Self {
            path,
            expected,
            found: format!("the property {property}"),
            message: format!("unexpected property {property}{list}{hint}"),
            kind: Kind::Other,
        }
    }

    pub(super) fn too_costly() -> Self {
        let found = format!("one that needs more than {MAX_STEPS} steps or {MAX_EVALUATION_DEPTH} levels");
        Self {
            path: String::new(),
            expected: "a schema of bounded cost".to_owned(),
            message: format!("schema too costly: {found}"),
            found,
            kind: Kind::Other,
        }
    }

    pub(super) fn too_deep() -> Self {
        let expected = format!("a value nested at most {MAX_INSTANCE_DEPTH} levels deep");
        Self::mismatch(Kind::Other, String::new(), expected, "a deeper one".to_owned())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Everything that was found wrong with one value, never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    pub(super) fn new(violations: Vec<Violation>) -> Self {
        Self(violations)
    }

    pub(super) fn one(violation: Violation) -> Self {
        Self(vec![violation])
    }

    /// The violations, those of one place together.
    pub fn iter(&self) -> std::slice::Iter<'_, Violation> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Violations {
    type Item = &'a Violation;
    type IntoIter = std::slice::Iter<'a, Violation>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            violation.fmt(f)?;
        }
        Ok(())
    }
}

impl error::Error for Violations {}
