//! Asking the person in front of the client.

use serde::Serialize;
use toolwire_protocol::{
    schema::fill_defaults,
    wire::{ElicitAction, ElicitRequestParams, ElicitResult, RequestedSchema},
};

/// What a server wants to know from the person in front of the client.
#[derive(Clone, Debug)]
pub struct Elicit {
    params: ElicitRequestParams,
}

impl Elicit {
    pub(crate) const fn new(params: ElicitRequestParams) -> Self {
        Self { params }
    }

    /// What to tell the person.
    pub fn message(&self) -> &str {
        self.params.message()
    }

    /// The fields of the form, if it is one.
    pub fn schema(&self) -> Option<&RequestedSchema> {
        match &self.params {
            ElicitRequestParams::Form(form) => Some(&form.requested_schema),
            _ => None,
        }
    }

    /// Where to send the person, if that is what the server wants. Ask before opening it.
    pub fn url(&self) -> Option<&str> {
        match &self.params {
            ElicitRequestParams::Url(visit) => Some(&visit.url),
            _ => None,
        }
    }

    /// The parameters as they came.
    pub const fn params(&self) -> &ElicitRequestParams {
        &self.params
    }
}

/// What the person did.
///
/// ```
/// use serde_json::json;
/// use toolwire_client::ElicitReply;
///
/// let filled_in = ElicitReply::accept(json!({ "name": "Ada" }));
/// let as_suggested = ElicitReply::accept_defaults();
/// # let _ = (filled_in, as_suggested);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ElicitReply(ElicitResult);

impl ElicitReply {
    /// They filled in the form with these values. Fields that are missing get their defaults.
    ///
    /// What does not serialise to an object counts as [`cancel`](Self::cancel), with a warning in the log.
    pub fn accept(content: impl Serialize) -> Self {
        match serde_json::to_value(content) {
            Ok(serde_json::Value::Object(content)) => Self(ElicitResult::accept(content)),
            Ok(serde_json::Value::Null) => Self::accept_defaults(),
            _ => {
                tracing::warn!("the values of a form must be a JSON object; the answer is \"cancel\"");
                Self::cancel()
            }
        }
    }

    /// They agreed, and changed nothing: all fields get their defaults. Also for visiting a URL.
    pub fn accept_defaults() -> Self {
        Self(ElicitResult::new(ElicitAction::Accept))
    }

    /// They said no.
    pub fn decline() -> Self {
        Self(ElicitResult::decline())
    }

    /// They went away without an answer.
    pub fn cancel() -> Self {
        Self(ElicitResult::cancel())
    }

    /// The result for a server that sent this `schema`.
    pub(crate) fn complete(self, schema: Option<&RequestedSchema>) -> ElicitResult {
        let mut result = self.0;
        match (result.action, schema) {
            (ElicitAction::Accept, Some(schema)) => {
                let content = result.content.get_or_insert_default();
                if let Ok(schema) = serde_json::to_value(schema) {
                    fill_defaults(&schema, content);
                }
            }
            // Only a form that was accepted has content.
            _ => result.content = None,
        }
        result
    }
}

impl From<ElicitResult> for ElicitReply {
    fn from(result: ElicitResult) -> Self {
        Self(result)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> RequestedSchema {
        serde_json::from_value(json!({"type": "object", "properties": {
            "name": {"type": "string", "default": "Ada"},
            "age": {"type": "integer", "default": 36},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["a"]},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "S"}], "default": "s"},
            "sure": {"type": "boolean", "default": false},
            "note": {"type": "string"},
        }}))
        .unwrap()
    }

    #[test]
    fn what_is_missing_gets_its_default() {
        let all = ElicitReply::accept_defaults().complete(Some(&schema()));
        let expected = json!({"name": "Ada", "age": 36, "tags": ["a"], "size": "s", "sure": false});
        assert_eq!(json!(all.content), expected);
        let some = ElicitReply::accept(json!({"name": "Bob", "sure": true})).complete(Some(&schema()));
        let expected = json!({"name": "Bob", "age": 36, "tags": ["a"], "size": "s", "sure": true});
        assert_eq!(json!(some.content), expected);
    }

    #[test]
    fn only_an_accepted_form_has_content() {
        assert_eq!(ElicitReply::decline().complete(Some(&schema())).content, None);
        assert_eq!(ElicitReply::cancel().complete(Some(&schema())).content, None);
        assert_eq!(ElicitReply::accept(json!({"x": 1})).complete(None).content, None);
        assert_eq!(ElicitReply::accept(3), ElicitReply::cancel());
    }
}
