//! What a tool returned.

use serde::{Deserialize, de::DeserializeOwned};
use toolwire_protocol::{
    Method, RawJson,
    wire::{CallToolResult, Content},
};

use crate::error::{Delivery, Error, ErrorKind};

/// What a tool returned: content for the model, data for programs, or the message of a failure.
///
/// A tool that fails is not an `Err`, because a model is meant to read what went wrong. Whoever wants it as one
/// calls [`into_result`](Self::into_result); [`json`](Self::json) does so by itself.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct CallOutcome(CallToolResult);

impl CallOutcome {
    /// All text blocks, one per line.
    pub fn text(&self) -> String {
        let mut texts = self.content().iter().filter_map(Content::as_text);
        let first = texts.next().unwrap_or_default().to_owned();
        texts.fold(first, |all, text| all + "\n" + text)
    }

    /// The content for the model.
    pub fn content(&self) -> &[Content] {
        &self.0.content
    }

    /// The structured content, if the tool returned any.
    pub const fn structured(&self) -> Option<&RawJson> {
        self.0.structured_content.as_ref()
    }

    /// Whether the tool failed.
    pub fn is_error(&self) -> bool {
        self.0.is_error.unwrap_or(false)
    }

    /// Decodes the structured content, or else the text as JSON.
    ///
    /// # Errors
    /// When the tool failed, or what it returned does not fit `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        if self.is_error() {
            return Err(self.failure());
        }
        let decoded = match self.structured() {
            Some(structured) => structured.decode(),
            None => serde_json::from_str(&self.text()),
        };
        decoded.map_err(|error| {
            Error::new(ErrorKind::InvalidResponse, Delivery::Rejected, "the tool returned something else")
                .with_source(error)
        })
    }

    /// Makes an error of a tool that failed.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`] with the tool's message.
    pub fn into_result(self) -> Result<Self, Error> {
        if self.is_error() { Err(self.failure()) } else { Ok(self) }
    }

    /// The result as it came.
    pub const fn as_result(&self) -> &CallToolResult {
        &self.0
    }

    /// The result as it came.
    pub fn into_inner(self) -> CallToolResult {
        self.0
    }

    fn failure(&self) -> Error {
        let text = self.text();
        let text =
            if text.is_empty() { format!("{} failed without a message", Method::CallTool) } else { text };
        Error::new(ErrorKind::Tool, Delivery::Rejected, text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn outcome(result: Value) -> CallOutcome {
        serde_json::from_value(result).unwrap()
    }

    #[test]
    fn data_comes_from_the_structure_or_else_from_the_text() {
        let text =
            outcome(json!({"content": [{"type": "text", "text": "[1,"}, {"type": "text", "text": "2]"}]}));
        assert_eq!(text.text(), "[1,\n2]");
        assert_eq!(text.json::<Vec<u8>>().unwrap(), [1, 2]);
        let both = outcome(json!({"content": [{"type": "text", "text": "7"}], "structuredContent": null}));
        assert_eq!(both.json::<Option<u8>>().unwrap(), None);
        assert_eq!(both.json::<u8>().unwrap_err().kind(), ErrorKind::InvalidResponse);
    }

    #[test]
    fn a_failure_is_an_error_only_on_request() {
        let failed = outcome(json!({"content": [{"type": "text", "text": "no such city"}], "isError": true}));
        assert!(failed.is_error());
        assert_eq!(failed.json::<Value>().unwrap_err().kind(), ErrorKind::Tool);
        assert_eq!(failed.into_result().unwrap_err().to_string(), "no such city");
        assert!(outcome(json!({"content": []})).into_result().is_ok());
    }
}
