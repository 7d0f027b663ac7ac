//! Which answers we wait for: ids of our own requests, matched to whoever sent them.

use crate::{OwnIds, RequestId};

/// The requests we have sent and not yet got an answer to.
///
/// Ids are counted up from one and never used again, so a late answer to a forgotten request matches
/// nothing. The number of open requests has a limit.
///
/// ```
/// use toolwire_protocol::Correlator;
///
/// let mut waiting = Correlator::new(2);
/// let id = waiting.insert("first").unwrap();
/// assert_eq!(waiting.take(&id), Some("first"));
/// assert_eq!(waiting.take(&id), None);
/// ```
#[derive(Debug)]
pub struct Correlator<T> {
    next: i64,
    open: OwnIds<T>,
    limit: usize,
}

impl<T> Correlator<T> {
    /// Allows `limit` open requests.
    pub fn new(limit: usize) -> Self {
        Self { next: 1, open: OwnIds::default(), limit }
    }

    /// Registers a request and gives its id.
    ///
    /// # Errors
    /// Gives `waiter` back when the limit is reached.
    pub fn insert(&mut self, waiter: T) -> Result<RequestId, T> {
        if self.open.len() >= self.limit {
            return Err(waiter);
        }
        let id = RequestId::Num(self.next);
        self.next += 1;
        self.open.insert(id.clone(), waiter);
        Ok(id)
    }

    /// Takes out whoever waits for `id`.
    pub fn take(&mut self, id: &RequestId) -> Option<T> {
        self.open.remove(id)
    }

    /// Whoever waits for `id`.
    pub fn peek(&self, id: &RequestId) -> Option<&T> {
        self.open.get(id)
    }

    /// Takes out everyone, for when the peer is gone.
    pub fn drain(&mut self) -> impl Iterator<Item = (RequestId, T)> + use<'_, T> {
        self.open.drain()
    }

    /// How many requests are open.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether no request is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_in_kind_and_are_never_reused() {
        let mut waiting = Correlator::new(2);
        let first = waiting.insert('a').unwrap();
        assert_eq!(first, RequestId::Num(1));
        assert_eq!(waiting.take(&"1".into()), None, "the string \"1\" is another id");
        assert_eq!(waiting.take(&first), Some('a'));
        assert_ne!(waiting.insert('b').unwrap(), first);
    }

    #[test]
    fn the_limit_gives_the_waiter_back() {
        let mut waiting = Correlator::new(1);
        let id = waiting.insert('a').unwrap();
        assert_eq!(waiting.insert('b'), Err('b'));
        waiting.take(&id);
        assert!(waiting.insert('b').is_ok());
        assert_eq!(waiting.drain().count(), 1);
        assert!(waiting.is_empty());
    }
}
