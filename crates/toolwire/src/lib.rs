//! The Rust SDK for the [Model Context Protocol](https://modelcontextprotocol.io): servers, clients and every
//! revision of the protocol, from one API.
//!
//! This crate only re-exports; the parts live in crates of their own, and the features below choose among
//! them. What most programs need is at the top and in the [`prelude`]; the rest is in [`server`], [`client`],
//! [`transport`], `http` and [`wire`], each type at one place.
//!
//! | feature | default | what |
//! | --- | --- | --- |
//! | `server` | yes | write servers: [`Server`], [`tool()`], [`prompt()`], [`resource()`], [`template()`] |
//! | `client` | yes | call servers: [`Client`] |
//! | `macros` | yes | the attributes [`#[tool]`](macro@tool), [`#[prompt]`](macro@prompt), [`#[resource]`](macro@resource), [`#[tools]`](macro@tools), [`#[args]`](macro@args) |
//! | `stdio` | yes | serve on standard input and output: [`stdio()`] |
//! | `child` | yes | start servers as child processes: [`ChildProcess`] |
//! | `unix` | no | serve at a unix socket and connect to one: `UnixSocket`, [`Server::serve_listener`] |
//! | `http` | no | serve on HTTP and connect over it; `http-server` and `http-client` are its halves |
//! | `http-tls` | no | TLS for both |
//! | `http-sse2024` | no | HTTP+SSE, the transport of 2024-11-05 |
//! | `http-ws` | no | WebSocket, on the port and the path of HTTP |
//! | `auth` | no | OAuth: protect a server on HTTP, and log in to one; `auth-server` and `auth-client` are its halves, and have TLS for clients with them; with `auth-keyring`, stored logins can be sealed with a key in the system's keyring |
//! | `store-sqlite` | no | keep tasks in a file: [`store::open`] with `sqlite:PATH` |
//! | `store-redis` | no | keep tasks in Redis or Valkey: [`store::open`] with `redis://HOST` |
//! | `store-postgres` | no | keep tasks in Postgres: [`store::open`] with `postgres://HOST/DATABASE` |
//!
//! # A server
//!
//! ```no_run
//! use toolwire::prelude::*;
//!
//! /// Adds two numbers.
//! #[tool]
//! async fn add(a: i64, b: i64) -> Json<i64> {
//!     Json(a + b)
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     let server = Server::builder("calculator", "1.0").routes(routes![add]).build()?;
//!     server.serve(stdio()?).await?;
//!     Ok(())
//! }
//! ```

#[cfg(any(feature = "auth-server", feature = "auth-client"))]
pub use toolwire_auth as auth;
#[cfg(feature = "client")]
pub use toolwire_client::Client;
#[cfg(feature = "macros")]
pub use toolwire_macros::{args, prompt, resource, tool, tools};
pub use toolwire_protocol::{
    Era, ErrorCode, Feature, Method, MethodName, Notification, Params, ProgressToken, RawJson, RequestId,
    RpcError, ServerCapability, UnknownVersion, Version, schema, uri_template, wire,
};
#[cfg(feature = "server")]
pub use toolwire_server::{
    Answer, Args, Ask, AskError, BuildError, Caller, Context, Extension, Group, Json, Limits, Log, NeedInput,
    NotFound, Notifier, Principal, Progress, Question, Routes, Server, Session, State, StateKeys, TaskPolicy,
    ToolError, Uri, blocking, prompt, resource, routes, template, tool,
};
#[cfg(feature = "child")]
pub use toolwire_transport::ChildProcess;
#[cfg(all(unix, feature = "unix"))]
pub use toolwire_transport::UnixSocket;
pub use toolwire_transport::memory;
#[cfg(feature = "stdio")]
pub use toolwire_transport::stdio;

/// For the parts of this project that are built on the facade. Not part of the API.
#[doc(hidden)]
pub use toolwire_protocol as protocol;

/// Servers: what is needed less often than what the crate has at its top.
#[cfg(feature = "server")]
pub mod server {
    pub use toolwire_server::{
        Blocking, CallerCan, CallerId, CallerKey, CallerScope, Complete, Edit, Elicit, ElicitUrl, Extensions,
        Extracted, FromContext, Given, Handler, HandlerSpec, IntoCompletion, IntoPrompt, IntoResource,
        IntoRoutes, IntoToolOutput, ListRoots, Listed, MayBlock, MemoryNonces, NonceError, NonceStore,
        NotifyError, Observer, PageAt, Parameter, PromptRoute, RawResult, Rejection, Reply, ResourceInfo,
        ResourceRoute, Route, RouteLayer, RouteSignature, Sample, ServeError, ServerBuilder, TaskPolicy,
        TemplateRoute, ToolRoute, UrlAnswer, Usage, Wanted,
    };
}

/// Clients: what is needed less often than [`Client`] itself.
#[cfg(feature = "client")]
pub mod client {
    pub use toolwire_client::{
        CallBuilder, CallOutcome, Change, ClientBuilder, ClientLimits, Clock, ConnectionState, Connector,
        Delivery, Elicit, ElicitReply, EndReason, EraCache, EraChoice, Error, ErrorKind, ListenBuilder,
        Listener, Observed, Operation, PageOf, Pages, Raw, RawCall, Reconnect, ReconnectingBuilder,
        Remembered, ServerRequest, Started, SystemClock, TaskHandle, TaskState, Updates, Usage,
    };

    /// For connectors of this project. Not part of the API.
    #[doc(hidden)]
    pub use toolwire_client::{Connection, FailedConnection, kind, link};
}

/// HTTP and WebSocket.
#[cfg(any(feature = "http-server", feature = "http-client"))]
pub mod http {
    #[cfg(feature = "http-client")]
    pub use toolwire_http::client;
    #[cfg(feature = "http-server")]
    pub use toolwire_http::server;
}

/// How bytes move, and what transports of one's own are made of.
pub mod transport {
    #[cfg(feature = "stdio")]
    pub use toolwire_transport::Stdio;
    #[cfg(feature = "child")]
    pub use toolwire_transport::child;
    pub use toolwire_transport::{BoxFuture, Diagnostics, Duplex, Listener, ReceiveError, Sink, Source};
    #[cfg(all(unix, feature = "unix"))]
    pub use toolwire_transport::{UnixError, UnixListener};

    /// For the parts of this project that are built on the facade. Not part of the API.
    #[doc(hidden)]
    pub use toolwire_transport::{FairQueue, Lane, Ledger, fair, ledger, lines, pump, write_loop};
}

pub mod store;

pub use serde_json::json;

#[cfg(feature = "server")]
pub use {schemars, serde};

/// Any error, boxed. Every error becomes one with `?`.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A result whose error can be anything. In a handler, the error's text is told to the model.
pub type Result<T, E = BoxError> = std::result::Result<T, E>;

/// Everything that most servers and clients need.
///
/// `Deserialize`, `Serialize` and `JsonSchema` come with their derives, whose code names the crates `serde` and `schemars`.
/// A crate that uses the derives depends on both, or says where they are. `#[args]` needs neither, and is
/// for results as well:
///
/// ```
/// use toolwire::prelude::*;
///
/// #[args]
/// struct City {
///     name: String,
/// }
///
/// #[derive(Serialize, JsonSchema)]
/// #[serde(crate = "toolwire::serde")]
/// #[schemars(crate = "toolwire::schemars")]
/// struct Weather {
///     degrees: f64,
/// }
///
/// #[tool]
/// async fn weather(Args(city): Args<City>) -> Json<Weather> {
///     Json(Weather { degrees: if city.name == "Oslo" { -3.0 } else { 17.5 } })
/// }
/// ```
pub mod prelude {
    pub use serde_json::json;

    #[cfg(feature = "client")]
    pub use toolwire_client::Client;
    #[cfg(feature = "http-client")]
    pub use toolwire_http::client::Http;
    #[cfg(feature = "http-server")]
    pub use toolwire_http::server::{HttpRequest, serve_http};
    #[cfg(feature = "macros")]
    pub use toolwire_macros::{args, prompt, resource, tool, tools};
    pub use toolwire_protocol::wire::{Content, Meta, PromptMessage, ResourceContents};
    #[cfg(feature = "server")]
    pub use toolwire_server::{
        Answer, Args, Ask, Caller, Context, Extension, Group, Json, Log, NotFound, Principal, Progress,
        Question, Server, Session, State, TaskPolicy, ToolError, Uri, prompt, resource, routes, template,
        tool,
    };
    #[cfg(feature = "child")]
    pub use toolwire_transport::ChildProcess;
    #[cfg(all(unix, feature = "unix"))]
    pub use toolwire_transport::UnixSocket;
    #[cfg(feature = "stdio")]
    pub use toolwire_transport::stdio;

    #[cfg(feature = "server")]
    pub use {
        schemars::JsonSchema,
        serde::{Deserialize, Serialize},
    };

    pub use crate::Result;
}

/// What the attributes expand to. Not part of the API.
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde;
    pub use toolwire_server::{
        __private::{
            Function, Named, NotShown, Shown, Signature, Values, in_pool, try_join, variable,
            variable_is_absent, variables,
        },
        Context, FromContext, Given, Group, HandlerSpec, Parameter, PromptRoute, Rejection, ResourceRoute,
        Routes, TaskPolicy, TemplateRoute, ToolRoute, prompt, resource, template, tool,
    };
}

/// Compiles and runs the blocks of the README.
#[cfg(all(doctest, feature = "http"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles and runs the blocks of the guide to asking.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/asking.md")]
struct AskingGuide;

/// Compiles and runs the blocks of the guide to protecting a server.
#[cfg(all(doctest, feature = "auth-server", feature = "macros"))]
#[doc = include_str!("../../../docs/protect.md")]
struct ProtectGuide;

/// Compiles and runs the blocks of the guide to logging in.
#[cfg(all(doctest, feature = "auth-client"))]
#[doc = include_str!("../../../docs/login.md")]
struct LoginGuide;

/// Compiles and runs the blocks of the guide to stores.
#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../../../docs/stores.md")]
struct StoreGuide;

/// Compiles and runs the blocks of the guide to tasks.
#[cfg(all(doctest, feature = "client", feature = "http", feature = "macros"))]
#[doc = include_str!("../../../docs/tasks.md")]
struct TaskGuide;
