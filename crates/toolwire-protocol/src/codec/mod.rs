//! Between the neutral model and the wire of one revision.
//!
//! The model is the union of all revisions. On the way out the codec takes away what a revision does not
//! have, replaces what it cannot express, and adds what it demands; nothing above ever asks which revision
//! is spoken. On the way in nothing is needed: the model reads every revision.

mod adapt;
mod question;
mod request;
mod result;

pub use adapt::{Adapt, adapt_error, wrap_output_schema, wrap_structured_content};
pub use question::adapt_question;
pub use request::{RequestEnvelope, RequestMeta};
pub use result::{ResultCodec, WireResult};

#[cfg(test)]
mod tests;
