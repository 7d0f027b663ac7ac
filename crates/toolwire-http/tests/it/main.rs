//! The endpoint over real sockets, with a client that hides nothing.

#![expect(clippy::unwrap_used, reason = "tests")]

mod axum_router;
mod bare;
mod cors;
mod edge;
mod fixture;
mod hostile;
mod http2;
mod limits;
mod listen;
mod modern;
mod serving;
