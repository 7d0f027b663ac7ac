//! What a tool returned.

use serde::{
    Deserialize,
    de::{DeserializeOwned, Error as _},
};
use serde_json::Value;
use toolwire_protocol::{
    Method, RawJson,
    wire::{CallToolResult, Content},
};

use crate::error::{Delivery, Error, ErrorKind};

/// What a tool returned: content for the model, data for programs, or the message of a failure.
///
/// A tool that fails is not an `Err`, because a model is meant to read what went wrong. Whoever wants it as one
/// calls [`into_result`](Self::into_result); [`json`](Self::json) does so by itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "CallToolResult")]
pub struct CallOutcome {
    result: CallToolResult,
    /// True if the tool's output schema says that the structured content is put behind a member `result`.
    wrapped: bool,
}

/// Compares the results, and not what this client knows of their tools.
impl PartialEq for CallOutcome {
    fn eq(&self, other: &Self) -> bool {
        self.result == other.result
    }
}

impl From<CallToolResult> for CallOutcome {
    fn from(result: CallToolResult) -> Self {
        Self { result, wrapped: false }
    }
}

impl CallOutcome {
    /// All text blocks, one per line.
    pub fn text(&self) -> String {
        let mut texts = self.content().iter().filter_map(Content::as_text);
        let first = texts.next().unwrap_or_default().to_owned();
        texts.fold(first, |all, text| all + "\n" + text)
    }

    /// The content for the model.
    pub fn content(&self) -> &[Content] {
        &self.result.content
    }

    /// The structured content, if the tool returned any.
    pub const fn structured(&self) -> Option<&RawJson> {
        self.result.structured_content.as_ref()
    }

    /// Whether the tool failed.
    pub fn is_error(&self) -> bool {
        self.result.is_error.unwrap_or(false)
    }

    /// Decodes the structured content, or else the text as JSON.
    ///
    /// Before 2026-07-28, structured content is always an object, so servers put other values behind a member `result`.
    /// That wrapper is taken off again where the tool's output schema marks it and this client has read it in a list of
    /// tools, and where `T` fits only what is inside. So a type that fits the wrapper as well, such as `Value` or a map,
    /// gets the wrapper until the tools have been listed.
    ///
    /// # Errors
    /// When the tool failed, or what it returned does not fit `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        if self.is_error() {
            return Err(self.failure());
        }
        let decoded = match self.structured() {
            Some(structured) if self.is_wrapped() => inside(structured).or_else(|_| structured.decode()),
            Some(structured) => structured.decode().or_else(|error| inside(structured).map_err(|_| error)),
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
        &self.result
    }

    /// The result as it came.
    pub fn into_inner(self) -> CallToolResult {
        self.result
    }

    /// Says that the output schema of the tool marks the structured content as wrapped.
    pub(crate) const fn mark_wrapped(&mut self) {
        self.wrapped = true;
    }

    /// Returns whether the structured content is known to be wrapped: by the output schema, or as FastMCP says it with the result.
    fn is_wrapped(&self) -> bool {
        let said = self.result.meta.as_ref().and_then(|meta| meta.get("fastmcp"));
        self.wrapped || said.and_then(|said| said.get("wrap_result")) == Some(&Value::Bool(true))
    }

    fn failure(&self) -> Error {
        let text = self.text();
        let text =
            if text.is_empty() { format!("{} failed without a message", Method::CallTool) } else { text };
        Error::new(ErrorKind::Tool, Delivery::Rejected, text)
    }
}

/// Decodes the only member of an object, `result`.
fn inside<T: DeserializeOwned>(structured: &RawJson) -> serde_json::Result<T> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, bound = "T: DeserializeOwned")]
    struct Wrapped<T> {
        result: T,
    }

    // A list would do for a struct as well.
    if !structured.is_object() {
        return Err(serde_json::Error::custom("not an object"));
    }
    structured.decode().map(|wrapped: Wrapped<T>| wrapped.result)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

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
    fn a_wrapper_is_taken_off_for_types_that_fit_only_what_is_inside() {
        let wrapped = outcome(json!({"content": [], "structuredContent": {"result": [1, 2]}}));
        assert_eq!(wrapped.json::<Vec<u8>>().unwrap(), [1, 2]);
        let error = wrapped.json::<u8>().unwrap_err();
        assert!(std::error::Error::source(&error).unwrap().to_string().contains("map"), "{error:?}");
        assert_eq!(wrapped.json::<Value>().unwrap(), json!({"result": [1, 2]}));
        assert_eq!(wrapped.json::<BTreeMap<String, Vec<u8>>>().unwrap()["result"], [1, 2]);
        for other in [json!({"result": 7, "more": 1}), json!([7]), json!({"results": 7})] {
            let outcome = outcome(json!({"content": [], "structuredContent": other}));
            assert!(outcome.json::<u8>().is_err(), "{other}");
        }
    }

    #[test]
    fn a_marked_wrapper_is_taken_off_for_every_type_but_that_of_the_wrapper() {
        #[derive(Debug, Deserialize, PartialEq)]
        struct Own {
            result: Vec<u8>,
        }

        let structured = json!({"result": [1, 2]});
        let meta = json!({"fastmcp": {"wrap_result": true}});
        let by_result = outcome(json!({"content": [], "structuredContent": structured, "_meta": meta}));
        let mut by_schema = outcome(json!({"content": [], "structuredContent": structured}));
        let unmarked = by_schema.clone();
        by_schema.mark_wrapped();
        assert_eq!(by_schema, unmarked, "equal results are equal before and after the tools were listed");
        for wrapped in [by_result, by_schema] {
            assert_eq!(wrapped.json::<Value>().unwrap(), json!([1, 2]));
            assert_eq!(wrapped.json::<Vec<u8>>().unwrap(), [1, 2]);
            assert_eq!(wrapped.json::<Own>().unwrap(), Own { result: vec![1, 2] });
        }
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
