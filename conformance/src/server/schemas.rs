//! Tools whose input schema is what is tested.

use serde_json::Value;
use toolwire::{Args, Group, json, routes, tool};

pub(super) fn routes() -> Group {
    let composed = tool("json_schema_2020_12_tool", json_schema_2020_12)
        .description("Has an input schema that uses much of JSON Schema 2020-12.")
        .input_schema(composed_schema());
    Group::new().tool(composed).routes(routes![test_custom_header])
}

async fn json_schema_2020_12(Args(arguments): Args<Value>) -> String {
    format!("Called with {arguments}.")
}

/// Returns its argument, which clients send in a header as well.
#[tool]
async fn test_custom_header(
    /// What to return.
    #[schemars(extend("x-mcp-header" = "Value"))]
    value: String,
) -> String {
    value
}

fn composed_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}
