//! What a handler may return, and how it becomes a result.

mod error;
mod prompt;
mod resource;
mod tool;

pub(crate) use error::Telling;
pub use error::{Failure, NotFound, ToolError};
pub use prompt::IntoPrompt;
pub(crate) use resource::not_found;
pub use resource::{IntoResource, ResourceInfo};
pub use tool::{IntoToolOutput, Json};
