//! Routes of one kind.

use std::{
    borrow::Borrow,
    collections::{HashMap, hash_map},
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use toolwire_protocol::{
    RpcError,
    codec::WireResult,
    wire::{CacheHint, CacheScope},
};
use toolwire_transport::internal::QuickHash;

use super::{
    PageRequest,
    hidden::{Hidden, Tail, View},
    pages::Pages,
};
use crate::{
    access::Viewer,
    reply::Prepared,
    route::{Entry, Needs},
};

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
    /// How many routes have calls that may become tasks.
    tasks: usize,
    /// How many routes ask something of their callers.
    guarded: usize,
    /// How many of them ask for scopes.
    scoped: usize,
    /// How many routes are hidden from some.
    trimmed: usize,
    /// Belongs to this snapshot alone.
    pages: Pages,
}

impl<R> Default for Registry<R> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            positions: Positions::default(),
            dense: OnceLock::new(),
            logs: 0,
            completes: 0,
            tasks: 0,
            guarded: 0,
            scoped: 0,
            trimmed: 0,
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

/// Where routes are, whatever their kind. Only a server's own routes are ever put into it.
type Positions = HashMap<ByKey, usize, QuickHash>;

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
        self.count(&*route, |count, one| *count += one);
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
        self.count(&*route, |count, one| *count -= one);
        if self.places.len() > FEW_PLACES.max(2 * self.positions.len()) {
            self.fill_holes();
        }
        self.changed();
        Some(route)
    }

    /// Counts what routes have in common.
    fn count(&mut self, route: &R, change: impl Fn(&mut usize, usize)) {
        let Needs { logs, access, .. } = route.needs();
        change(&mut self.logs, usize::from(*logs));
        change(&mut self.completes, usize::from(route.completes()));
        change(&mut self.tasks, usize::from(route.has_tasks()));
        change(&mut self.guarded, usize::from(!access.is_open()));
        change(&mut self.scoped, usize::from(!access.scopes().is_empty()));
        change(&mut self.trimmed, usize::from(access.is_trimmed()));
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

    /// The route with this key, if it exists for the viewer.
    pub(crate) fn get(&self, key: &str, viewer: &Viewer<'_>) -> Option<&Arc<R>> {
        self.get_for_all(key).filter(|route| !self.may_hide(viewer) || viewer.sees(&route.needs().access))
    }

    /// The route with this key, whoever looks for it.
    pub(crate) fn get_for_all(&self, key: &str) -> Option<&Arc<R>> {
        self.places.get(*self.positions.get(key)?)?.as_ref()
    }

    /// The routes that exist for the viewer.
    pub(crate) fn iter<'a>(&'a self, viewer: &'a Viewer<'_>) -> impl Iterator<Item = &'a Arc<R>> {
        let may_hide = self.may_hide(viewer);
        self.places.iter().flatten().filter(move |route| !may_hide || viewer.sees(&route.needs().access))
    }

    /// All routes: for the server's own author, and for nobody who calls it.
    pub(crate) fn iter_for_all(&self) -> impl Iterator<Item = &Arc<R>> {
        self.places.iter().flatten()
    }

    /// Whether a route may exist for one viewer and not for another one.
    pub(super) fn may_hide(&self, viewer: &Viewer<'_>) -> bool {
        self.trimmed > 0 || (self.scoped > 0 && viewer.policy().hide_without_scopes)
    }

    pub(super) fn is_guarded(&self) -> bool {
        self.guarded > 0
    }

    /// What is hidden from the viewer.
    fn hidden_from(&self, viewer: &Viewer<'_>) -> Hidden {
        let mut hidden = Hidden::default();
        if self.may_hide(viewer) {
            for (position, route) in self.places.iter().enumerate() {
                if route.as_ref().is_some_and(|route| !viewer.sees(&route.needs().access)) {
                    hidden.add(position);
                }
            }
        }
        hidden
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    pub(crate) fn any_logs(&self) -> bool {
        self.logs > 0
    }

    /// Whether calls of any route may become tasks.
    pub(crate) fn any_tasks(&self) -> bool {
        self.tasks > 0
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
    ///
    /// `tail` is what of the list comes from elsewhere. A list that is not the same for everybody is private, whatever
    /// the request says.
    pub(super) fn page<L: WireResult>(
        &self,
        request: &PageRequest<'_>,
        tail: Tail,
        list: impl Fn(&[&Arc<R>], Option<String>, CacheHint) -> L,
        finish: impl Fn(&[&Arc<R>], &mut Vec<u8>),
    ) -> Result<Prepared, RpcError> {
        let hidden = self.hidden_from(&request.viewer);
        let first = request.cursor.map_or(Ok(0), |cursor| self.number_after(cursor, &hidden))?;
        let key = first.is_multiple_of(request.items).then_some((request.version, first));
        let mut cache = request.cache;
        if tail.may_hide || self.may_hide(&request.viewer) {
            cache.scope = CacheScope::Private;
        }
        let view = View { hidden, without_tail: tail.is_hidden };
        self.pages.page(key, &view, &|out| {
            let items = self.items(first, request.items, &view.hidden);
            let more = first + items.len() < self.positions.len() - view.hidden.len();
            let next = items.last().filter(|_| more).map(|last| BASE64_URL_SAFE_NO_PAD.encode(last.key()));
            request.codec.write(request.version, list(&items, next, cache), out)?;
            finish(&items, out);
            Ok(())
        })
    }

    /// So many routes from a number on, counting those that are not hidden.
    fn items<'a>(&'a self, first: usize, count: usize, hidden: &'a Hidden) -> Vec<&'a Arc<R>> {
        if !hidden.is_empty() {
            return self.visible(hidden).skip(first).take(count).map(|(_, route)| route).collect();
        }
        match self.dense() {
            None => self.places.iter().skip(first).take(count).flatten().collect(),
            Some(dense) => {
                let positions = dense.iter().skip(first).take(count);
                positions.filter_map(|position| self.places.get(*position)?.as_ref()).collect()
            }
        }
    }

    /// The routes that are not hidden, with their positions.
    fn visible<'a>(&'a self, hidden: &'a Hidden) -> impl Iterator<Item = (usize, &'a Arc<R>)> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(position, route)| {
            let route = route.as_ref().filter(|_| !hidden.has(position))?;
            Some((position, route))
        })
    }

    /// A cursor names the last item of the page before, so that it means the same on every replica. One that names
    /// something hidden is as unknown as one that names nothing.
    fn number_after(&self, cursor: &str, hidden: &Hidden) -> Result<usize, RpcError> {
        let key = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let position = key.and_then(|key| self.positions.get(key.as_str()).copied());
        let number = position.and_then(|position| match self.dense() {
            _ if !hidden.is_empty() => self.visible(hidden).position(|(known, _)| known == position),
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
