//! The extractors: what a handler may take as arguments.

pub(crate) mod args;
mod log;
mod progress;
pub(crate) mod strings;

pub use args::{Args, Extension, State, Uri};
pub use log::Log;
pub use progress::Progress;
pub(crate) use progress::ProgressGuard;

use toolwire_protocol::wire::Meta;

use crate::{
    Context,
    handler::{FromContext, HandlerSpec, Rejection},
};

impl FromContext for Meta {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        Ok(cx.meta())
    }
}

impl FromContext for Progress {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        Ok(cx.progress())
    }
}

impl FromContext for Log {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        Ok(cx.log())
    }

    fn describe(spec: &mut HandlerSpec) {
        spec.logs();
    }
}
