//! How bytes move between two MCP peers.
//!
//! A transport is a [`Duplex`]: a [`Source`] of whole messages and a [`Sink`] for them.
//!
//! * [`memory`] joins two ends inside one process;
//! * [`lines`] frames any pair of byte streams, one message per line;
//! * `stdio` is the server's side of a pipe: the standard input and output of this process;
//! * `child` is the client's side of it: a server started as a child process;
//! * `unix` is both sides of a unix socket, whose server is a [`Listener`]: it has many clients.
//!
//! [`fair`] and [`pump`] are what both engines put in front of a sink, so that one request with a lot to say
//! does not keep the others waiting.
//!
//! Nothing here knows JSON-RPC: what a message means is the business of the layers above.
//!
//! ```
//! use bytes::Bytes;
//! use toolwire_transport::{Duplex, Sink, Source, memory};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let (client, server) = memory::pair();
//! let (_, mut sink) = client.split();
//! let (mut source, _) = server.split();
//!
//! sink.send(Bytes::from_static(b"{}")).await?;
//! sink.flush().await?;
//! assert_eq!(source.receive().await.unwrap().unwrap(), "{}");
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "child")]
pub mod child;
pub mod duplex;
#[doc(hidden)]
pub mod fair;
#[doc(hidden)]
pub mod internal;
#[doc(hidden)]
pub mod ledger;
#[doc(hidden)]
pub mod lines;
pub mod listener;
pub mod memory;
#[doc(hidden)]
pub mod pump;
#[cfg(feature = "stdio")]
pub mod stdio;
#[cfg(all(unix, feature = "unix"))]
pub mod unix;

mod buffer_charge;
mod lock;
mod quick_hash;

pub use duplex::{BoxFuture, Diagnostics, Duplex, LocalPeer, ReceiveError, Sink, Source};
#[doc(hidden)]
pub use fair::{FairQueue, Lane};
#[doc(hidden)]
pub use ledger::Ledger;
pub use listener::Listener;
#[doc(hidden)]
pub use pump::write_loop;

#[cfg(feature = "child")]
pub use child::{Child, ChildHandle, ChildProcess, ExitReport};
#[cfg(feature = "stdio")]
pub use stdio::{Stdio, stdio};
#[cfg(all(unix, feature = "unix"))]
pub use unix::{UnixError, UnixListener, UnixSocket};
