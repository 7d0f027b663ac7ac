//! Test MCP servers and clients over every protocol revision and transport.
//!
//! * [`Wire`] is a client that speaks one revision by hand, for tests that look at the bytes;
//! * [`each`] and [`Matrix`] run one test body over every revision and link;
//! * [`Setup::client`] is Toolwire's own client, pinned to the revision of the setup; [`each_client`] runs it over
//!   HTTP and WebSocket as well, where the feature `http` is on, and over unix sockets with the feature `unix`;
//! * [`FakeClock`] lets a client's cache grow old at once;
//! * [`simulation`] has what a deterministic simulation is made of: numbers from a seed, and a network that misbehaves;
//! * `tcp_faults`, with the feature `tcp`, is a proxy in front of a real server: slow, silent or cut on request;
//! * [`store`] holds a store of your own against the contract of stores, and has one that fails when it is told to;
//! * [`replay`](replay()) holds a server against a conversation that was written down;
//! * [`SpecSchemas`] hold every message of a server against the official schemas, where they are at hand.
//!
//! Everything here panics when something is not as it should be, with a text that shows the conversation so far:
//! it is meant for tests and for nothing else.
//!
//! ```
//! use serde_json::json;
//! use toolwire_server::{Server, tool};
//! use toolwire_testkit::each;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let server = Server::builder("demo", "1.0").tool(tool("hello", || async { "hello" })).build().unwrap();
//! each(async |setup| {
//!     let mut wire = setup.wire(&server).await;
//!     let reply = wire.request("tools/call", json!({ "name": "hello" })).await;
//!     assert_eq!(reply.result()["content"][0]["text"], "hello");
//! })
//! .await;
//! # }
//! ```

mod any;
mod clock;
#[cfg(any(feature = "http", all(unix, feature = "unix")))]
mod hosted;
mod matrix;
pub mod replay;
pub mod simulation;
mod spec;
pub mod store;
mod target;
#[cfg(feature = "tcp")]
pub mod tcp_faults;
pub mod transcript;
pub mod wire;

pub use any::{AnyDuplex, AnySink, AnySource};
pub use clock::FakeClock;
pub use matrix::{Matrix, Setup, each, each_client};
pub use replay::replay;
pub use spec::{SPEC_VARIABLE, SpecSchemas};
pub use target::{Link, PIPE_BYTES, Program, Target};
pub use transcript::Transcript;
pub use wire::{Reply, Wire, WireBuilder};
