//! One test per cell of the difference tables.

use serde_json::{Value, json};

use super::*;
use crate::{
    ErrorCode, RawJson, RpcError, Version,
    wire::{
        AudioContent, CallToolResult, Content, EmptyResult, Icon, Implementation, InitializeResult,
        InputRequiredResult, ListToolsResult, Meta, ReadResourceResult, ResourceLink, ServerCapabilities,
        ServerTasksCapability, TASKS_EXTENSION, TaskSupport, Tool, ToolAnnotations, ToolExecution,
    },
};

fn codec() -> ResultCodec {
    ResultCodec::new(&Implementation::new("demo", "1.0"))
}

fn write<R: WireResult>(version: Version, result: R) -> Value {
    let mut out = Vec::new();
    codec().write(version, result, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)))
}

fn full_tool() -> Tool {
    let schema = json!({"type": "object"}).as_object().unwrap().clone();
    let number = json!({"type": "number"}).as_object().unwrap().clone();
    Tool::new("t", schema)
        .title("T")
        .output_schema(number)
        .annotations(ToolAnnotations::new().read_only_hint(true))
        .execution(ToolExecution::new().task_support(TaskSupport::Optional))
        .icons(vec![Icon::new("https://example.com/i.png")])
        .meta(Meta::new().with("a", 1))
}

#[test]
fn each_revision_lists_what_it_knows_of_a_tool() {
    let keys = |version: Version| -> Vec<String> {
        let list = write(version, ListToolsResult::new(vec![full_tool()]));
        list["tools"][0].as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(keys(Version::V2024_11_05), ["inputSchema", "name"]);
    assert_eq!(keys(Version::V2025_03_26), ["annotations", "inputSchema", "name"]);
    assert_eq!(
        keys(Version::V2025_06_18),
        ["_meta", "annotations", "inputSchema", "name", "outputSchema", "title"]
    );
    assert_eq!(
        keys(Version::V2025_11_25),
        ["_meta", "annotations", "execution", "icons", "inputSchema", "name", "outputSchema", "title"]
    );
    assert_eq!(
        keys(Version::V2026_07_28),
        ["_meta", "annotations", "icons", "inputSchema", "name", "outputSchema", "title"]
    );
}

#[test]
fn a_scalar_output_schema_is_wrapped_for_legacy_only() {
    let schema =
        |version| write(version, ListToolsResult::new(vec![full_tool()]))["tools"][0]["outputSchema"].clone();
    assert_eq!(schema(Version::V2026_07_28), json!({"type": "number"}));
    assert_eq!(
        schema(Version::V2025_11_25),
        json!({"type": "object", "properties": {"result": {"type": "number"}}, "required": ["result"],
            "x-fastmcp-wrap-result": true})
    );
}

#[test]
fn references_follow_a_wrapped_schema() {
    let list = json!({"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/x"}, {"const": {"$ref": "#"}}]},
        "$defs": {"x": {"$ref": "#/items"}}});
    let wrapped = Value::Object(wrap_output_schema(list.as_object().unwrap().clone()));
    let inner = &wrapped["properties"]["result"]["items"]["anyOf"];
    assert_eq!(inner[0]["$ref"], "#/properties/result");
    assert_eq!(inner[1]["$ref"], "#/$defs/x");
    assert_eq!(inner[2]["const"]["$ref"], "#");
    assert_eq!(wrapped["$defs"]["x"]["$ref"], "#/properties/result/items");
}

#[test]
fn structured_content_in_each_revision() {
    let result = |text: &str| CallToolResult::new(vec![]).structured_content(RawJson::parse(text).unwrap());
    for (version, scalar, object) in [
        (Version::V2024_11_05, None, None),
        (Version::V2025_03_26, None, None),
        (Version::V2025_06_18, Some(json!({"result": 7})), Some(json!({"a": 1}))),
        (Version::V2025_11_25, Some(json!({"result": 7})), Some(json!({"a": 1}))),
        (Version::V2026_07_28, Some(json!(7)), Some(json!({"a": 1}))),
    ] {
        assert_eq!(write(version, result("7")).get("structuredContent"), scalar.as_ref(), "{version}");
        assert_eq!(
            write(version, result(r#"{"a":1}"#)).get("structuredContent"),
            object.as_ref(),
            "{version}"
        );
    }
    assert_eq!(write(Version::LATEST, result("null"))["structuredContent"], Value::Null);
    assert!(write(Version::LATEST, result("null")).as_object().unwrap().contains_key("structuredContent"));
}

#[test]
fn content_that_a_revision_lacks_becomes_text() {
    let kinds = |version| -> Vec<String> {
        let content = vec![
            Content::Audio(AudioContent::new("UklGRg==", "audio/wav")),
            Content::ResourceLink(ResourceLink::new("file:///a", "a")),
        ];
        let result = write(version, CallToolResult::new(content));
        result["content"].as_array().unwrap().iter().map(|c| c["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(Version::V2024_11_05), ["text", "text"]);
    assert_eq!(kinds(Version::V2025_03_26), ["audio", "text"]);
    for version in [Version::V2025_06_18, Version::V2025_11_25, Version::V2026_07_28] {
        assert_eq!(kinds(version), ["audio", "resource_link"], "{version}");
    }
}

#[test]
fn modern_results_are_stamped_and_legacy_ones_are_not() {
    for version in Version::ALL {
        let result = write(version, EmptyResult::new());
        if version.is_modern() {
            assert_eq!(result["resultType"], "complete");
            assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "demo");
        } else {
            assert_eq!(result, json!({}), "{version}");
        }
    }
    assert_eq!(write(Version::LATEST, InputRequiredResult::new())["resultType"], "input_required");
}

#[test]
fn caching_hints_are_modern_and_default_to_no_caching() {
    for version in Version::ALL {
        let plain = write(version, ReadResourceResult::new(vec![]));
        let hinted = write(
            version,
            ReadResourceResult::new(vec![]).ttl_ms(5).cache_scope(crate::wire::CacheScope::Public),
        );
        if version.is_modern() {
            assert_eq!((&plain["ttlMs"], &plain["cacheScope"]), (&json!(0), &json!("private")));
            assert_eq!((&hinted["ttlMs"], &hinted["cacheScope"]), (&json!(5), &json!("public")));
        } else {
            assert_eq!(plain, json!({"contents": []}));
            assert_eq!(hinted, plain, "{version}");
        }
    }
}

#[test]
fn a_results_own_meta_is_kept_in_both_eras() {
    for version in Version::ALL {
        let result = CallToolResult::new(vec![]).meta(Meta::new().with("mine", 1));
        assert_eq!(write(version, result)["_meta"]["mine"], 1, "{version}");
    }
    let forged = CallToolResult::new(vec![]).meta(Meta::new().with(crate::wire::meta::SERVER_INFO, "me"));
    assert_eq!(write(Version::LATEST, forged)["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "demo");
}

#[test]
fn the_handshake_says_only_what_the_revision_knows() {
    let info =
        Implementation::new("demo", "1.0").title("Demo").description("d").website_url("https://example.com");
    let capabilities = ServerCapabilities::new().completions(crate::wire::JsonObject::new());
    let keys = |version: Version| {
        let result =
            write(version, InitializeResult::new(version.as_str(), capabilities.clone(), info.clone()));
        let keys: Vec<String> = result["serverInfo"].as_object().unwrap().keys().cloned().collect();
        (keys.join(" "), result["capabilities"].get("completions").is_some())
    };
    assert_eq!(keys(Version::V2024_11_05), ("name version".into(), false));
    assert_eq!(keys(Version::V2025_03_26), ("name version".into(), true));
    assert_eq!(keys(Version::V2025_06_18), ("name title version".into(), true));
    assert_eq!(keys(Version::V2025_11_25), ("description name title version websiteUrl".into(), true));
}

#[test]
fn a_missing_resource_has_another_number_in_each_era() {
    for version in Version::ALL {
        let error = adapt_error(version, RpcError::new(ErrorCode::RESOURCE_NOT_FOUND, "x"));
        let expected =
            if version.is_modern() { ErrorCode::INVALID_PARAMS } else { ErrorCode::RESOURCE_NOT_FOUND };
        assert_eq!(error.code, expected);
    }
}

#[test]
fn tasks_are_a_capability_in_one_revision_and_an_extension_in_the_next() {
    let announced = |version: Version, capabilities| {
        let result = InitializeResult::new(version.as_str(), capabilities, Implementation::new("s", "1"));
        write(version, result)["capabilities"].clone()
    };
    let mut capabilities = ServerCapabilities::new();
    capabilities.tasks = Some(ServerTasksCapability::new().cancel(serde_json::Map::new()));
    assert_eq!(announced(Version::V2025_06_18, capabilities.clone()), json!({}));
    assert_eq!(announced(Version::V2025_11_25, capabilities.clone()), json!({"tasks": {"cancel": {}}}));
    let extension = json!({"extensions": {TASKS_EXTENSION: {}}});
    assert_eq!(announced(Version::V2026_07_28, capabilities.clone()), extension);

    // The extension does not exist before; others are left alone, and so are its settings where it does.
    let of = |value: &Value| serde_json::from_value::<ServerCapabilities>(value.clone()).unwrap();
    let both = json!({"tasks": {}, "extensions": {TASKS_EXTENSION: {"a": 1}, "com.example/x": {}}});
    assert_eq!(announced(Version::V2025_06_18, of(&both)), json!({"extensions": {"com.example/x": {}}}));
    let core = json!({"tasks": {}, "extensions": {"com.example/x": {}}});
    assert_eq!(announced(Version::V2025_11_25, of(&both)), core);
    let modern = json!({"extensions": both["extensions"]});
    assert_eq!(announced(Version::V2026_07_28, of(&both)), modern);
}
