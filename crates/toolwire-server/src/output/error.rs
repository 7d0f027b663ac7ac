//! What goes wrong in a handler, and who hears of it.

use std::{borrow::Cow, error::Error, fmt, sync::Arc};

use toolwire_protocol::{ErrorCode, RpcError};

use crate::{ask::AskError, layer::BoxError};

/// How a handler fails on purpose.
///
/// Any error type may be returned from a handler (`Box<dyn Error>`, `anyhow::Error`, a `String`): the model reads its
/// message in an `isError` result and can try again, and its sources are logged. `ToolError` is for those who want to
/// choose.
///
/// ```
/// use toolwire_server::ToolError;
///
/// async fn divide(a: f64, b: f64) -> Result<String, ToolError> {
///     if b == 0.0 {
///         return Err(ToolError::message("cannot divide by zero; choose another b"));
///     }
///     Ok((a / b).to_string())
/// }
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ToolError {
    /// The model is told, as the result of the call.
    Message(Cow<'static, str>),
    /// The request fails with a JSON-RPC error. The model usually does not see it.
    Rpc(RpcError),
}

impl ToolError {
    /// The model is told this.
    pub fn message(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Message(text.into())
    }

    /// The request fails with this code and message.
    pub fn rpc(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::Rpc(RpcError::new(code, message))
    }
}

/// What a handler returned as its error. What is told of it is decided by the server, not by the type.
#[derive(Clone, Debug)]
pub struct Failure(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// The handler chose what to say.
    Chosen(ToolError),
    /// The user was asked and did not answer.
    Asked(AskError),
    /// It did not, and whatever this says was written for somebody else.
    Any(Arc<dyn Error + Send + Sync>),
}

impl Failure {
    pub(crate) fn new(error: BoxError) -> Self {
        let error = match error.downcast::<ToolError>() {
            Ok(error) => return Self(Kind::Chosen(*error)),
            Err(error) => error,
        };
        let error = match error.downcast::<AskError>() {
            Ok(error) => return Self(Kind::Asked(*error)),
            Err(error) => error,
        };
        Self(match error.downcast::<RpcError>() {
            Ok(error) => Kind::Chosen(ToolError::Rpc(*error)),
            Err(error) => Kind::Any(error.into()),
        })
    }

    /// What the caller of `what` is told. The rest is logged.
    pub(crate) fn told(self, telling: Telling, what: &dyn fmt::Display) -> ToolError {
        let error = match self.0 {
            Kind::Chosen(error) => return error,
            Kind::Asked(error) => return error.into(),
            Kind::Any(error) => error,
        };
        let sources = sources(&*error);
        match telling {
            Telling::Masked => {
                let reference = reference();
                tracing::error!(%what, %error, sources, reference, "a handler failed");
                ToolError::Message(format!("{what} failed (reference {reference})").into())
            }
            Telling::Message => {
                if !sources.is_empty() {
                    tracing::warn!(%what, %error, sources, "a handler failed");
                }
                ToolError::Message(error.to_string().into())
            }
            Telling::Sources if sources.is_empty() => ToolError::Message(error.to_string().into()),
            Telling::Sources => ToolError::Message(format!("{error}: {sources}").into()),
        }
    }

    /// The same for everything but tools: its own error, or its text as an internal error.
    pub(crate) fn rpc_error(self, telling: Telling, what: &dyn fmt::Display) -> RpcError {
        if let Kind::Asked(error) = self.0 {
            return error.rpc_error();
        }
        match self.told(telling, what) {
            ToolError::Rpc(error) => error,
            ToolError::Message(text) => RpcError::internal(text),
        }
    }
}

/// How much of an error that a handler did not choose reaches the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Telling {
    /// Nothing but a reference to the log.
    Masked,
    /// Its own message.
    #[default]
    Message,
    /// Its message, and those of the errors behind it.
    Sources,
}

/// What stands behind an error, from the outside in, without what has been said already.
fn sources(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut text = String::new();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !said.contains(&inner_text) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&inner_text);
            said.push_str(&inner_text);
        }
        source = inner.source();
    }
    text
}

/// Six hexadecimal digits by which a line of the log is found.
fn reference() -> String {
    let mut bytes = [0; 3];
    // Without randomness the line is still found by its time.
    let _ = getrandom::fill(&mut bytes);
    let [a, b, c] = bytes;
    format!("{a:02x}{b:02x}{c:02x}")
}

impl From<RpcError> for ToolError {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

impl From<AskError> for ToolError {
    fn from(error: AskError) -> Self {
        error.fault().map_or_else(|| Self::Message(error.to_string().into()), Self::Rpc)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(text) => f.write_str(text),
            Self::Rpc(error) => error.fmt(f),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An error with two others behind it.
    #[derive(Debug)]
    struct Layered(&'static str, Option<Box<Self>>);

    impl fmt::Display for Layered {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Layered {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|inner| inner as _)
        }
    }

    fn layered() -> Failure {
        let password = Layered("password of admin: hunter2", None);
        let connection = Layered("cannot reach 10.0.0.7", Some(Box::new(password)));
        Failure::new(Layered("the search failed", Some(Box::new(connection))).into())
    }

    #[test]
    fn intent_survives_boxing() {
        let told = |error: BoxError| Failure::new(error).told(Telling::Message, &"tool");
        let fault = RpcError::invalid_params("x");
        assert_eq!(told(fault.clone().into()), ToolError::Rpc(fault));
        assert_eq!(told(ToolError::message("y").into()), ToolError::message("y"));
        assert_eq!(told("z".into()), ToolError::message("z"));
        let parse = "a".parse::<u8>().unwrap_err();
        assert_eq!(told(parse.into()), ToolError::message("invalid digit found in string"));
    }

    #[test]
    fn what_stands_behind_an_error_is_told_only_to_those_who_ask_for_it() {
        assert_eq!(layered().told(Telling::Message, &"it"), ToolError::message("the search failed"));
        assert_eq!(
            layered().told(Telling::Sources, &"it"),
            ToolError::message("the search failed: cannot reach 10.0.0.7: password of admin: hunter2")
        );
        let rpc = layered().rpc_error(Telling::Message, &"it");
        assert_eq!(rpc, RpcError::internal("the search failed"));
    }

    #[test]
    fn a_masked_error_says_where_to_look() {
        let ToolError::Message(text) = layered().told(Telling::Masked, &"tool \"find\"") else {
            panic!("a message")
        };
        let reference =
            text.strip_prefix("tool \"find\" failed (reference ").unwrap().strip_suffix(')').unwrap();
        assert!(reference.len() == 6 && reference.bytes().all(|byte| byte.is_ascii_hexdigit()), "{text}");
        // What a handler chose to say is still said.
        let chosen = Failure::new(ToolError::message("no such book").into());
        assert_eq!(chosen.told(Telling::Masked, &"it"), ToolError::message("no such book"));
    }
}
