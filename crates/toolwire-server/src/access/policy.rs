//! What routes ask of their callers, and the rules of the server that go with it.

use std::{
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use super::{Lack, Principal, ScopeError, ScopeRules, Scopes};

/// Says whether a caller sees a route.
type Visible = Arc<dyn Fn(&Principal) -> bool + Send + Sync>;

/// What a route asks of its callers.
#[derive(Clone, Default)]
pub(crate) struct Access {
    /// Without these it cannot be used.
    scopes: Scopes,
    /// Unless all of them agree, it does not exist.
    visible: Vec<Visible>,
    /// Whether the caller must be known.
    principal: bool,
}

impl Access {
    /// The access of a route whose handler takes the caller, or does not.
    pub(crate) fn new(principal: bool) -> Self {
        Self { principal, ..Self::default() }
    }

    /// Asks for more scopes.
    pub(crate) fn require(
        &mut self,
        scopes: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<(), ScopeError> {
        self.scopes = self.scopes.union(&Scopes::of(scopes)?)?;
        Ok(())
    }

    /// Hides the route from more callers.
    pub(crate) fn show_to(&mut self, visible: Visible) {
        self.visible.push(visible);
    }

    /// Whether whoever sees it may use it.
    pub(crate) const fn is_open(&self) -> bool {
        self.scopes.is_empty() && !self.principal
    }

    /// Whether it is hidden from some.
    pub(crate) const fn is_trimmed(&self) -> bool {
        !self.visible.is_empty()
    }

    pub(crate) const fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// The decision.
    pub(crate) fn check(&self, rules: &ScopeRules, principal: Option<&Principal>) -> Result<(), Lack> {
        match principal {
            _ if self.is_open() => Ok(()),
            None => Err(Lack::principal(self.scopes.clone())),
            Some(who) if rules.cover(who.scopes(), &self.scopes) => Ok(()),
            Some(_) => Err(Lack::scopes(self.scopes.clone())),
        }
    }

    /// A rule that panics has not said yes.
    fn is_visible_to(&self, who: &Principal) -> bool {
        self.visible.iter().all(|visible| {
            catch_unwind(AssertUnwindSafe(|| visible(who))).unwrap_or_else(|_| {
                tracing::error!("a rule of visible_to panicked; the route is hidden");
                false
            })
        })
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("scopes", &self.scopes)
            .field("visible", &self.visible.len())
            .field("principal", &self.principal)
            .finish()
    }
}

/// The rules of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    pub(crate) rules: ScopeRules,
    /// Whether what asks for scopes is hidden from those who do not have them.
    pub(crate) hide_without_scopes: bool,
    /// What methods ask for that are not part of the protocol.
    pub(crate) methods: BTreeMap<Box<str>, Access>,
}

/// Through whose eyes the catalog is looked at. Every look-up takes one, so that none can forget it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Viewer<'a> {
    principal: Option<&'a Principal>,
    policy: &'a Policy,
}

impl<'a> Viewer<'a> {
    pub(crate) const fn new(principal: Option<&'a Principal>, policy: &'a Policy) -> Self {
        Self { principal, policy }
    }

    pub(crate) const fn principal(&self) -> Option<&'a Principal> {
        self.principal
    }

    pub(crate) const fn policy(&self) -> &'a Policy {
        self.policy
    }

    /// Whether the viewer may use a route with this access: it exists for the viewer, who lacks nothing that it asks for.
    pub(crate) fn may_use(&self, access: &Access) -> bool {
        self.sees(access) && access.check(&self.policy.rules, self.principal).is_ok()
    }

    /// Whether a route with this access exists for the viewer.
    pub(crate) fn sees(&self, access: &Access) -> bool {
        if access.is_trimmed() && !self.principal.is_some_and(|who| access.is_visible_to(who)) {
            return false;
        }
        let wanting = self.policy.hide_without_scopes && !access.scopes.is_empty();
        !wanting || access.check(&self.policy.rules, self.principal).is_ok()
    }
}
