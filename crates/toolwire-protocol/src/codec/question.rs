//! Questions of a server to its client, as each revision can put them.

use crate::{
    Feature, Version,
    wire::{
        ElicitRequestParams, InputRequest, LegacyTitledEnumSchema, PrimitiveSchemaDefinition, RequestedSchema,
    },
};

/// The question as a legacy client of `version` understands it; `None` when it has no form there.
pub fn adapt_question(version: Version, question: InputRequest) -> Option<InputRequest> {
    match question {
        InputRequest::Elicit(ElicitRequestParams::Form(mut form)) if version.has(Feature::Elicitation) => {
            // Modes, and forms with a choice of several, came together.
            if !version.has(Feature::UrlElicitation) {
                form.mode = None;
                form.requested_schema = adapt_form(form.requested_schema)?;
            }
            Some(form.into())
        }
        InputRequest::Elicit(ElicitRequestParams::Url(url)) if version.has(Feature::UrlElicitation) => {
            Some(url.into())
        }
        InputRequest::Elicit(_) => None,
        InputRequest::CreateMessage(params) => {
            let tools = params.tools.is_some() || params.tool_choice.is_some();
            (version.has(Feature::SamplingWithTools) || !tools).then_some(InputRequest::CreateMessage(params))
        }
        roots @ InputRequest::ListRoots(_) => Some(roots),
    }
}

/// 2025-06-18 has titles for the words of a choice only as a second list, and no choice of several.
fn adapt_form(mut form: RequestedSchema) -> Option<RequestedSchema> {
    let mut fields = Vec::new();
    for (name, field) in std::mem::take(&mut form.properties) {
        let field = match field {
            PrimitiveSchemaDefinition::TitledSingleSelect(choice) => {
                let (words, titles): (Vec<_>, Vec<_>) =
                    choice.one_of.into_iter().map(|option| (option.value, option.title)).unzip();
                let mut legacy = LegacyTitledEnumSchema::new(words).enum_names(titles);
                legacy.title = choice.title;
                legacy.description = choice.description;
                legacy.default = choice.default;
                legacy.into()
            }
            PrimitiveSchemaDefinition::UntitledMultiSelect(_)
            | PrimitiveSchemaDefinition::TitledMultiSelect(_) => {
                return None;
            }
            other => other,
        };
        fields.push((name, field));
    }
    form.properties = fields.into_iter().collect();
    Some(form)
}

#[cfg(test)]
mod tests {
    use Version::{V2025_06_18, V2025_11_25};
    use serde_json::{Value, json};

    use super::*;

    fn question(schema: &Value) -> InputRequest {
        let params = json!({"mode": "form", "message": "m", "requestedSchema": schema});
        serde_json::from_value(json!({"method": "elicitation/create", "params": params})).unwrap()
    }

    fn adapt(version: Version, question: &InputRequest) -> Option<Value> {
        adapt_question(version, question.clone()).map(|question| serde_json::to_value(question).unwrap())
    }

    #[test]
    fn forms_in_each_revision() {
        let titled = question(&json!({"type": "object", "properties": {
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]}
        }}));
        assert_eq!(adapt(Version::V2024_11_05, &titled), None);
        assert_eq!(adapt(Version::V2025_03_26, &titled), None);
        let old = adapt(V2025_06_18, &titled).unwrap();
        assert_eq!(old["params"].get("mode"), None);
        assert_eq!(
            old["params"]["requestedSchema"]["properties"]["size"],
            json!({"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]})
        );
        let new = adapt(V2025_11_25, &titled).unwrap();
        assert_eq!(new["params"]["mode"], "form");
        assert!(new["params"]["requestedSchema"]["properties"]["size"]["oneOf"].is_array());
    }

    #[test]
    fn what_has_no_old_form_is_not_asked() {
        let several = question(&json!({"type": "object", "properties": {
            "sizes": {"type": "array", "items": {"type": "string", "enum": ["s", "l"]}}
        }}));
        assert_eq!(adapt(V2025_06_18, &several), None);
        assert!(adapt(V2025_11_25, &several).is_some());
        let url: InputRequest = serde_json::from_value(json!({
            "method": "elicitation/create", "params": {"mode": "url", "message": "m", "url": "https://example.com"}
        }))
        .unwrap();
        assert_eq!(adapt(V2025_06_18, &url), None);
        assert!(adapt(V2025_11_25, &url).is_some());
        let tools: InputRequest = serde_json::from_value(json!({
            "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1, "toolChoice": {"mode": "auto"}}
        }))
        .unwrap();
        assert_eq!(adapt(V2025_06_18, &tools), None);
        assert!(adapt(V2025_11_25, &tools).is_some());
        let roots = InputRequest::ListRoots(None);
        assert!(Version::ALL.iter().all(|version| adapt(*version, &roots).is_some()));
    }
}
