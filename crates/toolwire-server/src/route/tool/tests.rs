use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::{Args, Json, Server};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Plain {
    text: String,
}

/// Its schema is written by hand, and wrong.
#[derive(Serialize)]
struct Wrong;

impl JsonSchema for Wrong {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Wrong".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "objekt" })
    }
}

fn plain() -> ToolRoute {
    tool("plain", |Args(plain): Args<Plain>| async { Json(plain) })
}

#[test]
fn tools_of_the_same_types_share_their_schemas() {
    let (one, other) = (plain(), tool("other", |Args(plain): Args<Plain>| async { Json(plain) }));
    assert!(Arc::ptr_eq(&one.input, &other.input));
    assert!(Arc::ptr_eq(one.output.as_ref().unwrap(), other.output.as_ref().unwrap()));
    let by_hand = plain().input_schema(json!({ "type": "object" }));
    assert!(!Arc::ptr_eq(&one.input, &by_hand.input));
    assert_eq!(by_hand.listed().input_schema.get("properties"), None);
    assert_eq!(one.listed().input_schema["properties"]["text"]["type"], "string");
}

#[test]
fn every_tool_of_a_wrong_type_is_refused() {
    for name in ["first", "second"] {
        let route = tool(name, |Args(list): Args<Vec<u8>>| async move { format!("{list:?}") });
        assert!(problem_of(route).starts_with(&format!("tool \"{name}\": arguments must be an object")));
    }
}

fn problem_of(route: ToolRoute) -> String {
    Server::builder("test", "1.0").tool(route).build().map(|_| ()).unwrap_err().to_string()
}

#[test]
fn what_only_repeats_a_type_is_checked_by_decoding() {
    let route = plain();
    assert!(route.check_arguments(b"{}").is_ok(), "decoding will say it");
    assert!(route.explain(b"{}", "unclear").contains("text"), "{}", route.explain(b"{}", "unclear"));
    assert!(route.output.unwrap().check().is_ok());
}

#[test]
fn a_wrong_constraint_on_a_type_is_found_when_the_server_is_built() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Constrained {
        #[schemars(extend("minLength" = "many"))]
        text: String,
    }
    let takes = tool("takes", |Args(it): Args<Constrained>| async { it.text });
    assert!(problem_of(takes).contains("input schema is not valid"));
    let returns = tool("returns", || async { Json(Constrained { text: String::new() }) });
    assert!(problem_of(returns).contains("output schema is not valid"));
}

#[test]
fn a_wrong_schema_by_hand_is_found_when_the_server_is_built() {
    let input = json!({ "type": "object", "properties": { "a": { "type": "objekt" } } });
    assert!(problem_of(plain().input_schema(input)).contains("input schema is not valid"));
    assert!(problem_of(plain().output_schema(json!({ "type": 7 }))).contains("output schema is not valid"));
}

#[test]
fn a_wrong_schema_that_was_not_needed_before_is_no_panic() {
    let route = tool("wrong", || async { Json(Wrong) });
    assert!(route.output.unwrap().check().unwrap_err().contains("output schema is not valid"));
}

#[test]
fn a_name_that_clients_refuse_is_found_when_the_server_is_built() {
    let named = |name: &str| tool(name, || async { "" });
    assert_eq!(
        problem_of(named("has space")),
        "tool \"has space\": its name has ' ' in it; names of tools consist of ASCII letters, digits, `_`, `-`, `.` and `/`"
    );
    assert!(problem_of(named("naïve")).contains("'ï'"));
    assert!(problem_of(named(&"n".repeat(129))).contains("129 letters"));
    for name in ["a", "get_user.v2-1/x", &"n".repeat(128)] {
        assert!(Server::builder("test", "1.0").tool(named(name)).build().is_ok(), "{name}");
    }
    let server = Server::builder("test", "1.0").build().unwrap();
    assert!(server.add_tool(named("has space")).is_err());
}

#[test]
fn two_states_of_one_type_are_found_when_the_server_is_built() {
    let error =
        Server::builder("test", "1.0").state(1_u8).state(2_u16).state(3_u8).build().map(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("there are two states of type u8"), "{error}");
}
