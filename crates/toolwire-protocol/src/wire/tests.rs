//! What every struct of the wire model promises, tried on a few of them.

use std::fmt::Debug;

use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::*;
use crate::RawJson;

/// Parses `text`, checks that it is written back as the same JSON, and returns it.
pub(super) fn round_trip<T: Serialize + DeserializeOwned + Debug + PartialEq>(text: &str) -> T {
    let parsed: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let before: Value = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_value(&parsed).unwrap(), before, "{text}");
    // The same members in another order mean the same; a `Value` writes them sorted.
    let sorted: T = serde_json::from_str(&before.to_string()).unwrap();
    assert_eq!(serde_json::to_value(&sorted).unwrap(), before, "{before}");
    parsed
}

/// The message of the error that parsing `text` ends with.
pub(super) fn refusal<T: DeserializeOwned + Debug>(text: &str) -> String {
    serde_json::from_str::<T>(text).unwrap_err().to_string()
}

#[test]
fn unknown_members_and_meta_keys_survive() {
    let tool: Tool = round_trip(
        r#"{"name":"t","inputSchema":{"type":"object","x":[1]},"future":{"a":[null]},"older":1.5,
            "_meta":{"com.example/a":true,"traceparent":"00-1"}}"#,
    );
    assert_eq!(tool.extra.get("future"), Some(&json!({"a": [null]})));
    assert_eq!(tool.extra.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["future", "older"]);
    let meta = tool.meta.unwrap();
    assert_eq!(meta.get("com.example/a"), Some(&Value::Bool(true)));
    assert_eq!(meta.get(meta::TRACEPARENT), Some(&json!("00-1")));
    assert!(tool.annotations.is_none());
}

#[test]
fn no_unknown_members_cost_one_word() {
    assert_eq!(size_of::<Extra>(), size_of::<usize>());
    let mut extra = Extra::new();
    assert!(extra.is_empty());
    assert_eq!(extra.insert("k", 1), None);
    assert_eq!(extra.insert("k", 2), Some(json!(1)));
    assert_eq!(extra.remove("k"), Some(json!(2)));
    assert_eq!(extra, Extra::new());
}

#[test]
fn a_member_that_occurs_twice_is_refused_by_name() {
    for (text, name) in [
        (r#"{"name":"a","name":"a","inputSchema":{}}"#, "name"),
        (r#"{"name":"a","inputSchema":{},"title":null,"title":"b"}"#, "title"),
        (r#"{"name":"a","inputSchema":{},"x":1,"x":1}"#, "x"),
        (r#"{"name":"a","inputSchema":{},"_meta":{"k":1,"k":2}}"#, "k"),
        (r#"{"name":"a","n\u0061me":"a","inputSchema":{}}"#, "name"),
    ] {
        let error = refusal::<Tool>(text);
        assert!(error.contains(&format!("duplicate field `{name}`")), "{text}: {error}");
    }
    let error = refusal::<TextContent>(r#"{"type":"text","type":"text","text":""}"#);
    assert!(error.contains("duplicate field `type`"), "{error}");
    let error = refusal::<CallToolResult>(r#"{"content":[],"structuredContent":null,"structuredContent":1}"#);
    assert!(error.contains("duplicate field `structuredContent`"), "{error}");
}

#[test]
fn null_for_an_optional_member_is_absence() {
    let text = r#"{"name":"a","title":null,"inputSchema":{},"_meta":null,"annotations":null}"#;
    let tool: Tool = serde_json::from_str(text).unwrap();
    assert_eq!(tool, Tool::new("a", JsonObject::new()));
    assert_eq!(serde_json::to_string(&tool).unwrap(), r#"{"name":"a","inputSchema":{}}"#);
}

#[test]
fn an_error_names_the_member_and_the_way_to_it() {
    assert!(refusal::<Tool>(r#"{"inputSchema":{}}"#).contains("missing field `name`"));
    assert!(refusal::<Tool>(r#"{"name":"a"}"#).contains("missing field `inputSchema`"));
    let error = refusal::<Tool>(r#"{"name":"a","inputSchema":{},"title":7}"#);
    assert!(error.starts_with(r#"field "title": invalid type: integer `7`, expected a string"#), "{error}");
    let error = refusal::<ListToolsResult>(r#"{"tools":[{"name":null,"inputSchema":{}}]}"#);
    assert!(error.starts_with(r#"field "tools": field "name": invalid type: null"#), "{error}");
    let error = refusal::<Tool>("[]");
    assert!(error.contains("expected an object (Tool)"), "{error}");
    let error = refusal::<TextContent>(r#"{"type":"image","text":""}"#);
    assert!(error.contains(r#"field "type": expected "text", found "image""#), "{error}");
    assert!(refusal::<TextContent>(r#"{"text":""}"#).contains("missing field `type`"));
}

#[test]
fn null_as_structured_content_is_a_value() {
    let result: CallToolResult = round_trip(r#"{"content":[],"structuredContent":null}"#);
    assert_eq!(result.structured_content.as_ref().map(RawJson::text), Some("null"));
    let result: CallToolResult = round_trip(r#"{"content":[]}"#);
    assert_eq!(result.structured_content, None);
    let result: CallToolResult =
        serde_json::from_str(r#"{"content":[],"structuredContent":{"z":1.50,"a":1}}"#).unwrap();
    assert_eq!(
        serde_json::to_string(&result).unwrap(),
        r#"{"content":[],"structuredContent":{"z":1.50,"a":1}}"#
    );
}

#[test]
fn setters_and_constructors_say_what_they_write() {
    let result = CallToolResult::error("no").result_type(ResultType::Complete);
    let text = r#"{"content":[{"type":"text","text":"no"}],"isError":true,"resultType":"complete"}"#;
    assert_eq!(serde_json::to_string(&result).unwrap(), text);
    assert_eq!(serde_json::to_string(&ClientCapabilities::default()).unwrap(), "{}");
}

#[test]
fn an_empty_cursor_is_a_cursor() {
    assert_eq!(round_trip::<PaginatedRequestParams>(r#"{"cursor":""}"#).cursor.as_deref(), Some(""));
    assert_eq!(round_trip::<PaginatedRequestParams>("{}").cursor, None);
}

#[test]
fn numbers_keep_their_kind() {
    for text in ["0", "50", "-3", "18446744073709551615", "0.5", "1.0", "-0.25"] {
        let number: Number = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&number).unwrap(), text);
    }
    assert_eq!(serde_json::to_string(&Number::from(f64::NAN)).unwrap(), "0.0");
    assert_eq!(Number::from(f64::INFINITY), Number::from(f64::MAX));
    assert_eq!(Number::from(7_u64), Number::from(7_i32));
    assert!(refusal::<Number>(r#""1""#).contains("expected a number"));
}

#[test]
fn open_words_are_kept_and_closed_ones_are_not_guessed() {
    assert_eq!(round_trip::<ResultType>(r#""later""#), ResultType::Other("later".into()));
    assert_eq!(ResultType::from("task"), ResultType::Task);
    assert_eq!(round_trip::<StopReason>(r#""toolUse""#), StopReason::ToolUse);
    let error = refusal::<Role>(r#""system""#);
    assert!(error.contains("system") && error.contains("assistant"), "{error}");
}

#[test]
fn log_levels_are_ordered_by_gravity() {
    assert!(LoggingLevel::ALL.is_sorted());
    for level in LoggingLevel::ALL {
        assert_eq!(round_trip::<LoggingLevel>(&format!("{:?}", level.as_str())), level);
    }
}

#[test]
fn an_elicitation_capability_without_modes_means_forms() {
    for (text, form, url) in [
        ("{}", false, false),
        (r#"{"elicitation":{}}"#, true, false),
        (r#"{"elicitation":{"form":{}}}"#, true, false),
        (r#"{"elicitation":{"url":{}}}"#, false, true),
        (r#"{"elicitation":{"form":{},"url":{}}}"#, true, true),
    ] {
        let capabilities: ClientCapabilities = round_trip(text);
        assert_eq!((capabilities.elicits_form(), capabilities.elicits_url()), (form, url), "{text}");
    }
}

#[test]
fn every_capability_of_every_revision_has_its_place() {
    let client: ClientCapabilities = round_trip(
        r#"{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"experimental":{"x":{"y":1}},
            "tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}},
            "extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
    );
    assert!(client.has_extension("io.modelcontextprotocol/tasks") && client.extra.is_empty());
    let server: ServerCapabilities = round_trip(
        r#"{"logging":{},"completions":{},"prompts":{"listChanged":true},"tools":{"listChanged":false},
            "resources":{"subscribe":true,"listChanged":true},"experimental":{"x":{}},
            "tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"extensions":{"e":{}}}"#,
    );
    let tasks = server.tasks.unwrap();
    assert!(tasks.requests.unwrap().tools.unwrap().call.is_some());
    assert!(tasks.extra.is_empty() && server.extra.is_empty());
}

#[test]
fn meta_reads_the_reserved_keys() {
    let mut meta = Meta::new();
    meta.set_progress_token(&"7".into());
    meta.set_subscription_id(&7.into());
    meta.encode(meta::CLIENT_INFO, &Implementation::new("c", "1")).unwrap();
    meta.insert(meta::PROTOCOL_VERSION, "2026-07-28");
    let meta: Meta = round_trip(&serde_json::to_string(&meta).unwrap());
    assert_eq!(meta.progress_token(), Some("7".into()));
    assert_eq!(meta.subscription_id(), Some(7.into()));
    assert_eq!(meta.protocol_version(), Some("2026-07-28"));
    assert_eq!(meta.decode::<Implementation>(meta::CLIENT_INFO).unwrap().unwrap().name, "c");
    assert!(meta.decode::<Implementation>(meta::SERVER_INFO).is_none());
    assert_eq!(Meta::new().with(meta::PROGRESS_TOKEN, 1.5).progress_token(), None);
}

#[test]
fn cache_hints_are_read_carefully() {
    let absent: ListToolsResult = round_trip(r#"{"tools":[]}"#);
    assert_eq!(absent.cache_hint(), CacheHint { ttl_ms: 0, scope: CacheScope::Private });
    let negative: ListToolsResult = round_trip(r#"{"tools":[],"ttlMs":-5,"cacheScope":"public"}"#);
    assert_eq!(negative.cache_hint(), CacheHint { ttl_ms: 0, scope: CacheScope::Public });
    let hint = CacheHint { ttl_ms: 60_000, scope: CacheScope::Public };
    assert_eq!(absent.cached(hint).cache_hint(), hint);
}

#[test]
fn keyed_keeps_the_order_and_refuses_a_second_of_the_same() {
    let mut map: Keyed<u8> = serde_json::from_str(r#"{"z":1,"a":2,"m":3}"#).unwrap();
    assert_eq!(map.keys().collect::<Vec<_>>(), ["z", "a", "m"]);
    assert_eq!(map.insert("a", 9), Some(2));
    assert_eq!(map.remove("z"), Some(1));
    assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"a":9,"m":3}"#);
    assert!(refusal::<Keyed<u8>>(r#"{"z":1,"a":2,"z":1}"#).contains("duplicate field `z`"));
    assert!(refusal::<Keyed<u8>>(r#"{"z":"1"}"#).contains(r#"field "z": invalid type"#));
}

#[test]
fn a_reference_is_told_by_its_type() {
    let params: CompleteRequestParams = round_trip(
        r#"{"ref":{"uri":"file:///{path}","type":"ref/resource"},"argument":{"name":"path","value":""}}"#,
    );
    assert!(matches!(params.reference, CompletionReference::Resource(_)));
    round_trip::<CompletionReference>(r#"{"type":"ref/prompt","name":"p","title":"P","new":1}"#);
    assert!(refusal::<CompletionReference>(r#"{"type":"ref/x"}"#).contains("ref/prompt"));
    assert!(refusal::<CompletionReference>(r#"{"name":"p"}"#).contains("missing field `type`"));
}

#[test]
fn an_input_request_is_told_by_its_method() {
    let requests: InputRequests = round_trip(
        r#"{"z":{"params":{"message":"m","mode":"url","url":"https://example.com"},"method":"elicitation/create"},
            "a":{"method":"roots/list"},"r":{"method":"roots/list","params":{"_meta":{"k":1}}},
            "s":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":5}}}"#,
    );
    let methods: Vec<_> = requests.iter().map(|(key, request)| (key, request.method())).collect();
    assert_eq!(methods.first(), Some(&("z", "elicitation/create")));
    assert_eq!(methods.last(), Some(&("s", "sampling/createMessage")));
    let error = refusal::<InputRequest>(r#"{"method":"tools/call","params":{}}"#);
    assert!(error.contains("tools/call"), "{error}");
    assert!(refusal::<InputRequest>(r#"{"method":"elicitation/create"}"#).contains("missing field `params`"));
    let error = refusal::<InputRequest>(r#"{"method":"sampling/createMessage","params":{"messages":[]}}"#);
    assert!(error.contains(r#"field "params": missing field `maxTokens`"#), "{error}");
}

#[test]
fn the_error_data_is_what_the_specification_says() {
    round_trip::<UnsupportedProtocolVersionData>(r#"{"supported":["2026-07-28"],"requested":"x"}"#);
    round_trip::<MissingRequiredClientCapabilityData>(r#"{"requiredCapabilities":{"sampling":{}}}"#);
    round_trip::<UrlElicitationRequiredData>(
        r#"{"elicitations":[{"mode":"url","elicitationId":"1","url":"https://example.com","message":"m"}]}"#,
    );
    round_trip::<ResourceNotFoundData>(r#"{"uri":"file:///x"}"#);
}

prop_compose! {
    fn objects()(entries in prop::collection::btree_map("x-[a-z]{0,6}", -1000_i64..1000, 0..4)) -> JsonObject {
        entries.into_iter().map(|(key, number)| (key, json!({"n": number, "l": [number, null, "\u{1F600}"]}))).collect()
    }
}

prop_compose! {
    fn tools()(
        name in ".*", title in prop::option::of(".*"), description in prop::option::of(".*"),
        schema in objects(), output in prop::option::of(objects()), meta in prop::option::of(objects()),
        read_only in prop::option::of(any::<bool>()), sizes in prop::option::of(prop::collection::vec(".*", 0..3)),
        extra in objects(),
    ) -> Tool {
        let mut tool = Tool::new(name, schema);
        tool.title = title;
        tool.description = description;
        tool.output_schema = output;
        tool.meta = meta.map(Meta::from);
        tool.annotations = read_only.map(|hint| ToolAnnotations::new().read_only_hint(hint));
        tool.icons = sizes.map(|sizes| vec![Icon::new("data:,").theme(IconTheme::Dark).sizes(sizes)]);
        for (key, value) in extra {
            tool.extra.insert(key, value);
        }
        tool
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_tool_survives_in_any_member_order(tool in tools()) {
        let text = serde_json::to_string(&tool).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Tool>(&text).unwrap(), &tool);
        let sorted = serde_json::to_value(&tool).unwrap().to_string();
        prop_assert_eq!(&serde_json::from_str::<Tool>(&sorted).unwrap(), &tool);
    }

    #[test]
    fn no_input_panics(text in r#"[{}\[\]",:a-z0-9\\ ]{0,60}"#) {
        let _ = serde_json::from_str::<Content>(&text);
        let _ = serde_json::from_str::<InputRequests>(&text);
        let _ = serde_json::from_str::<DetailedTask>(&text);
    }
}
