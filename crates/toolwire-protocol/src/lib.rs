//! What the bytes of the Model Context Protocol mean.
//!
//! This crate holds the wire model of all five protocol revisions and every rule that can be written
//! as a pure function or a table. It does no IO, has no clock, no randomness and no runtime.

pub mod caching;
mod canonical;
pub mod classify;
pub mod codec;
mod correlate;
pub mod envelope;
mod error;
mod feature;
pub mod framing;
pub mod headers;
mod id;
mod members;
mod method;
pub mod peek;
pub mod probe;
mod raw;
mod scan;
pub mod schema;
pub mod seal;
pub mod uri_template;
mod version;
pub mod wire;

pub use correlate::Correlator;
pub use envelope::{Message, Notification, Params, Request, Response};
pub use error::{ErrorCode, RpcError};
pub use feature::Feature;
pub use id::{OwnIdHasher, OwnIds, ProgressToken, RequestId};
pub use members::for_each_member;
pub use method::{Kind, Method, MethodInfo, MethodName, NameSource, Sender, ServerCapability};
pub use raw::RawJson;
pub use version::{Era, UnknownVersion, Version};
