//! What a tool may return.

use schemars::JsonSchema;
use serde::Serialize;
use toolwire_protocol::{
    RawJson, RpcError,
    wire::{CallToolResult, Content},
};

use super::{Failure, ToolError};
use crate::{Reply, handler::HandlerSpec, layer::BoxError};

/// A return type of a tool.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not a tool output",
    note = "return a `String`, `Content`, `Vec<Content>`, `Json<T>` for structured content, a `CallToolResult`, `()`, or a `Result` of one of them with any error"
)]
pub trait IntoToolOutput {
    /// Makes the result, or the error that the request fails with.
    fn into_tool_output(self) -> Result<Reply, RpcError>;

    /// Tells registration about the output's schema.
    fn describe(spec: &mut HandlerSpec) {
        let _ = spec;
    }
}

/// Structured content: `T` as JSON, with the same JSON as text for clients that read only text.
///
/// `T`'s schema becomes the tool's output schema. `T` may be anything, also a number or a list.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Serialize;
/// use toolwire_server::{Json, tool};
///
/// #[derive(Serialize, JsonSchema)]
/// struct Weather { celsius: f64 }
///
/// let route = tool("weather", || async { Json(Weather { celsius: 21.5 }) });
/// ```
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper to be built in return position")]
pub struct Json<T>(pub T);

impl<T: Serialize + JsonSchema + 'static> IntoToolOutput for Json<T> {
    fn into_tool_output(self) -> Result<Reply, RpcError> {
        let raw = RawJson::of(&self.0).map_err(|error| {
            tracing::error!(%error, "a tool's output could not be serialised");
            RpcError::internal("the tool's output could not be serialised")
        })?;
        let mut result = CallToolResult::new(vec![Content::text(raw.text())]);
        result.structured_content = Some(raw);
        Ok(Reply::CallTool(result))
    }

    fn describe(spec: &mut HandlerSpec) {
        spec.returns::<T>();
    }
}

impl IntoToolOutput for Reply {
    fn into_tool_output(self) -> Result<Reply, RpcError> {
        Ok(self)
    }
}

impl IntoToolOutput for CallToolResult {
    fn into_tool_output(self) -> Result<Reply, RpcError> {
        Ok(Reply::CallTool(self))
    }
}

impl IntoToolOutput for Vec<Content> {
    fn into_tool_output(self) -> Result<Reply, RpcError> {
        CallToolResult::new(self).into_tool_output()
    }
}

impl IntoToolOutput for Content {
    fn into_tool_output(self) -> Result<Reply, RpcError> {
        vec![self].into_tool_output()
    }
}

impl IntoToolOutput for String {
    fn into_tool_output(self) -> Result<Reply, RpcError> {
        Content::text(self).into_tool_output()
    }
}

impl IntoToolOutput for &'static str {
    fn into_tool_output(self) -> Result<Reply, RpcError> {
        Content::text(self).into_tool_output()
    }
}

impl IntoToolOutput for () {
    fn into_tool_output(self) -> Result<Reply, RpcError> {
        Vec::<Content>::new().into_tool_output()
    }
}

impl IntoToolOutput for ToolError {
    fn into_tool_output(self) -> Result<Reply, RpcError> {
        match self {
            Self::Message(text) => CallToolResult::error(text).into_tool_output(),
            Self::Rpc(error) => Err(error),
        }
    }
}

impl<T: IntoToolOutput, E: Into<BoxError>> IntoToolOutput for Result<T, E> {
    fn into_tool_output(self) -> Result<Reply, RpcError> {
        match self {
            Ok(output) => output.into_tool_output(),
            Err(error) => Ok(Reply::Failed(Failure::new(error.into()))),
        }
    }

    fn describe(spec: &mut HandlerSpec) {
        T::describe(spec);
    }
}
