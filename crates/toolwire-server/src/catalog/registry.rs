//! Routes of one kind.

use std::{
    borrow::Borrow,
    collections::{HashMap, hash_map},
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use toolwire_protocol::{RpcError, codec::WireResult};

use super::{PageRequest, pages::Pages};
use crate::{reply::Prepared, route::Entry};

/// With fewer places than this, holes are not worth a thought.
const FEW_PLACES: usize = 32;

/// Routes of one kind, in the order of registration, found by key. To add or to remove one costs by the one, not by
/// how many there are.
#[derive(Debug)]
pub(crate) struct Registry<R> {
    /// What was removed leaves a hole, until there are more holes than routes.
    places: Vec<Option<Arc<R>>>,
    positions: Positions,
    /// Where the routes are, in order. Made when a list is asked for while there are holes.
    dense: OnceLock<Vec<usize>>,
    /// How many handlers send log messages.
    logs: usize,
    /// How many routes offer completions.
    completes: usize,
    /// Belongs to this snapshot alone.
    pages: Pages,
}

impl<R> Default for Registry<R> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            positions: Positions::new(),
            dense: OnceLock::new(),
            logs: 0,
            completes: 0,
            pages: Pages::default(),
        }
    }
}

/// A clone is about to be changed, so it starts without pages.
impl<R> Clone for Registry<R> {
    fn clone(&self) -> Self {
        Self {
            places: self.places.clone(),
            positions: self.positions.clone(),
            dense: OnceLock::new(),
            pages: Pages::default(),
            ..*self
        }
    }
}

/// Where routes are, whatever their kind.
type Positions = HashMap<ByKey, usize>;

/// A route that is found by its key.
#[derive(Clone, Debug)]
struct ByKey(Arc<dyn Entry>);

impl Borrow<str> for ByKey {
    fn borrow(&self) -> &str {
        self.0.key()
    }
}

impl Hash for ByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key().hash(state);
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for ByKey {}

impl<R: Entry + 'static> Registry<R> {
    /// Adds a route. Gives it back if its key is taken.
    pub(crate) fn add(&mut self, route: Arc<R>) -> Result<(), Arc<R>> {
        let key = ByKey(Arc::clone(&route) as Arc<dyn Entry>);
        let hash_map::Entry::Vacant(place) = self.positions.entry(key) else { return Err(route) };
        place.insert(self.places.len());
        self.logs += usize::from(route.needs().logs);
        self.completes += usize::from(route.completes());
        self.places.push(Some(route));
        self.changed();
        Ok(())
    }

    /// Makes room for that many more routes.
    pub(crate) fn reserve(&mut self, routes: usize) {
        self.positions.reserve(routes);
        self.places.reserve(routes);
    }

    /// Removes a route.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Arc<R>> {
        let position = self.positions.remove(key)?;
        let route = self.places.get_mut(position)?.take()?;
        self.logs -= usize::from(route.needs().logs);
        self.completes -= usize::from(route.completes());
        if self.places.len() > FEW_PLACES.max(2 * self.positions.len()) {
            self.fill_holes();
        }
        self.changed();
        Some(route)
    }

    fn fill_holes(&mut self) {
        self.places.retain(Option::is_some);
        for (now, route) in self.places.iter().flatten().enumerate() {
            if let Some(position) = self.positions.get_mut(route.key()) {
                *position = now;
            }
        }
    }

    fn changed(&mut self) {
        self.dense.take();
        self.forget_pages();
    }

    /// What a page says has changed, though no route of this kind has.
    pub(crate) fn forget_pages(&mut self) {
        self.pages.clear();
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<R>> {
        self.places.get(*self.positions.get(key)?)?.as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<R>> {
        self.places.iter().flatten()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    pub(crate) fn any_logs(&self) -> bool {
        self.logs > 0
    }

    pub(crate) fn any_completes(&self) -> bool {
        self.completes > 0
    }

    /// The positions of the routes, if there are holes between them.
    fn dense(&self) -> Option<&[usize]> {
        if self.places.len() == self.positions.len() {
            return None;
        }
        Some(self.dense.get_or_init(|| {
            let places = self.places.iter().enumerate();
            places.filter(|(_, place)| place.is_some()).map(|(position, _)| position).collect()
        }))
    }

    /// One page, serialised. `list` makes the result of its routes and the cursor of the next page, and `finish` may
    /// change what was written.
    ///
    /// A page is kept only if it starts where pages start that are read one after the other: a cursor may name any item,
    /// and callers do not decide how much is kept for them.
    pub(super) fn page<L: WireResult>(
        &self,
        request: &PageRequest<'_>,
        list: impl Fn(&[&Arc<R>], Option<String>) -> L,
        finish: impl Fn(&[&Arc<R>], &mut Vec<u8>),
    ) -> Result<Prepared, RpcError> {
        let first = request.cursor.map_or(Ok(0), |cursor| self.number_after(cursor))?;
        let key = first.is_multiple_of(request.items).then_some((request.version, first));
        self.pages.page(key, &|out| {
            let items: Vec<&Arc<R>> = match self.dense() {
                None => self.places.iter().skip(first).take(request.items).flatten().collect(),
                Some(dense) => {
                    let positions = dense.iter().skip(first).take(request.items);
                    positions.filter_map(|position| self.places.get(*position)?.as_ref()).collect()
                }
            };
            let more = first + items.len() < self.positions.len();
            let next = items.last().filter(|_| more).map(|last| BASE64_URL_SAFE_NO_PAD.encode(last.key()));
            request.codec.write(request.version, list(&items, next), out)?;
            finish(&items, out);
            Ok(())
        })
    }

    /// A cursor names the last item of the page before, so that it means the same on every replica.
    fn number_after(&self, cursor: &str) -> Result<usize, RpcError> {
        let key = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let position = key.and_then(|key| self.positions.get(key.as_str()).copied());
        let number = position.and_then(|position| match self.dense() {
            None => Some(position),
            Some(dense) => dense.binary_search(&position).ok(),
        });
        number.map(|number| number + 1).ok_or_else(|| {
            RpcError::invalid_params(format!("unknown cursor {cursor:?}; start again without one"))
        })
    }

    #[cfg(test)]
    pub(super) fn pages(&self) -> &Pages {
        &self.pages
    }
}
