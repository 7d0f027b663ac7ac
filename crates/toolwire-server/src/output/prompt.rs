//! What a prompt may return.

use toolwire_protocol::{
    RpcError,
    wire::{Content, GetPromptResult, PromptMessage, Role},
};

use super::Failure;
use crate::{Reply, layer::BoxError};

/// A return type of a prompt.
#[diagnostic::on_unimplemented(
    message = "a prompt cannot return `{Self}`",
    label = "not a prompt output",
    note = "return a `String` (one user message), a `PromptMessage`, a `Vec<PromptMessage>`, a `GetPromptResult`, or a `Result` of one of them with any error"
)]
pub trait IntoPrompt {
    /// Makes the messages, or the error that the request fails with.
    fn into_prompt(self) -> Result<Reply, RpcError>;
}

impl IntoPrompt for Reply {
    fn into_prompt(self) -> Result<Reply, RpcError> {
        Ok(self)
    }
}

impl IntoPrompt for GetPromptResult {
    fn into_prompt(self) -> Result<Reply, RpcError> {
        Ok(Reply::GetPrompt(self))
    }
}

impl IntoPrompt for Vec<PromptMessage> {
    fn into_prompt(self) -> Result<Reply, RpcError> {
        GetPromptResult::new(self).into_prompt()
    }
}

impl IntoPrompt for PromptMessage {
    fn into_prompt(self) -> Result<Reply, RpcError> {
        vec![self].into_prompt()
    }
}

impl IntoPrompt for Content {
    fn into_prompt(self) -> Result<Reply, RpcError> {
        PromptMessage::new(Role::User, self).into_prompt()
    }
}

impl IntoPrompt for String {
    fn into_prompt(self) -> Result<Reply, RpcError> {
        Content::text(self).into_prompt()
    }
}

impl IntoPrompt for &'static str {
    fn into_prompt(self) -> Result<Reply, RpcError> {
        Content::text(self).into_prompt()
    }
}

impl<T: IntoPrompt, E: Into<BoxError>> IntoPrompt for Result<T, E> {
    fn into_prompt(self) -> Result<Reply, RpcError> {
        match self {
            Ok(output) => output.into_prompt(),
            Err(error) => Ok(Reply::Failed(Failure::new(error.into()))),
        }
    }
}
