//! Handlers that block the thread they run on.

use std::{marker::PhantomData, panic::resume_unwind};

use toolwire_protocol::RpcError;

use crate::{
    Context,
    handler::{FromContext, Handler, HandlerSpec, Rejection, extract, for_each_arity, handler_items},
};

/// Makes a handler of a function that is not async: it runs on a thread where it may block, and holds up nobody.
///
/// ```
/// use toolwire_server::{State, blocking, tool};
///
/// fn read(State(path): State<std::path::PathBuf>) -> std::io::Result<String> {
///     std::fs::read_to_string(path)
/// }
///
/// let route = tool("read", blocking(read)).description("Reads the file.");
/// ```
///
/// Functions with `#[tool]` and the like need no such word: those that are not `async` are run this way. A call that is
/// cancelled is answered at once, but what runs on its thread runs on until it returns.
pub const fn blocking<F>(function: F) -> Blocking<F> {
    Blocking(function)
}

/// A function that may block. Made by [`blocking`].
#[derive(Clone, Copy, Debug)]
pub struct Blocking<F>(F);

/// Marks the handlers that are [`Blocking`].
#[derive(Debug)]
pub struct MayBlock<In>(PhantomData<In>);

/// Runs what may block on a thread for that. A panic goes on where it is awaited.
pub async fn in_pool<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Rejection> {
    let span = tracing::Span::current();
    match tokio::task::spawn_blocking(move || span.in_scope(work)).await {
        Ok(value) => Ok(value),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Err(RpcError::internal("the server is going away").into()),
        },
    }
}

impl<F, Out> Handler<MayBlock<()>> for Blocking<F>
where
    F: Fn() -> Out + Clone + Send + Sync + 'static,
    Out: Send + 'static,
{
    type Output = Out;

    async fn call(self, cx: Context) -> Result<Out, Rejection> {
        cx.threshold().await;
        drop(cx);
        in_pool(self.0).await
    }

    fn describe(&self, spec: &mut HandlerSpec) {
        spec.threshold = true;
    }
}

macro_rules! impl_handler {
    ($($extractor:ident),*) => {
        #[expect(non_snake_case, reason = "one name serves as the type and as its value")]
        impl<F, Out, $($extractor,)*> Handler<MayBlock<($($extractor,)*)>> for Blocking<F>
        where
            F: Fn($($extractor),*) -> Out + Clone + Send + Sync + 'static,
            Out: Send + 'static,
            $($extractor: FromContext + 'static,)*
        {
            handler_items!(self, ($($extractor),*), in_pool(move || (self.0)($($extractor),*)).await);
        }
    };
}

for_each_arity!(impl_handler);
