//! Write MCP servers: plain async functions in, every protocol revision out.
//!
//! A [`Server`] is described with [`Server::builder`] from routes: [`tool()`], [`prompt()`], [`resource()`] and
//! [`template()`], each made of an async function whose arguments are extractors. Then it serves any
//! [`Duplex`](toolwire_transport::Duplex): both protocol eras at once, and no handler ever knows which one called.
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use toolwire_server::{Args, Server, tool};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Sum { a: i64, b: i64 }
//!
//! async fn add(Args(sum): Args<Sum>) -> String {
//!     (sum.a + sum.b).to_string()
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let server = Server::builder("calculator", "1.0")
//!     .tool(tool("add", add).description("Adds two numbers."))
//!     .build()?;
//! # let (transport, client) = toolwire_transport::memory::pair();
//! # drop(client);
//! server.serve(transport).await?;
//! # Ok(())
//! # }
//! ```

mod access;
mod admission;
mod ask;
mod blocking;
mod builder;
mod caller;
mod cancel;
mod catalog;
mod context;
mod dispatch;
mod duplex;
mod edit;
#[doc(hidden)]
pub mod engine;
mod extract;
mod handler;
mod layer;
mod limits;
mod listen;
mod nearest;
mod notify;
mod observe;
mod outbox;
mod output;
mod parameter;
mod raw_result;
mod reply;
mod route;
mod schema;
mod server;
mod signature;
mod tasks;

pub use access::{
    ClaimsError, Lack, Principal, PrincipalBuilder, PrincipalKey, RecordError, ScopeError, ScopeRules, Scopes,
};
pub use admission::{CallerKey, Usage};
pub use ask::{
    Answer, Ask, AskError, Elicit, ElicitUrl, ListRoots, MemoryNonces, NeedInput, NonceError, NonceStore,
    Question, Sample, StateKeys, UrlAnswer,
};
pub use blocking::{Blocking, MayBlock, blocking};
pub use builder::{BuildError, ServerBuilder};
pub use caller::{Caller, CallerCan, CallerId, CallerScope};
pub use context::{Context, Extensions};
pub use duplex::ServeError;
pub use edit::Edit;
pub use extract::{Args, Extension, Log, Progress, Session, State, Uri};
pub use handler::{FromContext, Handler, HandlerSpec, Rejection};
pub use layer::{BoxError, Route, RouteLayer};
pub use limits::Limits;
pub use notify::{Notifier, NotifyError, Wanted};
pub use observe::Observer;
pub use output::{IntoPrompt, IntoResource, IntoToolOutput, Json, NotFound, ResourceInfo, ToolError};
pub use parameter::{Extracted, Given, Parameter};
pub use raw_result::RawResult;
#[doc(hidden)]
pub use reply::Prepared;
pub use reply::Reply;
pub use route::{
    Complete, Group, IntoCompletion, IntoRoutes, Listed, PageAt, PromptRoute, ResourceRoute, Routes,
    TemplateRoute, ToolRoute, prompt, resource, template, tool,
};
pub use server::Server;
pub use signature::RouteSignature;
pub use tasks::TaskPolicy;

/// What the attributes expand to. Not part of the API.
#[doc(hidden)]
pub mod __private {
    pub use tokio::try_join;

    pub use crate::blocking::in_pool;
    pub use crate::output::Failure;
    pub use crate::parameter::{
        Function, Named, NotShown, Shown, Signature, Slot, Values, variable, variable_is_absent, variables,
    };
}
