//! Between the neutral model and the wire of one revision.
//!
//! The model is the union of all revisions. On the way out the codec takes away what a revision does not
//! have, replaces what it cannot express, and adds what it demands; nothing above ever asks which revision
//! is spoken. On the way in nothing is needed: the model reads every revision.

mod adapt;
mod question;
mod request;
mod result;
mod task;

pub use adapt::{Adapt, WRAPPED_RESULT, adapt_error, adapt_to_output_schema, wrap_output_schema};
pub use question::adapt_question;
pub use request::{RequestEnvelope, RequestMeta};
pub use result::{ResultCodec, WireResult};
pub use task::{CreatedTask, InVersion, ShownTask, TaskOutcome, TaskState, relate, relate_question};

#[cfg(test)]
mod tests;
