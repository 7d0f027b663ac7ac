//! Where violations go, and the path they happened at.

use std::fmt;

use crate::schema::{MAX_VIOLATIONS, Violation, keyword::push_token};

/// Longer paths are cut, because names come from the other side.
const MAX_PATH_CHARS: usize = 500;

/// Collects violations, or none when only the verdict is wanted.
#[derive(Debug)]
pub(in crate::schema) struct Report {
    wanted: bool,
    violations: Vec<Violation>,
}

impl Report {
    pub(in crate::schema) fn quiet() -> Self {
        Self { wanted: false, violations: Vec::new() }
    }

    pub(in crate::schema) fn collecting() -> Self {
        Self { wanted: true, violations: Vec::new() }
    }

    /// Whether more violations are wanted; when not, the first failure ends the work.
    pub(super) fn is_open(&self) -> bool {
        self.wanted && self.violations.len() < MAX_VIOLATIONS
    }

    pub(super) fn add(&mut self, violation: Violation) {
        if self.is_open() {
            self.violations.push(violation);
        }
    }

    pub(in crate::schema) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }
}

/// The way from the root of the value, each step on the stack of the one that took it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'p> {
    Root,
    Key(&'p Self, &'p str),
    Index(&'p Self, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = vec![self];
        while let Some(Path::Key(above, _) | Path::Index(above, _)) = steps.last() {
            steps.push(above);
        }
        let mut pointer = String::new();
        for step in steps.iter().rev() {
            match step {
                Path::Root => {}
                // A name alone may be huge, so it is cut before it is escaped.
                Path::Key(_, name) => match name.char_indices().nth(MAX_PATH_CHARS) {
                    Some((end, _)) => push_token(&mut pointer, name.get(..end).unwrap_or_default()),
                    None => push_token(&mut pointer, name),
                },
                Path::Index(_, index) => push_token(&mut pointer, &index.to_string()),
            }
            if let Some((end, _)) = pointer.char_indices().nth(MAX_PATH_CHARS) {
                pointer.truncate(end);
                pointer.push('…');
                break;
            }
        }
        f.write_str(&pointer)
    }
}
