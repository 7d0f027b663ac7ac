//! Calls MCP servers, whatever revision of the protocol they speak.
//!
//! A [`Client`] is made by [`Client::builder`]. It finds out by itself whether the server is one of the legacy
//! era, with its handshake, or of the modern one, where every request stands alone; nothing in its methods
//! depends on it. Where only one of the eras has something, the other one gives an error that says so.
//!
//! * [`CallBuilder`] is every typed request: progress, timeouts, metadata. Dropping its future cancels it.
//! * [`Pages`] goes through lists, [`Listener`] tells of changes, [`Raw`] shows the wire.
//! * Handlers given to the [`ClientBuilder`] answer what a server asks, live in the legacy era and in rounds in
//!   the modern one.
//! * [`TaskHandle`] follows work that goes on as a task, also after a restart.
//! * [`Error`] says what went wrong and whether the server may have acted on it.
//! * [`link`] is for those who write transports. There is no HTTP in this crate.
//!
//! ```
//! use serde_json::json;
//! use toolwire_client::Client;
//! # use toolwire_transport::{Duplex, Sink, Source, memory};
//! # async fn serve(server: memory::Memory) {
//! #     let (mut source, mut sink) = server.split();
//! #     for answer in [
//! #         r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}"#,
//! #         r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[{"type":"text","text":"5"}]}}"#,
//! #     ] {
//! #         source.receive().await.unwrap();
//! #         sink.send(answer.into()).await.unwrap();
//! #     }
//! #     source.receive().await.unwrap();
//! # }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), toolwire_client::Error> {
//! # let (transport, server) = memory::pair();
//! # tokio::spawn(serve(server));
//! let client = Client::builder("demo", "1.0").connect(transport).await?;
//! let sum = client.call("add", json!({ "a": 2, "b": 3 })).await?;
//! assert_eq!(sum.text(), "5");
//! client.close().await?;
//! # Ok(())
//! # }
//! ```

mod builder;
mod client;
mod clock;
mod connect;
mod error;
mod host;
mod limits;
#[doc(hidden)]
pub mod link;
mod listen;
mod lock;
mod observe;
mod settings;
mod task;
mod waiting;

pub use builder::{ClientBuilder, ReconnectingBuilder};
pub use client::{CallBuilder, CallOutcome, Client, Operation, PageOf, Pages, Raw, RawCall, Usage};
pub use clock::{Clock, SystemClock};
#[doc(hidden)]
pub use connect::{Connection, FailedConnection, kind};
pub use connect::{ConnectionState, Connector, EraCache, EraChoice, Reconnect, Remembered};
pub use error::{Delivery, Error, ErrorKind};
pub use host::{Elicit, ElicitReply, ServerRequest};
pub use limits::ClientLimits;
pub use listen::{Change, EndReason, ListenBuilder, Listener};
pub use observe::Observed;
pub use task::{Started, TaskHandle, TaskState, Updates};
