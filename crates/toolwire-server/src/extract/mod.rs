//! The extractors: what a handler may take as arguments.

pub(crate) mod args;
mod log;
mod progress;
mod session;
pub(crate) mod strings;

pub use args::{Args, Extension, State, Uri};
pub use log::Log;
pub use progress::Progress;
pub(crate) use progress::ProgressGuard;
pub use session::Session;
pub(crate) use session::{PrincipalSessions, SessionValues};

use toolwire_protocol::{ErrorCode, RpcError, wire::Meta};

use crate::{
    Context, Principal,
    handler::{FromContext, HandlerSpec, Rejection},
};

impl FromContext for Meta {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        Ok(cx.meta())
    }
}

/// Whoever takes it is called by nobody unknown; `Option<Principal>` is for those who do not mind.
impl FromContext for Principal {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        cx.extension().ok_or_else(|| {
            let message = "this call needs a caller who has been identified";
            Rejection::absent(RpcError::new(ErrorCode::INVALID_REQUEST, message))
        })
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
