//! The public documents of a guard, for routers that do not send their paths to the endpoint.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, StatusCode};
use tower_service::Service;

use super::{Body, Guard, entry::public_document, response};

/// Serves the documents of a [`Guard`] that everybody may read, by the path of a request alone.
///
/// An endpoint does that by itself for the paths that arrive there. Below a router that sends only one path to it, this
/// is mounted at the others.
#[derive(Clone, Debug)]
pub struct Documents(Arc<dyn Guard>);

impl Documents {
    /// The documents of a guard.
    pub fn new(guard: impl Guard) -> Self {
        Self(Arc::new(guard))
    }
}

impl<B> Service<Request<B>> for Documents {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let document = public_document(&*self.0, &request.into_parts().0);
        ready(Ok(document.unwrap_or_else(|| response::empty(StatusCode::NOT_FOUND))))
    }
}
