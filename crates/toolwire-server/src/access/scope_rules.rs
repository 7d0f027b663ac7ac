//! Which scopes include others.

use std::collections::{BTreeMap, BTreeSet};

use super::{ScopeError, Scopes};

/// Which scopes include others: whoever has `files:admin` may do what `files:write` allows, for instance.
///
/// ```
/// use toolwire_server::{ScopeRules, Scopes};
///
/// let mut rules = ScopeRules::new();
/// rules.imply("files:admin", ["files:write"]).unwrap();
/// rules.imply("files:write", ["files:read"]).unwrap();
/// let admin = Scopes::of(["files:admin"]).unwrap();
/// let both = Scopes::of(["files:read", "files:write"]).unwrap();
/// assert!(rules.cover(&admin, &both));
/// assert!(!rules.cover(&both, &admin));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeRules {
    /// What a scope includes, directly and by others.
    included: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
}

impl ScopeRules {
    /// No scope includes another one.
    pub const fn new() -> Self {
        Self { included: BTreeMap::new() }
    }

    /// Whoever has `scope` has `others` as well, and what those include.
    ///
    /// # Errors
    /// When one of them is not a scope.
    pub fn imply(
        &mut self,
        scope: impl AsRef<str>,
        others: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<(), ScopeError> {
        Scopes::of([scope.as_ref()])?;
        let mut added = BTreeSet::new();
        for other in Scopes::of(others)?.iter() {
            added.insert(other.into());
            added.extend(self.included.get(other).into_iter().flatten().cloned());
        }
        self.included.entry(scope.as_ref().into()).or_default().extend(added.iter().cloned());
        // Whoever includes the scope includes what it now does.
        for included in self.included.values_mut() {
            if included.contains(scope.as_ref()) {
                included.extend(added.iter().cloned());
            }
        }
        Ok(())
    }

    /// Whether somebody who has `held` has everything that is `needed`.
    pub fn cover(&self, held: &Scopes, needed: &Scopes) -> bool {
        needed.iter().all(|scope| self.has(held, scope))
    }

    fn has(&self, held: &Scopes, scope: &str) -> bool {
        held.contains(scope)
            || (!self.included.is_empty()
                && held.iter().any(|held| self.included.get(held).is_some_and(|all| all.contains(scope))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(text: &str) -> Scopes {
        text.parse().unwrap()
    }

    #[test]
    fn the_order_of_rules_does_not_matter_and_circles_end() {
        let chain = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")];
        for first in 0..chain.len() {
            let mut rules = ScopeRules::new();
            for at in 0..chain.len() {
                let (scope, other) = chain[(first + at) % chain.len()];
                rules.imply(scope, [other]).unwrap();
            }
            assert!(rules.cover(&scopes("a"), &scopes("a b c d")), "{first}");
            assert!(rules.cover(&scopes("c"), &scopes("b d")), "{first}");
            assert!(!rules.cover(&scopes("b c d"), &scopes("a")), "{first}");
        }
    }

    #[test]
    fn a_name_that_only_begins_alike_is_another_scope() {
        let mut rules = ScopeRules::new();
        rules.imply("files", ["files:read"]).unwrap();
        assert!(!rules.cover(&scopes("files:read"), &scopes("files:read:all")));
        assert!(!rules.cover(&scopes("Files"), &scopes("files:read")));
        assert!(!rules.cover(&Scopes::new(), &scopes("files:read")));
        assert!(rules.imply("two words", ["x"]).is_err());
        assert!(rules.imply("x", ["two words"]).is_err());
    }
}
