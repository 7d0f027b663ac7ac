//! Templates that can list the resources they stand for.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use toolwire_protocol::{
    RpcError,
    wire::{CacheHint, ListResourcesResult, Resource},
};

use super::TemplateRoute;
use crate::{Context, Reply, catalog::Catalog, layer::BoxError, output::Failure, reply::Prepared};

/// How many resources a listing may give at once.
const PAGE_ITEMS: usize = 100;

/// How long a listing may take.
const LISTING_TIME: Duration = Duration::from_secs(5);

/// Which part of a listing is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageAt {
    /// Where to go on: what [`Listed::next`] was given for the page before. `None` for the first one.
    pub cursor: Option<String>,
    /// How many resources may be given at most.
    pub limit: usize,
}

/// A part of a listing.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Listed {
    items: Vec<Resource>,
    next: Option<String>,
}

impl Listed {
    /// These resources, and no others unless [`next`](Self::next) says so.
    pub fn new(items: impl IntoIterator<Item = Resource>) -> Self {
        Self { items: items.into_iter().collect(), next: None }
    }

    /// There are more, from here on.
    pub fn next(mut self, cursor: impl Into<Option<String>>) -> Self {
        self.next = cursor.into();
        self
    }
}

type Listing = Pin<Box<dyn Future<Output = Result<Listed, BoxError>> + Send>>;

/// A listing whose type has been forgotten.
#[derive(Clone)]
pub(crate) struct Lister(Arc<dyn Fn(Context, PageAt) -> Listing + Send + Sync>);

impl std::fmt::Debug for Lister {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lister")
    }
}

impl TemplateRoute {
    /// Lists the resources that the template stands for. They come after the fixed ones in `resources/list`, at most a
    /// hundred at a time, and have five seconds to be found. Callers who may not read them do not get them listed.
    ///
    /// ```
    /// use toolwire_protocol::wire::Resource;
    /// use toolwire_server::{Context, Listed, PageAt, Uri, template};
    ///
    /// let route = template("page://{number}", |Uri(number): Uri<std::collections::BTreeMap<String, u32>>| async move {
    ///     format!("{number:?}")
    /// })
    /// .list(|_: Context, page: PageAt| async move {
    ///     let from: u32 = page.cursor.as_deref().unwrap_or("0").parse()?;
    ///     let pages = (from..from + 10).map(|number| Resource::at(format!("page://{number}")).named("a page"));
    ///     Ok(Listed::new(pages).next((from < 90).then(|| (from + 10).to_string())))
    /// });
    /// ```
    #[must_use]
    pub fn list<F, Fut>(mut self, list: F) -> Self
    where
        F: Fn(Context, PageAt) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Listed, BoxError>> + Send + 'static,
    {
        self.lister = Some(Lister(Arc::new(move |cx, page| Box::pin(list(cx, page)))));
        self
    }
}

/// The cursor of a listing: which one it is, and where to go on. Cursors of fixed resources have no dot in them.
pub(crate) fn cursor(number: usize, theirs: &str) -> String {
    format!("l{number}.{theirs}")
}

/// Reads such a cursor.
pub(crate) fn read_cursor(cursor: &str) -> Option<(usize, &str)> {
    let (number, theirs) = cursor.strip_prefix('l')?.split_once('.')?;
    Some((number.parse().ok()?, theirs))
}

/// Runs a part of a listing.
pub(crate) async fn run(
    cx: Context,
    catalog: Arc<Catalog>,
    number: usize,
    theirs: Option<String>,
) -> Result<Reply, RpcError> {
    let viewer = cx.viewer();
    let mut listings = catalog.listings(&viewer).skip(number);
    let unknown = || RpcError::invalid_params("unknown cursor; start again without one");
    let (route, list) = listings.next().ok_or_else(unknown)?;
    let page = PageAt { cursor: theirs, limit: PAGE_ITEMS };
    let what = format!("the listing of {:?}", route.template.uri_template);
    let listed = tokio::time::timeout(LISTING_TIME, (list.0)(cx.clone(), page)).await;
    let listed = listed.map_err(|_| RpcError::internal(format!("{what} took more than {LISTING_TIME:?}")))?;
    let listed = listed.map_err(|error| Failure::new(error).rpc_error(cx.server().telling(), &what))?;
    if listed.items.len() > PAGE_ITEMS {
        tracing::error!(
            what,
            items = listed.items.len(),
            "a listing gave more than {PAGE_ITEMS} resources at once"
        );
        return Err(RpcError::internal(format!("{what} gave too many resources at once")));
    }
    let mut result = ListResourcesResult::new(listed.items).cached(CacheHint::default());
    result.next_cursor = match listed.next {
        Some(theirs) => Some(cursor(number, &theirs)),
        None => listings.next().map(|_| cursor(number + 1, "")),
    };
    let mut bytes = Vec::new();
    cx.server().codec().write(cx.0.version, result, &mut bytes).map_err(|error| {
        tracing::error!(%error, what, "a list could not be serialised");
        RpcError::internal("the list could not be serialised")
    })?;
    Ok(Reply::Prepared(Prepared(bytes.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back_as_they_were() {
        for theirs in ["", "7", "a.b", "l3.x"] {
            assert_eq!(read_cursor(&cursor(12, theirs)), Some((12, theirs)));
        }
        for other in ["", "l", "l1", "lx.1", "bDE", "1.2"] {
            assert_eq!(read_cursor(other), None, "{other}");
        }
    }
}
