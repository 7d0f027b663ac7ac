//! What goes wrong in a handler, and who hears of it.

use std::{borrow::Cow, error::Error, fmt};

use toolwire_protocol::{ErrorCode, RpcError};

use crate::{ask::AskError, layer::BoxError};

/// How a handler fails on purpose.
///
/// Any error type may be returned from a handler (`Box<dyn Error>`, `anyhow::Error`, a `String`); it is
/// then *said*: the model reads its text in an `isError` result and can try again. `ToolError` is for those
/// who want to choose.
///
/// ```
/// use toolwire_server::ToolError;
///
/// async fn divide(a: f64, b: f64) -> Result<String, ToolError> {
///     if b == 0.0 {
///         return Err(ToolError::said("cannot divide by zero; choose another b"));
///     }
///     Ok((a / b).to_string())
/// }
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ToolError {
    /// The model is told, as the result of the call.
    Said(Cow<'static, str>),
    /// The request fails with a JSON-RPC error. The model usually does not see it.
    Fault(RpcError),
}

impl ToolError {
    /// The model is told this.
    pub fn said(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Said(text.into())
    }

    /// The request fails with this code and message.
    pub fn fault(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::Fault(RpcError::new(code, message))
    }

    /// Finds the intent in any error: a fault stays a fault, everything else is said.
    pub(crate) fn from_any(error: BoxError) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(error) => return *error,
            Err(error) => error,
        };
        let error = match error.downcast::<AskError>() {
            Ok(error) => return (*error).into(),
            Err(error) => error,
        };
        match error.downcast::<RpcError>() {
            Ok(error) => Self::Fault(*error),
            Err(error) => Self::Said(with_sources(&*error).into()),
        }
    }
}

/// One level of an error's text is often not enough to act upon.
fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text
}

impl From<RpcError> for ToolError {
    fn from(error: RpcError) -> Self {
        Self::Fault(error)
    }
}

impl From<AskError> for ToolError {
    fn from(error: AskError) -> Self {
        error.fault().map_or_else(|| Self::Said(error.to_string().into()), Self::Fault)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(text) => f.write_str(text),
            Self::Fault(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for ToolError {}

/// A resource that does not exist. Return it from a resource handler; the caller hears which URI it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a unit: there is nothing to add")]
pub struct NotFound;

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("resource not found")
    }
}

impl Error for NotFound {}

/// What a failed prompt or resource handler answers: its own error, or its text as an internal error.
pub(super) fn rpc_error(error: BoxError) -> RpcError {
    let error = match error.downcast::<AskError>() {
        Ok(error) => return error.rpc_error(),
        Err(error) => error,
    };
    match ToolError::from_any(error) {
        ToolError::Fault(error) => error,
        ToolError::Said(text) => RpcError::internal(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intent_survives_boxing() {
        let fault = RpcError::invalid_params("x");
        assert_eq!(ToolError::from_any(fault.clone().into()), ToolError::Fault(fault));
        assert_eq!(ToolError::from_any(ToolError::said("y").into()), ToolError::said("y"));
        assert_eq!(ToolError::from_any("z".into()), ToolError::said("z"));
        let parse = "a".parse::<u8>().unwrap_err();
        assert_eq!(ToolError::from_any(parse.into()), ToolError::said("invalid digit found in string"));
    }
}
