//! What a deterministic simulation is made of: numbers from a seed, and a network that misbehaves.
//!
//! * [`Random`] gives the same numbers for the same seed;
//! * [`message_link`] joins two ends that carry whole messages, [`byte_link`] two ends that carry bytes;
//! * a [`Plan`] says what goes wrong on the way: delays, stalls, small pieces, wakes for nothing, and a cut at any
//!   poll.
//!
//! Run everything on one thread, with tokio's clock paused, and take every number from one seed: then a run that
//! fails can be repeated. Toolwire's own simulation is in `tests/simulation` of this crate.
//!
//! ```
//! use toolwire_server::Server;
//! use toolwire_testkit::simulation::{Plan, Random, message_link};
//! use toolwire_transport::{Duplex, Sink, Source};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let server = Server::builder("demo", "1.0").build().unwrap();
//! let mut random = Random::new(7);
//! let (ours, theirs, link) = message_link(&mut random, Plan::calm());
//! let serving = tokio::spawn(async move { server.serve(theirs).await });
//! let (mut source, mut sink) = ours.split();
//! sink.send(r#"{"jsonrpc":"2.0","id":1,"method":"nonsense"}"#.into()).await.unwrap();
//! assert!(source.receive().await.unwrap().is_some());
//! link.cut(toolwire_testkit::simulation::Break::Reset);
//! assert!(serving.await.unwrap().is_err());
//! # }
//! ```

mod ends;
mod faults;
mod link;
mod random;

pub use ends::{ByteEnd, MessageEnd, MessageSink, MessageSource, byte_link, message_link};
pub use faults::{Break, Cut, Faults, Plan, Stall};
pub use link::LinkHandle;
pub use random::Random;
