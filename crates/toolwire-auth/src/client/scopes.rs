//! Which scopes are asked for.

use std::{collections::VecDeque, fmt};

use super::{
    error::{AuthError, AuthErrorKind},
    event::Step,
};
use crate::challenge::Challenge;

/// The most scopes that are read from one place.
pub const MAX_SCOPES: usize = 256;
/// The longest scope.
pub const MAX_SCOPE_BYTES: usize = 256;
/// The most step-ups for one request.
pub const MAX_STEP_UPS: u8 = 2;
/// The most authorizations for one request.
pub const MAX_AUTHORIZATIONS: u8 = 3;
/// The most step-ups that are remembered.
const MAX_REMEMBERED: usize = 256;

/// What stands for a refresh token rather than for something that a server checks.
pub const OFFLINE_ACCESS: &str = "offline_access";

/// A set of scopes, in the order of their bytes.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// No scopes.
    pub fn none() -> Self {
        Self::default()
    }

    /// These scopes, if each is one (RFC 6749, 3.3).
    pub fn new<T: AsRef<str>>(scopes: impl IntoIterator<Item = T>) -> Option<Self> {
        let mut all = Self::none();
        scopes.into_iter().try_for_each(|scope| all.insert(scope.as_ref()))?;
        Some(all)
    }

    /// Scopes separated by spaces; `None` if one of them is none, or there are too many.
    pub fn parse(text: &str) -> Option<Self> {
        Self::new(text.split(' ').filter(|scope| !scope.is_empty()))
    }

    /// Scopes separated by spaces or, where there is no space, by commas, as some issuers answer.
    pub fn parse_granted(text: &str) -> Option<Self> {
        let separator = if text.contains(' ') { ' ' } else { ',' };
        Self::new(text.split(separator).filter(|scope| !scope.is_empty()))
    }

    /// Those of a list that can be asked for; the others are left out.
    pub fn lenient<'a>(scopes: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Self::none();
        for scope in scopes {
            let _ = all.insert(scope);
        }
        all
    }

    fn insert(&mut self, scope: &str) -> Option<()> {
        match self.0.binary_search_by(|known| known.as_str().cmp(scope)) {
            Ok(_) => Some(()),
            Err(at) if is_scope(scope) && self.0.len() < MAX_SCOPES => {
                self.0.insert(at, scope.to_owned());
                Some(())
            }
            Err(_) => None,
        }
    }

    /// Both together. What would be too many is left out.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        for scope in other.iter() {
            let _ = all.insert(scope);
        }
        all
    }

    /// The scopes.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether a scope is among them.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.binary_search_by(|known| known.as_str().cmp(scope)).is_ok()
    }

    /// Whether all of another set are among them. `offline_access` never counts as missing.
    pub fn covers(&self, needed: &Self) -> bool {
        needed.iter().all(|scope| scope == OFFLINE_ACCESS || self.contains(scope))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scopes({self})")
    }
}

fn is_scope(text: &str) -> bool {
    let is_part = |byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    (1..=MAX_SCOPE_BYTES).contains(&text.len()) && text.bytes().all(is_part)
}

/// The scopes of a first login: those of the challenge, else those of the server's metadata, else none; those of the
/// application besides; and `offline_access` for a person, if the issuer lists it.
pub fn first(
    challenge: Option<&Challenge>,
    resource: Option<&Scopes>,
    application: &Scopes,
    issuer: &Scopes,
    person: bool,
) -> Scopes {
    let challenged = challenge.and_then(Challenge::scope).and_then(Scopes::parse);
    let wanted = challenged.as_ref().or(resource).cloned().unwrap_or_else(Scopes::none).union(application);
    if person { with_offline_access(&wanted, issuer) } else { wanted }
}

/// Adds `offline_access` if the issuer lists it.
pub fn with_offline_access(wanted: &Scopes, issuer: &Scopes) -> Scopes {
    let offline = Scopes::lenient(issuer.iter().filter(|scope| *scope == OFFLINE_ACCESS));
    wanted.union(&offline)
}

/// What was done when scopes were lacking: the operation, in words of the caller such as `tools/call delete`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operation(String);

impl Operation {
    /// An operation by its name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

/// The step-ups that were tried with a credential, so that none is tried twice. The oldest are forgotten first.
#[derive(Clone, Debug, Default)]
pub struct StepUps(VecDeque<(Operation, Scopes)>);

impl StepUps {
    /// What to ask for when `challenged` is lacking: the union with everything that was ever requested. It is
    /// remembered as tried.
    pub fn more(
        &mut self,
        operation: &Operation,
        challenged: &Scopes,
        requested: &Scopes,
        granted: &Scopes,
    ) -> Result<Scopes, AuthError> {
        let futile = |why: &str| {
            let detail = match challenged.is_empty() {
                true => "the server says that scopes are lacking, and not which".to_owned(),
                false => format!("the server wants the scopes \"{challenged}\", {why}"),
            };
            Err(AuthError::new(AuthErrorKind::StepUpFutile, Step::Scopes, detail))
        };
        if granted.covers(challenged) {
            return futile("which the token has already");
        }
        let attempt = (operation.clone(), challenged.clone());
        if self.0.contains(&attempt) {
            return futile("which were asked for before, and not granted");
        }
        if self.0.len() == MAX_REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(attempt);
        Ok(requested.union(challenged))
    }
}

/// What one request may cost a person.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    step_ups: u8,
    authorizations: u8,
}

impl Patience {
    /// Counts an authorization for more scopes.
    pub fn step_up(&mut self) -> Result<(), AuthError> {
        self.step_ups += 1;
        if self.step_ups > MAX_STEP_UPS { Err(Self::lost()) } else { Ok(()) }
    }

    /// Counts an authorization, for whatever reason.
    pub fn authorization(&mut self) -> Result<(), AuthError> {
        self.authorizations += 1;
        if self.authorizations > MAX_AUTHORIZATIONS { Err(Self::lost()) } else { Ok(()) }
    }

    fn lost() -> AuthError {
        let detail = "the server wants one authorization after the other for a single request";
        AuthError::new(AuthErrorKind::StepUpLimit, Step::Scopes, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(text: &str) -> Scopes {
        Scopes::parse(text).unwrap()
    }

    fn challenge(scope: &str) -> Challenge {
        Challenge::new("Bearer").with("scope", scope)
    }

    #[test]
    fn the_challenge_comes_before_the_metadata() {
        let (none, metadata) = (Scopes::none(), scopes("decoy"));
        assert_eq!(first(Some(&challenge("a b")), Some(&metadata), &none, &none, true), scopes("a b"));
        assert_eq!(first(Some(&Challenge::new("Bearer")), Some(&metadata), &none, &none, true), metadata);
        assert_eq!(first(None, Some(&metadata), &none, &none, true), metadata);
        assert_eq!(first(None, None, &none, &none, true), none);
    }

    #[test]
    fn those_of_the_application_are_added() {
        let none = Scopes::none();
        assert_eq!(first(Some(&challenge("a")), None, &scopes("b"), &none, true), scopes("a b"));
    }

    #[test]
    fn offline_access_is_asked_for_where_the_issuer_lists_it_and_a_person_logs_in() {
        let (none, issuer) = (Scopes::none(), scopes("x offline_access"));
        assert_eq!(first(None, Some(&scopes("a")), &none, &issuer, true), scopes("a offline_access"));
        assert_eq!(first(None, Some(&scopes("a")), &none, &issuer, false), scopes("a"));
        assert_eq!(first(None, Some(&scopes("a")), &none, &scopes("x"), true), scopes("a"));
    }

    #[test]
    fn a_step_up_asks_for_the_union() {
        let more = StepUps::default().more(
            &Operation::new("call"),
            &scopes("write"),
            &scopes("read offline_access"),
            &scopes("read"),
        );
        assert_eq!(more.unwrap(), scopes("read write offline_access"));
    }

    #[test]
    fn what_is_granted_or_was_tried_is_not_asked_for_again() {
        let mut tried = StepUps::default();
        let mut more = |operation: &str, challenged: &str| {
            tried.more(&Operation::new(operation), &scopes(challenged), &scopes("a"), &scopes("a"))
        };
        assert_eq!(more("one", "a offline_access").unwrap_err().kind, AuthErrorKind::StepUpFutile);
        assert!(more("one", "").unwrap_err().detail.contains("and not which"));
        assert!(more("one", "b").is_ok());
        assert_eq!(more("one", "b").unwrap_err().kind, AuthErrorKind::StepUpFutile);
        assert!(more("two", "b").is_ok());
        assert!(more("one", "c").is_ok());
    }

    #[test]
    fn two_step_ups_and_three_authorizations_are_the_most() {
        let mut patience = Patience::default();
        assert!(patience.step_up().is_ok() && patience.step_up().is_ok());
        assert_eq!(patience.step_up().unwrap_err().kind, AuthErrorKind::StepUpLimit);
        assert!((0..3).all(|_| patience.authorization().is_ok()));
        assert_eq!(patience.authorization().unwrap_err().kind, AuthErrorKind::StepUpLimit);
    }

    #[test]
    fn granted_scopes_may_be_separated_by_commas() {
        assert_eq!(Scopes::parse_granted("repo,user").unwrap(), scopes("repo user"));
        assert_eq!(Scopes::parse_granted("a,b c").unwrap(), Scopes::new(["a,b", "c"]).unwrap());
    }

    #[test]
    fn what_is_no_scope_is_refused_or_left_out() {
        for bad in ["a\"b", "a\\b", "a\tb", "é", &"a".repeat(MAX_SCOPE_BYTES + 1)] {
            assert_eq!(Scopes::parse(bad), None, "{bad}");
            assert_eq!(Scopes::lenient([bad, "good"]), scopes("good"));
        }
        let many: Vec<String> = (0..=MAX_SCOPES).map(|n| n.to_string()).collect();
        assert_eq!(Scopes::new(&many), None);
        assert_eq!(scopes("b  a b").to_string(), "a b");
    }
}
