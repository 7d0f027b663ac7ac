//! What the bytes of the Model Context Protocol mean.
//!
//! This crate holds the wire model of all five protocol revisions and every rule that can be written
//! as a pure function or a table. It does no IO, has no clock, no randomness and no runtime.
//!
//! What its documentation shows is part of the API: the types of the specification in [`wire`], [`schema`],
//! [`uri_template`], and what is beside them. The rules themselves are for the crates above this one; they are public to
//! those, hidden from the documentation, and may change with any version.

#[doc(hidden)]
pub mod caching;
mod canonical;
#[doc(hidden)]
pub mod classify;
#[doc(hidden)]
pub mod codec;
mod correlate;
#[doc(hidden)]
pub mod envelope;
mod error;
mod feature;
#[doc(hidden)]
pub mod framing;
#[doc(hidden)]
pub mod headers;
mod id;
#[doc(hidden)]
pub mod journal;
mod members;
mod method;
#[doc(hidden)]
pub mod peek;
#[doc(hidden)]
pub mod probe;
mod raw;
mod scan;
pub mod schema;
#[doc(hidden)]
pub mod seal;
#[doc(hidden)]
pub mod time;
pub mod uri_template;
mod version;
pub mod wire;

#[doc(hidden)]
pub use correlate::Correlator;
pub use envelope::{Message, Notification, Params, Request, Response};
pub use error::{ErrorCode, RpcError};
pub use feature::Feature;
#[doc(hidden)]
pub use id::{OwnIdHasher, OwnIds};
pub use id::{ProgressToken, RequestId};
#[doc(hidden)]
pub use members::for_each_member;
#[doc(hidden)]
pub use method::{Kind, MethodInfo, NameSource, Sender};
pub use method::{Method, MethodName, ServerCapability};
pub use raw::RawJson;
pub use version::{Era, UnknownVersion, Version};
