//! What a peer may send, and what it may cost.
//!
//! Each target is a function of bytes here, and a program of three lines in `fuzz_targets/`. A target fails by a panic,
//! by taking more time of the processor than its input is worth, and by the limits of libFuzzer on time and memory that
//! `cargo xtask fuzz` sets.

mod auth;
mod cost;
mod framing;
mod headers;
mod http;
mod json;
mod schema;
mod session;
mod state;
mod uri;

pub use self::{
    auth::{challenge, oauth_metadata},
    framing::{ndjson, sse},
    headers::header_plan,
    http::{http1_bytes, http2_bytes},
    json::{envelope, scan_vs_value},
    schema::{schema_compile, schema_validate},
    session::session_operations,
    state::request_state,
    uri::uri_template,
};
