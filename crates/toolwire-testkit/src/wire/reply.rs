//! The answer to a request.

use serde_json::Value;

/// The answer to one request: a result or an error.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Reply {
    message: Value,
}

impl Reply {
    pub(super) fn of(message: Value) -> Self {
        Self { message }
    }

    /// The whole message.
    pub fn message(&self) -> &Value {
        &self.message
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.message.get("error").is_some()
    }

    /// The result.
    ///
    /// # Panics
    /// When it is an error.
    #[track_caller]
    pub fn result(&self) -> &Value {
        match self.message.get("result") {
            Some(result) => result,
            None => panic!("expected a result, found {}", self.message),
        }
    }

    /// The error object.
    ///
    /// # Panics
    /// When it is a result.
    #[track_caller]
    pub fn error(&self) -> &Value {
        match self.message.get("error") {
            Some(error) => error,
            None => panic!("expected an error, found {}", self.message),
        }
    }

    /// The code of the error.
    ///
    /// # Panics
    /// When it is a result.
    #[track_caller]
    pub fn code(&self) -> i64 {
        self.error()["code"].as_i64().unwrap_or_else(|| panic!("an error without a code: {}", self.message))
    }

    /// The message of the error.
    ///
    /// # Panics
    /// When it is a result.
    #[track_caller]
    pub fn error_text(&self) -> &str {
        self.error()["message"].as_str().unwrap_or_default()
    }
}
