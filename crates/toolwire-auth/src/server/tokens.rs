//! The tokens of those who are being served, for the one who may exchange them.
//!
//! There is one for each issuer that a [`Downstream`](super::Downstream) exchanges tokens at, and nothing is kept of
//! others. Handlers cannot reach it.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use toolwire_http::server::UNKNOWN_EXPIRY;
use toolwire_server::{Principal, PrincipalKey, Scopes};

use super::verify::PresentedToken;

/// The number of tokens that are kept of an issuer. Each takes up to 16 KiB.
pub(super) const MAX_TOKENS: usize = 4_096;

/// Tokens by whom they stand for and what they allow: one that allows less must not get what another allows.
#[derive(Default)]
pub(super) struct Tokens(Mutex<HashMap<(PrincipalKey, Scopes), (PresentedToken, SystemTime)>>);

impl Tokens {
    /// Keeps a token while it is valid.
    pub(super) fn keep(&self, who: &Principal, token: &PresentedToken, now: SystemTime) {
        let until = who.expires_at().unwrap_or(now + UNKNOWN_EXPIRY);
        let key = (who.key(), who.scopes().clone());
        let mut kept = self.lock();
        if kept.len() >= MAX_TOKENS && !kept.contains_key(&key) {
            kept.retain(|_, (_, until)| *until > now);
        }
        if kept.len() >= MAX_TOKENS && !kept.contains_key(&key) {
            let first = kept.iter().min_by_key(|(_, (_, until))| *until).map(|(key, _)| key.clone());
            first.and_then(|first| kept.remove(&first));
        }
        kept.insert(key, (token.clone(), until));
    }

    /// The token of somebody.
    pub(super) fn of(&self, who: &Principal, now: SystemTime) -> Option<PresentedToken> {
        let kept = self.lock();
        let (token, until) = kept.get(&(who.key(), who.scopes().clone()))?;
        (*until > now).then(|| token.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(PrincipalKey, Scopes), (PresentedToken, SystemTime)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::server::verify::Scheme;

    fn token(text: &str) -> PresentedToken {
        PresentedToken::new(Scheme::Bearer, text)
    }

    fn who(name: &str, scopes: &str, now: SystemTime, seconds: u64) -> Principal {
        let expiry = now + Duration::from_secs(seconds);
        Principal::builder(name).scopes(scopes.parse().unwrap()).expires_at(expiry).build()
    }

    #[test]
    fn a_token_is_found_by_its_owner_with_the_same_rights_while_it_is_valid() {
        let (tokens, now) = (Tokens::default(), SystemTime::now());
        let alice = who("alice", "a b", now, 10);
        tokens.keep(&alice, &token("one"), now);
        assert_eq!(tokens.of(&alice, now).unwrap().expose(), "one");
        assert!(tokens.of(&who("alice", "a", now, 10), now).is_none());
        assert!(tokens.of(&who("bob", "a b", now, 10), now).is_none());
        assert!(tokens.of(&alice, now + Duration::from_secs(10)).is_none());
        tokens.keep(&alice, &token("two"), now);
        assert_eq!(tokens.of(&alice, now).unwrap().expose(), "two");
    }

    #[test]
    fn only_so_many_are_kept_and_those_that_expire_first_go_first() {
        let (tokens, now) = (Tokens::default(), SystemTime::now());
        for number in 0..=MAX_TOKENS {
            tokens.keep(&who(&format!("user-{number}"), "", now, 100 + number as u64), &token("x"), now);
        }
        assert_eq!(tokens.lock().len(), MAX_TOKENS);
        assert!(tokens.of(&who("user-0", "", now, 0), now).is_none());
        assert!(tokens.of(&who("user-1", "", now, 0), now).is_some());
    }
}
