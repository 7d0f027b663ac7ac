//! What may be sent for the arguments of a tool, and what is said about the rest.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwire::{
    Args, Ask, Context, Question, Server, State, prompt, routes,
    server::{FromContext, Rejection},
    tool,
    wire::Meta,
};

use crate::session::Session;

type Cx = Context;

/// An extractor of somebody's own, under a name that nobody could know.
struct Tenant(&'static str);

impl FromContext for Tenant {
    async fn from_context(_: &Context) -> Result<Self, Rejection> {
        Ok(Self("acme"))
    }
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    city: String,
    country: Option<String>,
    #[serde(default)]
    floor: u8,
}

/// Everything at once, in an order that is not that of the alphabet.
#[tool]
#[expect(clippy::too_many_arguments, reason = "to see what happens")]
async fn everything(
    zebra: String,
    cx: Cx,
    limit: Option<i64>,
    #[arg(default = 3)] count: u8,
    Tenant(tenant): Tenant,
    tenant_again: Tenant,
    anything: Option<Value>,
    place: Option<Place>,
    missing: Option<State<u64>>,
    #[schemars(range(min = 1))]
    #[serde(alias = "nine")]
    #[arg(default = 9)]
    ninth: u64,
    tenth: bool,
    _meta: Meta,
) -> String {
    let place = place.map(|place| (place.city, place.country, place.floor));
    let tenant_again = tenant_again.0;
    format!(
        "{zebra} {} {limit:?} {count} {tenant}{tenant_again} {anything:?} {place:?} {} {ninth} {tenth}",
        cx.target().unwrap(),
        missing.is_some()
    )
}

#[tool(lenient)]
async fn lenient(number: i64, ratio: Option<f64>, loud: bool) -> String {
    format!("{number} {ratio:?} {loud}")
}

#[tool]
async fn nothing() -> &'static str {
    "nothing"
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    query: String,
    #[serde(alias = "max")]
    limit: Option<u8>,
    #[serde(default)]
    offset: u8,
    near: Option<Place>,
    nullable: Nullable,
}

/// What must be given, and may be null.
#[derive(Deserialize)]
struct Nullable(Option<String>);

impl JsonSchema for Nullable {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Nullable".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["string", "null"] })
    }
}

#[tool]
async fn search(Args(search): Args<Search>) -> String {
    let near = search.near.map(|place| place.city);
    format!("{} {:?} {} {near:?} {:?}", search.query, search.limit, search.offset, search.nullable.0)
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

impl Question for Name {
    type Args = OnlyCity;

    fn message(args: &OnlyCity) -> String {
        format!("Who lives in {}?", args.city)
    }
}

#[derive(Deserialize, JsonSchema)]
struct OnlyCity {
    city: String,
}

/// A question is about some of the arguments, which are taken one by one.
#[tool]
async fn asks(city: String, years: u8, who: Option<Ask<Name>>) -> String {
    format!("{city} {years} {}", who.is_some_and(|Ask(who)| who.name.is_empty()))
}

fn server() -> Server {
    Server::builder("demo", "1.0")
        .routes(routes![everything, lenient, nothing, search, asks])
        .build()
        .unwrap()
}

async fn call(session: &mut Session, name: &str, arguments: Value) -> (bool, String) {
    let result = session.result("tools/call", &json!({ "name": name, "arguments": arguments })).await;
    (result["isError"] == true, result["content"][0]["text"].as_str().unwrap().to_owned())
}

async fn ok(session: &mut Session, name: &str, arguments: Value) -> String {
    let (failed, text) = call(session, name, arguments).await;
    assert!(!failed, "{text}");
    text
}

async fn refused(session: &mut Session, name: &str, arguments: Value) -> String {
    let (failed, text) = call(session, name, arguments).await;
    assert!(failed, "{text}");
    text
}

#[tokio::test(flavor = "current_thread")]
async fn types_tell_parameters_apart() {
    let mut session = Session::start(server()).await;
    let sent = json!({ "zebra": "z", "tenth": true });
    let text = ok(&mut session, "everything", sent).await;
    assert_eq!(text, "z everything None 3 acmeacme None None false 9 true");
    let sent = json!({
        "tenth": false, "ninth": 1, "place": { "city": "Oslo" }, "anything": [1], "count": 4, "limit": -1, "zebra": "y",
    });
    let text = ok(&mut session, "everything", sent).await;
    assert_eq!(
        text,
        "y everything Some(-1) 4 acmeacme Some(Array [Number(1)]) Some((\"Oslo\", None, 0)) false 1 false"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn a_schema_says_what_may_be_sent_and_in_which_order() {
    let mut session = Session::start(server()).await;
    let listed = session.ask("tools/list", &json!({})).await;
    let at = listed.find(r#""inputSchema""#).unwrap();
    let expected = r#""inputSchema":{"type":"object","properties":{"zebra":{"type":"string"},"limit":{"type":"integer"},"count":"#;
    assert!(listed[at..].starts_with(expected), "{}", &listed[at..]);
    in_order(
        &listed[at..],
        &["zebra", "limit", "count", "anything", "place", "city", "country", "floor", "ninth", "tenth"],
    );
    in_order(
        &listed[listed.find(r#""search""#).unwrap()..],
        &["query", "limit", "offset", "near", "city", "nullable"],
    );
    let tools: Value = serde_json::from_str(&listed).unwrap();
    let schema = &tools["result"]["tools"][0]["inputSchema"];
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["required"], json!(["zebra", "tenth"]));
    assert_eq!(schema["properties"]["place"]["type"], "object", "{schema}");
    assert_eq!(schema["properties"]["place"]["properties"]["country"], json!({ "type": "string" }));
    assert_eq!(schema["properties"]["ninth"], json!({ "type": "integer", "minimum": 1, "default": 9 }));
    assert_eq!(schema["properties"].as_object().unwrap().len(), 7);

    let search = &tools["result"]["tools"][3]["inputSchema"];
    assert_eq!(search["additionalProperties"], false);
    assert_eq!(search["required"], json!(["query", "nullable"]));
    assert_eq!(search["properties"]["limit"], json!({ "type": "integer", "minimum": 0, "maximum": 255 }));
    assert_eq!(search["properties"]["nullable"], json!({ "type": ["string", "null"] }));
    assert_eq!(tools["result"]["tools"][1]["inputSchema"].get("additionalProperties"), None);
    assert_eq!(tools["result"]["tools"][2]["inputSchema"].get("additionalProperties"), None);
}

/// Checks that these names come one after the other in a text.
fn in_order(text: &str, names: &[&str]) {
    let mut rest = text;
    for name in names {
        let at =
            rest.find(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{name} comes too late: {text}"));
        rest = &rest[at + 1..];
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_misspelt_argument_is_answered_with_the_right_one() {
    let mut session = Session::start(server()).await;
    let sent = json!({ "zebra": "z", "tenth": true, "limt": 3 });
    assert_eq!(
        refused(&mut session, "everything", sent).await,
        "invalid arguments for tool \"everything\": unknown argument `limt`; did you mean `limit`?"
    );
    let sent = json!({ "zebr": "z", "tenth": true });
    let text = refused(&mut session, "everything", sent).await;
    assert!(text.contains("unknown argument `zebr`; did you mean `zebra`?; "), "{text}");
    assert!(text.matches("zebra").count() > 1, "what is missing is said, too: {text}");
    let text =
        refused(&mut session, "everything", json!({ "zebra": "z", "tenth": true, "tenant": "evil" })).await;
    assert!(text.ends_with("unknown argument `tenant`"), "{text}");

    let sent = json!({ "query": "q", "nullable": null, "ofset": 3 });
    let text = refused(&mut session, "search", sent).await;
    assert!(text.ends_with("unknown argument `ofset`; did you mean `offset`?"), "{text}");
    // An alias is no mistake.
    let sent = json!({ "query": "q", "nullable": null, "max": 3 });
    assert_eq!(ok(&mut session, "search", sent).await, "q Some(3) 0 None None");
    let sent = json!({ "zebra": "z", "tenth": true, "nine": 3 });
    assert!(ok(&mut session, "everything", sent).await.ends_with(" 3 true"));
    // Hosts send a placeholder where there is nothing to send.
    assert_eq!(ok(&mut session, "nothing", json!({ "random_string": "x" })).await, "nothing");
}

#[tokio::test(flavor = "current_thread")]
async fn an_argument_counts_once() {
    let mut session = Session::start(server()).await;
    let call = r#"{"jsonrpc":"2.0","id":"twice","method":"tools/call","params":{"name":"everything","arguments":
        {"zebra":"a","tenth":true,"z\u0065bra":"b"}}}"#;
    let answer = session.ask_raw(call).await;
    assert!(answer.contains(r#"the member \"zebra\" is duplicated"#), "{answer}");
    let call = call.replace(r#""z\u0065bra":"b""#, r#""ninth":1,"nine":2"#);
    let answer = session.ask_raw(&call).await;
    assert!(answer.contains("duplicate field `ninth`"), "{answer}");
}

#[tokio::test(flavor = "current_thread")]
async fn null_stands_for_what_is_not_given() {
    let mut session = Session::start(server()).await;
    let sent = json!({
        "zebra": "z", "tenth": true, "limit": null, "count": null, "anything": null, "place": null, "ninth": null,
    });
    let text = ok(&mut session, "everything", sent).await;
    assert_eq!(text, "z everything None 3 acmeacme None None false 9 true");
    let sent =
        json!({ "zebra": "z", "tenth": true, "place": { "city": "Oslo", "country": null, "floor": null } });
    let text = ok(&mut session, "everything", sent).await;
    assert!(text.contains("Some((\"Oslo\", None, 0))"), "{text}");
    let sent = json!({ "query": "q", "nullable": null, "limit": null, "offset": null, "near": { "city": "x", "floor": null } });
    assert_eq!(ok(&mut session, "search", sent).await, "q None 0 Some(\"x\") None");
    // What must be given cannot be null.
    let text = refused(&mut session, "everything", json!({ "zebra": null, "tenth": true })).await;
    assert!(text.contains("zebra"), "{text}");
}

#[tokio::test(flavor = "current_thread")]
async fn the_arguments_of_prompts_are_read_from_text_and_named_when_they_do_not_fit() {
    #[prompt]
    async fn greet(name: String, times: Option<u8>, #[arg(default = true)] loud: bool) -> String {
        format!("{name} {times:?} {loud}")
    }
    let server = Server::builder("demo", "1.0").routes(routes![greet]).build().unwrap();
    let mut session = Session::start(server).await;
    let get = |arguments: Value| json!({ "name": "greet", "arguments": arguments });
    for (arguments, said) in [
        (json!({ "name": "7" }), "7 None true"),
        (json!({ "name": "x", "times": "3", "loud": "false", "other": "ignored" }), "x Some(3) false"),
        (json!({ "name": "x", "times": null, "loud": "false" }), "x None false"),
    ] {
        let prompt = session.result("prompts/get", &get(arguments)).await;
        assert_eq!(prompt["messages"][0]["content"]["text"], said);
    }
    for (arguments, problem) in [
        (json!({ "name": "x", "times": "many" }), "argument `times`: expected a whole number, found"),
        (json!({ "name": ["x"] }), "argument `name`: expected a string"),
        (json!({ "name": "x", "loud": false }), "argument `loud`: expected a string"),
        (json!({ "name": "x", "times": 3 }), "argument `times`: expected a string"),
        (json!({ "name": null }), "argument `name` is missing"),
    ] {
        let answer = session.ask("prompts/get", &get(arguments)).await;
        assert!(answer.contains(problem), "{answer}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_lenient_tool_takes_what_it_can() {
    let mut session = Session::start(server()).await;
    let sent = json!({ "number": "42", "ratio": "0.5", "loud": "true", "colour": "red" });
    assert_eq!(ok(&mut session, "lenient", sent).await, "42 Some(0.5) true");
    let text = refused(&mut session, "lenient", json!({ "number": "many", "loud": true })).await;
    assert!(text.contains("number"), "{text}");
    let text = refused(&mut session, "everything", json!({ "zebra": "z", "tenth": "true" })).await;
    assert!(text.contains("tenth"), "{text}");
}

#[tokio::test(flavor = "current_thread")]
async fn a_question_shares_the_arguments() {
    let mut session = Session::start(server()).await;
    let tools = session.result("tools/list", &json!({})).await;
    let keys: Vec<_> = tools["tools"][4]["inputSchema"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["city", "years"]);
    // This client cannot be asked, which is not the same as an answer that is absent.
    let text = refused(&mut session, "asks", json!({ "city": "Oslo", "years": 3 })).await;
    assert!(text.contains("elicit") || text.contains("ask"), "{text}");
}

#[test]
fn all_arguments_and_single_ones_do_not_mix() {
    type Everything = Args<OnlyCity>;
    #[tool]
    async fn both(all: Everything, years: u8) -> String {
        format!("{} {years}", all.0.city)
    }
    let error = Server::builder("demo", "1.0").routes(routes![both]).build().unwrap_err().to_string();
    assert!(error.contains("tool \"both\": its handler takes `Args<T>`"), "{error}");
}
