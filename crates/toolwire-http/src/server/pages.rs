//! Pages beside the endpoint, for those who watch over it: whether it lives, what it counts.

use std::{collections::BTreeMap, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};
use tokio::time::timeout;

use super::{
    Body,
    drain::{is_late, leaving},
    response,
};

/// How long a page may take to be made; after that it is answered with 503.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);

type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;
type Page = Arc<dyn Fn(Arc<Parts>) -> Answering + Send + Sync>;

/// The pages of an endpoint, by their paths.
#[derive(Clone, Default)]
pub(crate) struct Pages(BTreeMap<String, Page>);

impl Pages {
    /// Adds a page. Says whether there was another one at its path.
    pub(crate) fn add<F, Fut>(&mut self, path: String, page: F) -> bool
    where
        F: Fn(Arc<Parts>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Response<Body>> + Send + 'static,
    {
        self.0.insert(path, Arc::new(move |request| Box::pin(page(request)))).is_some()
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The answer to a request for a page, if it is for one.
    pub(crate) fn answer(&self, parts: &Arc<Parts>) -> Option<Answering> {
        let page = self.0.get(parts.uri.path())?;
        let now = |response| Some(Box::pin(std::future::ready(response)) as Answering);
        if is_late(parts) {
            return now(leaving(None));
        }
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            let mut response = response::empty(StatusCode::METHOD_NOT_ALLOWED);
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return now(response);
        }
        let answering = page(Arc::clone(parts));
        Some(Box::pin(async {
            let answered = timeout(PAGE_TIMEOUT, answering).await;
            answered.unwrap_or_else(|_| response::empty(StatusCode::SERVICE_UNAVAILABLE))
        }))
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.paths()).finish()
    }
}
