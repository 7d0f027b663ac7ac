//! What the official conformance suite is run against: a server and a client made with Toolwire's public API.
//!
//! Both are thin. What a scenario tests is done by the SDK; here stands only what an application would say: the
//! tools and their texts, the questions, the calls. `conformance-server` and `conformance-client` start them,
//! and `cargo xtask conformance` runs the suite.

pub mod client;
pub mod server;
pub mod skills;
