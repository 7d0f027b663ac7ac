//! The JSON-RPC 2.0 envelope: one pass over the bytes finds the id, the method and where the rest is.
//!
//! `params` and `result` stay raw: they are slices of the bytes that came in, decoded by whoever needs
//! them. Nothing here knows revisions or what a method means.

mod fault;
mod outline;
mod parse;
mod write;

use std::fmt;

use bytes::Bytes;
use serde::de::{DeserializeOwned, Error as _};

use crate::{MethodName, RequestId, RpcError, peek::Peek};

pub use fault::{EnvelopeFault, FaultKind};
pub use outline::{Outline, OutlineKind, OutlineReader};
pub use parse::parse_batch;
pub(crate) use parse::text;
pub use write::{write_error, write_notification, write_request, write_response};

/// One JSON-RPC message.
///
/// ```
/// use toolwire_protocol::{Message, Method};
///
/// let bytes = br#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"x"}}"#;
/// let Ok(Message::Request(request)) = Message::parse(&bytes[..].into()) else { panic!() };
/// assert_eq!(request.method.known(), Some(Method::ListTools));
/// assert_eq!(request.params.text(), r#"{"cursor":"x"}"#);
/// ```
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has these three")]
pub enum Message {
    /// Expects an answer.
    Request(Request),
    /// Expects none.
    Notification(Notification),
    /// An answer.
    Response(Response),
}

/// A call that expects an answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// Echoed by the answer, in the same JSON type.
    pub id: RequestId,
    /// What is asked for.
    pub method: MethodName,
    /// Its parameters, not yet decoded.
    pub params: Params,
}

/// A message that expects no answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notification {
    /// What happened.
    pub method: MethodName,
    /// Its parameters, not yet decoded.
    pub params: Params,
}

/// The answer to a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Response {
    /// The request's id; an error about an unreadable request has none.
    pub id: Option<RequestId>,
    /// The result, not yet decoded, or the error.
    pub outcome: Result<Params, RpcError>,
}

impl Message {
    /// Parses one message.
    ///
    /// # Errors
    /// [`EnvelopeFault`] says what is wrong, and carries the id where one could be read.
    pub fn parse(bytes: &Bytes) -> Result<Self, EnvelopeFault> {
        parse::parse(bytes, None)
    }

    /// Parses one message and looks at its parameters in the same pass, as [`Peek::of`] does.
    ///
    /// What it has seen is boxed, because it moves through many futures, and each of them would have room for it twice.
    ///
    /// # Errors
    /// [`EnvelopeFault`] says what is wrong, and carries the id where one could be read.
    pub fn parse_and_peek(bytes: &Bytes) -> Result<(Self, Box<Peek>), EnvelopeFault> {
        let mut peek = Box::<Peek>::default();
        parse::parse(bytes, Some(&mut peek)).map(|message| (message, peek))
    }
}

impl Request {
    /// A request built from its parts.
    pub fn new(id: impl Into<RequestId>, method: impl Into<MethodName>, params: Params) -> Self {
        Self { id: id.into(), method: method.into(), params }
    }
}

impl Notification {
    /// A notification built from its parts.
    pub fn new(method: impl Into<MethodName>, params: Params) -> Self {
        Self { method: method.into(), params }
    }
}

/// The raw JSON of `params` or `result`: a cheap slice of the message's bytes.
///
/// Absent parameters read as the empty object, which is what every method takes them for.
#[derive(Clone, Default)]
pub struct Params(Option<Bytes>);

impl Params {
    /// No parameters.
    pub const NONE: Self = Self(None);

    /// Takes bytes that are known to be one JSON value.
    pub(crate) const fn trusted(bytes: Bytes) -> Self {
        Self(Some(bytes))
    }

    /// Serialises `value`.
    pub fn of<T: serde::Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        serde_json::to_vec(value).map(|bytes| Self(Some(bytes.into())))
    }

    /// Whether there were any.
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// The raw bytes, if there were any.
    pub const fn bytes(&self) -> Option<&Bytes> {
        self.0.as_ref()
    }

    /// The JSON text; `{}` if there were none.
    pub fn text(&self) -> &str {
        // The bytes were part of a message that parsed as JSON, so they are UTF-8.
        self.0.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("{}")
    }

    /// The same text as a value that can be written into other messages; `{}` if there were none.
    ///
    /// # Errors
    /// None that can be met: what is here has been read as JSON before.
    pub fn raw(&self) -> serde_json::Result<crate::RawJson> {
        crate::RawJson::assembled(self.text().to_owned())
    }

    /// Decodes into `T`.
    pub fn decode<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        let Some(bytes) = &self.0 else { return serde_json::from_str("{}") };
        // From text, although most types are read from bytes elsewhere: this is the hot path, and from bytes each
        // string in them would be checked for UTF-8 on its own.
        let text = std::str::from_utf8(bytes).map_err(serde_json::Error::custom)?;
        serde_json::from_str(text)
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl From<crate::RawJson> for Params {
    fn from(raw: crate::RawJson) -> Self {
        Self(Some(raw.text().to_owned().into()))
    }
}

#[cfg(test)]
mod tests;
