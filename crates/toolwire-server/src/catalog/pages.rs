//! Pages of lists that were serialised already.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use toolwire_protocol::{RpcError, Version};

use super::hidden::View;
use crate::reply::Prepared;

/// How many bytes of pages are kept of one kind of routes. Beyond that, all are forgotten and those that are still asked
/// for are written again.
pub(super) const MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;

/// How many different lists are kept beside the full one, for those from whom something is hidden. Beyond that, all of
/// them are forgotten.
pub(super) const MAX_VIEWS: usize = 64;

/// Serialised pages by version and the number of their first item, for each view of the list.
#[derive(Debug, Default)]
pub(super) struct Pages(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    pages: Numbered,
    views: HashMap<View, Numbered>,
    bytes: usize,
}

type Numbered = HashMap<(Version, usize), Prepared>;

impl Pages {
    /// The page of this key, which `write` writes if it is not there. Without a key it is not kept.
    pub(super) fn page(
        &self,
        key: Option<(Version, usize)>,
        view: &View,
        write: &dyn Fn(&mut Vec<u8>) -> Result<(), serde_json::Error>,
    ) -> Result<Prepared, RpcError> {
        let Some(key) = key else { return written(write) };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = if view.is_full() { Some(&kept.pages) } else { kept.views.get(view) };
        if let Some(page) = known.and_then(|pages| pages.get(&key)) {
            return Ok(page.clone());
        }
        let page = written(write)?;
        kept.keep(key, view, &page);
        Ok(page)
    }

    pub(super) fn clear(&mut self) {
        let kept = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes > 0 {
            *kept = Kept::default();
        }
    }

    #[cfg(test)]
    pub(super) fn count_and_bytes(&self) -> (usize, usize) {
        let kept = self.0.lock().unwrap();
        (kept.pages.len() + kept.views.values().map(HashMap::len).sum::<usize>(), kept.bytes)
    }
}

impl Kept {
    fn keep(&mut self, key: (Version, usize), view: &View, page: &Prepared) {
        let bytes = page.0.len();
        if self.bytes + bytes > MAX_KEPT_BYTES {
            *self = Self::default();
        }
        if bytes > MAX_KEPT_BYTES {
            return;
        }
        self.bytes += bytes;
        if view.is_full() {
            self.pages.insert(key, page.clone());
            return;
        }
        if self.views.len() >= MAX_VIEWS && !self.views.contains_key(view) {
            self.views.clear();
            self.bytes = bytes + self.pages.values().map(|page| page.0.len()).sum::<usize>();
        }
        self.views.entry(view.clone()).or_default().insert(key, page.clone());
    }
}

fn written(write: &dyn Fn(&mut Vec<u8>) -> Result<(), serde_json::Error>) -> Result<Prepared, RpcError> {
    let mut bytes = Vec::new();
    write(&mut bytes).map_err(|error| {
        tracing::error!(%error, "a list could not be serialised");
        RpcError::internal("the list could not be serialised")
    })?;
    Ok(Prepared(bytes.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_by_its_bytes() {
        let pages = Pages::default();
        let page = |key, size| {
            let page = pages.page(Some((Version::V2025_11_25, key)), &View::default(), &|out| {
                out.resize(size, b' ');
                Ok(())
            });
            assert_eq!(page.unwrap().0.len(), size);
        };
        page(0, MAX_KEPT_BYTES / 2);
        page(1, MAX_KEPT_BYTES / 2);
        assert_eq!(pages.count_and_bytes(), (2, MAX_KEPT_BYTES));
        page(2, 7);
        assert_eq!(pages.count_and_bytes(), (1, 7));
        page(3, MAX_KEPT_BYTES + 1);
        assert_eq!(pages.count_and_bytes(), (0, 0));
    }

    #[test]
    fn views_are_kept_apart_and_are_limited() {
        let pages = Pages::default();
        let page = |hidden: usize, text: &[u8]| {
            let mut view = View::default();
            if hidden > 0 {
                view.hidden.add(hidden);
            }
            let page = pages.page(Some((Version::V2025_11_25, 0)), &view, &|out| {
                out.extend_from_slice(text);
                Ok(())
            });
            String::from_utf8(page.unwrap().0.to_vec()).unwrap()
        };
        assert_eq!(page(0, b"full"), "full");
        assert_eq!(page(1, b"one"), "one");
        assert_eq!(page(1, b"not written again"), "one");
        for other in 2..=MAX_VIEWS {
            page(other, b"x");
        }
        assert_eq!(pages.count_and_bytes(), (1 + MAX_VIEWS, 4 + 3 + MAX_VIEWS - 1));
        page(MAX_VIEWS + 1, b"x");
        assert_eq!(pages.count_and_bytes(), (2, 5));
        assert_eq!(page(0, b"not written again"), "full");
        assert_eq!(page(1, b"again"), "again");
    }
}
