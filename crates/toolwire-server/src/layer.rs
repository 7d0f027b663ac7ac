//! `tower` layers around one handler, a group of them, or the whole server.
//!
//! A layer sees a [`Context`] go in and a [`Reply`] come out, once for each round of a request that asks:
//! [`Context::round`] says which one it is. Whatever error the layer adds (an elapsed
//! timeout, an overload) becomes an internal error, unless it is an [`RpcError`], which passes as it is.

use std::{
    error::Error,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
};

use toolwire_protocol::RpcError;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    Context, Reply,
    engine::rounds,
    handler::{Answer, Endpoint, SharedEndpoint},
};

/// Any error, boxed: what layers may fail with.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The service a layer wraps: a request's [`Context`] in, its [`Reply`] out.
#[derive(Clone)]
pub struct Route(pub(crate) SharedEndpoint);

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Route")
    }
}

impl Service<Context> for Route {
    type Response = Reply;
    type Error = RpcError;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), RpcError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, cx: Context) -> Answer {
        if cx.0.journal.get().is_some() {
            cx.journal().called_again();
        }
        // A layer sees how each round ends, also one that ends with questions.
        rounds::ending_with_questions(cx.clone(), self.0.call(cx))
    }
}

/// What a layer has to make of a [`Route`].
///
/// Implemented for every `tower` layer whose service takes a [`Context`], gives a [`Reply`] and can be cloned.
pub trait RouteLayer {
    #[doc(hidden)]
    fn wrap(&self, route: Route) -> Route;
}

impl<L, S> RouteLayer for L
where
    L: Layer<Route, Service = S>,
    S: Service<Context, Response = Reply> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    fn wrap(&self, route: Route) -> Route {
        Route(Arc::new(Layered(Mutex::new(self.layer(route)))))
    }
}

/// A service made by a layer. `tower` services are called by unique reference, so each call takes a clone.
struct Layered<S>(Mutex<S>);

impl<S> Endpoint for Layered<S>
where
    S: Service<Context, Response = Reply> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    fn call(&self, cx: Context) -> Answer {
        let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move {
            std::future::poll_fn(|task| service.poll_ready(task)).await.map_err(error)?;
            service.call(cx).await.map_err(error)
        })
    }
}

fn error(error: impl Into<BoxError>) -> RpcError {
    let error = error.into();
    match error.downcast::<RpcError>() {
        Ok(rpc) => *rpc,
        Err(other) => RpcError::internal(other.to_string()),
    }
}
