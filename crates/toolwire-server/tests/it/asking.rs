//! Handlers that ask, in every revision that can.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwire_protocol::{ErrorCode, wire::CreateMessageRequestParams};
use toolwire_server::{
    Answer, Args, Ask, BoxError, Context, Extensions, IntoToolOutput, MemoryNonces, NeedInput, Principal,
    Question, Reply, Route, Server, ServerBuilder, StateKeys, ToolError,
    engine::{Arrival, Call, RequestOrigin},
    prompt, resource, tool,
};

use crate::wire::{PATIENCE, Wire, request};

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    yes: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn delete(cx: Context) -> Result<String, BoxError> {
    Ok(match cx.elicit::<Confirm>("Really?").key("ok").await? {
        Answer::Accept(Confirm { yes: true }) => "deleted".into(),
        Answer::Accept(_) => "kept".into(),
        Answer::Decline => "declined".into(),
        Answer::Cancel => "cancelled".into(),
    })
}

async fn both(cx: Context) -> Result<String, BoxError> {
    let who = async { cx.elicit::<Name>("Who?").key("who").accepted().await };
    let roots = async { cx.roots().key("roots").await };
    let (who, roots) = tokio::try_join!(who, roots)?;
    Ok(format!("{} has {} roots", who.name, roots.len()))
}

async fn two_rounds(cx: Context) -> Result<String, BoxError> {
    let first = cx.elicit::<Name>("First?").accepted().await?;
    let second = cx.elicit::<Name>(format!("Second, {}?", first.name)).accepted().await?;
    Ok(format!("{} and {}", first.name, second.name))
}

fn server() -> ServerBuilder {
    Server::builder("asker", "1.0")
        .tool(tool("delete", delete))
        .tool(tool("both", both))
        .tool(tool("two", two_rounds))
        .prompt(prompt("greet", |cx: Context| async move {
            let who = cx.elicit::<Name>("Who?").key("who").accepted().await?;
            Ok::<_, BoxError>(format!("Greet {}.", who.name))
        }))
        .resource(resource("ask://me", |cx: Context| async move {
            let who = cx.elicit::<Name>("Who?").key("who").accepted().await?;
            Ok::<_, BoxError>(who.name)
        }))
}

const V: &str = "io.modelcontextprotocol/protocolVersion";
const C: &str = "io.modelcontextprotocol/clientCapabilities";

fn call(id: i64, method: &str, mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({V: "2026-07-28", C: capabilities});
    request(id, method, params)
}

fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}})
}

/// Calls a tool of a modern server, round by round, with what `answer` says to each question.
async fn modern(
    wire: &mut Wire,
    method: &str,
    params: Value,
    answer: impl Fn(&str, &Value) -> Value,
) -> (Value, usize) {
    let mut params = params;
    for round in 1..=12 {
        let reply = wire.ask(&call(round, method, params.clone(), &everything())).await;
        if reply["result"]["resultType"] != "input_required" {
            return (reply, usize::try_from(round).unwrap());
        }
        params["requestState"] = reply["result"]["requestState"].clone();
        let questions = reply["result"]["inputRequests"].as_object().unwrap();
        params["inputResponses"] =
            questions.iter().map(|(key, question)| (key.clone(), answer(key, question))).collect();
    }
    panic!("it never ends");
}

fn accept(content: &Value) -> Value {
    json!({"action": "accept", "content": content})
}

fn text(reply: &Value) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}"))
}

/// Answers live questions until the answer with `id` comes.
async fn legacy(wire: &mut Wire, message: Value, answer: impl Fn(&Value) -> Value) -> Value {
    let answered = async {
        wire.send(&message).await;
        loop {
            let received = wire.receive().await;
            if received.get("method").is_none() {
                break received;
            }
            let reply = json!({"jsonrpc": "2.0", "id": received["id"], "result": answer(&received)});
            wire.send(&reply).await;
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("the call was not answered")
}

#[tokio::test]
async fn the_three_answers_are_told_apart_in_both_eras() {
    let server = server().build().unwrap();
    for (answer, expected) in [
        (accept(&json!({"yes": true})), "deleted"),
        (accept(&json!({"yes": false})), "kept"),
        (json!({"action": "decline"}), "declined"),
        (json!({"action": "cancel"}), "cancelled"),
    ] {
        let mut wire = Wire::connect(&server);
        let (reply, rounds) =
            modern(&mut wire, "tools/call", json!({"name": "delete"}), |_, _| answer.clone()).await;
        assert_eq!((text(&reply), rounds), (expected, 2));
        for version in ["2025-06-18", "2025-11-25"] {
            let mut wire = Wire::legacy_with(&server, version, json!({"elicitation": {}})).await;
            let reply = legacy(&mut wire, request(1, "tools/call", json!({"name": "delete"})), |asked| {
                assert_eq!(asked["method"], "elicitation/create");
                assert_eq!(asked["params"]["requestedSchema"]["properties"]["yes"]["type"], "boolean");
                answer.clone()
            });
            assert_eq!(text(&reply.await), expected, "{version}");
        }
    }
}

#[tokio::test]
async fn questions_side_by_side_are_one_round() {
    let server = server().build().unwrap();
    let answer = |key: &str, _: &Value| match key {
        "who" => accept(&json!({"name": "Ada"})),
        "roots" => json!({"roots": [{"uri": "file:///a"}]}),
        other => panic!("{other}"),
    };
    let mut wire = Wire::connect(&server);
    let (reply, rounds) = modern(&mut wire, "tools/call", json!({"name": "both"}), answer).await;
    assert_eq!((text(&reply), rounds), ("Ada has 1 roots", 2));
    let mut wire = Wire::legacy_with(&server, "2025-11-25", everything()).await;
    let reply = legacy(&mut wire, request(1, "tools/call", json!({"name": "both"})), |asked| {
        answer(if asked["method"] == "roots/list" { "roots" } else { "who" }, asked)
    });
    assert_eq!(text(&reply.await), "Ada has 1 roots");
}

#[tokio::test]
async fn earlier_answers_are_carried_along() {
    let server = server().build().unwrap();
    let mut wire = Wire::connect(&server);
    let (reply, rounds) = modern(&mut wire, "tools/call", json!({"name": "two"}), |_, question| {
        let second = question["params"]["message"].as_str().unwrap().starts_with("Second, Ada");
        accept(&json!({"name": if second { "Grace" } else { "Ada" }}))
    })
    .await;
    assert_eq!((text(&reply), rounds), ("Ada and Grace", 3));
}

#[tokio::test]
async fn prompts_and_resources_ask_as_well() {
    let server = server().build().unwrap();
    let ada = |_: &str, _: &Value| accept(&json!({"name": "Ada"}));
    let mut wire = Wire::connect(&server);
    let (reply, _) = modern(&mut wire, "prompts/get", json!({"name": "greet"}), ada).await;
    assert_eq!(reply["result"]["messages"][0]["content"]["text"], "Greet Ada.");
    let (reply, _) = modern(&mut wire, "resources/read", json!({"uri": "ask://me"}), ada).await;
    assert_eq!(reply["result"]["contents"][0]["text"], "Ada");
    assert_eq!(reply["result"]["ttlMs"], 0);
}

#[tokio::test]
async fn without_the_capability_nothing_is_asked() {
    let server = server().build().unwrap();
    let mut wire = Wire::connect(&server);
    let reply = wire.ask(&call(1, "tools/call", json!({"name": "delete"}), &json!({}))).await;
    assert_eq!(reply["error"]["code"], -32021, "{reply}");
    assert!(reply["error"]["data"]["requiredCapabilities"]["elicitation"].is_object());
    // A client that can only be sent to URLs cannot be shown a form.
    let reply = wire
        .ask(&call(2, "tools/call", json!({"name": "delete"}), &json!({"elicitation": {"url": {}}})))
        .await;
    assert_eq!(reply["error"]["code"], -32021, "{reply}");
    let mut wire = Wire::legacy(&server, "2025-11-25").await;
    let reply = wire.ask(&request(1, "tools/call", json!({"name": "delete"}))).await;
    assert_eq!(reply["result"]["isError"], true, "{reply}");
    let reply = wire.ask(&request(2, "prompts/get", json!({"name": "greet"}))).await;
    assert_eq!(reply["error"]["code"], -32600, "{reply}");
    // 2025-03-26 has no elicitation, whatever the client declares.
    let mut wire = Wire::legacy_with(&server, "2025-03-26", everything()).await;
    let reply = wire.ask(&request(1, "tools/call", json!({"name": "delete"}))).await;
    assert_eq!(reply["result"]["isError"], true, "{reply}");
}

#[tokio::test]
async fn missing_answers_are_asked_again_unknown_ones_ignored_and_state_is_optional() {
    let server = server().build().unwrap();
    let mut wire = Wire::connect(&server);
    let first = wire.ask(&call(1, "tools/call", json!({"name": "delete"}), &everything())).await;
    let state = first["result"]["requestState"].clone();
    for (id, responses) in [(2, json!({})), (3, json!({"other": accept(&json!({"yes": true}))}))] {
        let params = json!({"name": "delete", "requestState": state, "inputResponses": responses});
        let reply = wire.ask(&call(id, "tools/call", params, &everything())).await;
        assert!(reply["result"]["inputRequests"]["ok"].is_object(), "{reply}");
    }
    let params = json!({"name": "delete", "inputResponses": {"ok": accept(&json!({"yes": true})), "x": 1}});
    let reply = wire.ask(&call(4, "tools/call", params, &everything())).await;
    assert_eq!(text(&reply), "deleted");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_once_more() {
    let server = server().build().unwrap();
    let mut wire = Wire::connect(&server);
    let wrong = |_: &str, _: &Value| accept(&json!({"yes": "perhaps"}));
    let (reply, rounds) = modern(&mut wire, "tools/call", json!({"name": "delete"}), wrong).await;
    assert_eq!(rounds, 3);
    assert_eq!(reply["result"]["isError"], true);
    assert!(text(&reply).contains("/yes"), "{reply}");
    let asked = AtomicUsize::new(0);
    let mut wire = Wire::legacy_with(&server, "2025-11-25", everything()).await;
    let reply = legacy(&mut wire, request(1, "tools/call", json!({"name": "delete"})), |_| {
        let value = if asked.fetch_add(1, Ordering::Relaxed) == 0 { json!("perhaps") } else { json!(true) };
        accept(&json!({"yes": value}))
    });
    assert_eq!(text(&reply.await), "deleted");
}

#[tokio::test]
async fn a_state_is_refused_for_anything_but_its_own_request() {
    let keys = || StateKeys::new(["a secret that is long enough to be one"]).unwrap();
    let one = server().state_keys(keys()).build().unwrap();
    let two = server().state_keys(keys()).build().unwrap();
    let stranger = server().build().unwrap();
    let first =
        Wire::connect(&one).ask(&call(1, "tools/call", json!({"name": "delete"}), &everything())).await;
    let state = first["result"]["requestState"].as_str().unwrap().to_owned();
    let retry = |name: &str, state: &str| {
        let responses = json!({"ok": accept(&json!({"yes": true}))});
        call(
            2,
            "tools/call",
            json!({"name": name, "requestState": state, "inputResponses": responses}),
            &everything(),
        )
    };
    // Another replica with the same key takes it.
    assert_eq!(text(&Wire::connect(&two).ask(&retry("delete", &state)).await), "deleted");
    let mut messages = Vec::new();
    for (server, message) in [
        (&stranger, retry("delete", &state)),
        (&one, retry("two", &state)),
        (&one, retry("delete", &format!("{state}-TAMPERED"))),
        (&one, retry("delete", "")),
        (&server().state_keys(keys().ttl(std::time::Duration::ZERO)).build().unwrap(), retry("delete", "x")),
    ] {
        let reply = Wire::connect(server).ask(&message).await;
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
        messages.push(reply["error"]["message"].clone());
    }
    assert!(messages.windows(2).all(|pair| pair[0] == pair[1]), "one and the same error: {messages:?}");
    let expired = server().state_keys(keys().ttl(std::time::Duration::ZERO)).build().unwrap();
    let first =
        Wire::connect(&expired).ask(&call(1, "tools/call", json!({"name": "delete"}), &everything())).await;
    let reply = Wire::connect(&expired)
        .ask(&retry("delete", first["result"]["requestState"].as_str().unwrap()))
        .await;
    assert_eq!(reply["error"]["code"], -32602);
}

#[tokio::test]
async fn a_step_is_taken_once_and_the_key_stays() {
    let runs = Arc::new(AtomicUsize::new(0));
    let steps = Arc::new(AtomicUsize::new(0));
    let (counted_runs, counted_steps) = (Arc::clone(&runs), Arc::clone(&steps));
    let pay = move |cx: Context| {
        counted_runs.fetch_add(1, Ordering::Relaxed);
        let steps = Arc::clone(&counted_steps);
        async move {
            let before = cx.idempotency_key("pay");
            let plan = cx
                .once("plan", async {
                    tokio::task::yield_now().await;
                    steps.fetch_add(1, Ordering::Relaxed);
                    before.clone()
                })
                .await?;
            cx.elicit::<Confirm>("Pay?").accepted().await?;
            Ok::<_, BoxError>((plan == cx.idempotency_key("pay")).to_string())
        }
    };
    let server = Server::builder("asker", "1.0").tool(tool("pay", pay)).build().unwrap();
    let mut wire = Wire::connect(&server);
    let (reply, _) =
        modern(&mut wire, "tools/call", json!({"name": "pay"}), |_, _| accept(&json!({"yes": true}))).await;
    assert_eq!(text(&reply), "true");
    assert_eq!((runs.load(Ordering::Relaxed), steps.load(Ordering::Relaxed)), (2, 1));
}

#[tokio::test]
async fn a_name_that_is_used_for_two_steps_is_refused() {
    async fn pages(cx: Context) -> Result<String, BoxError> {
        let mut sum = 0;
        for turn in 1..=2 {
            sum += cx.once("page", async move { turn }).await?;
        }
        Ok(sum.to_string())
    }
    async fn retries(cx: Context) -> Result<String, BoxError> {
        for turn in 1..=2 {
            let tried =
                cx.try_once("try", async move { if turn == 1 { Err("no") } else { Ok(turn) } }).await?;
            if let Ok(turn) = tried {
                return Ok(turn.to_string());
            }
        }
        Ok("never".to_owned())
    }
    let server = Server::builder("asker", "1.0")
        .tool(tool("pages", pages))
        .tool(tool("retries", retries))
        .build()
        .unwrap();
    let mut legacy = Wire::legacy(&server, "2025-11-25").await;
    let mut modern = Wire::connect(&server);
    for name in ["pages", "retries"] {
        let params = json!({"name": name});
        for reply in [
            legacy.ask(&request(name, "tools/call", params.clone())).await,
            modern.ask(&crate::wire::modern(name, "tools/call", params.clone())).await,
        ] {
            if name == "retries" {
                assert_eq!(text(&reply), "2", "{reply}");
            } else {
                // The first turn's result is never taken for the second's.
                assert_eq!(reply["error"]["code"], -32603, "{reply}");
                let message = reply["error"]["message"].as_str().unwrap();
                assert!(message.starts_with("the step \"page\" is named twice"), "{message}");
            }
        }
    }
}

#[tokio::test]
async fn a_changed_question_never_takes_an_old_answer() {
    let count = Arc::new(AtomicUsize::new(0));
    let ask = move |cx: Context| {
        let now = count.fetch_add(1, Ordering::Relaxed);
        async move {
            // Another number of files in the second run.
            let message = format!("Delete {} files?", if now == 0 { 1 } else { 1000 });
            cx.elicit::<Confirm>(message).key("ok").accepted().await?;
            Ok::<_, BoxError>("deleted")
        }
    };
    let server = Server::builder("asker", "1.0").tool(tool("ask", ask)).build().unwrap();
    let mut wire = Wire::connect(&server);
    let (reply, rounds) =
        modern(&mut wire, "tools/call", json!({"name": "ask"}), |_, _| accept(&json!({"yes": true}))).await;
    assert_eq!((text(&reply), rounds), ("deleted", 3));
}

#[tokio::test]
async fn the_replay_check_finds_a_handler_that_asks_something_else() {
    let count = Arc::new(AtomicUsize::new(0));
    let fickle = move |cx: Context| {
        let now = count.fetch_add(1, Ordering::Relaxed);
        async move {
            cx.elicit::<Confirm>(format!("Number {now}?")).key("ok").accepted().await?;
            Ok::<_, BoxError>("done")
        }
    };
    let server = server().tool(tool("fickle", fickle)).replay_check(true).build().unwrap();
    let mut wire = Wire::connect(&server);
    let reply = wire.ask(&call(1, "tools/call", json!({"name": "fickle"}), &everything())).await;
    assert!(reply["error"]["message"].as_str().unwrap().contains("worded differently"), "{reply}");
    let (reply, _) =
        modern(&mut wire, "tools/call", json!({"name": "delete"}), |_, _| accept(&json!({"yes": true})))
            .await;
    assert_eq!(text(&reply), "deleted");
}

#[derive(Deserialize, JsonSchema)]
struct Trip {
    to: String,
}

#[derive(Deserialize, JsonSchema)]
struct Traveller {
    name: String,
}

impl Question for Traveller {
    type Args = Trip;

    fn message(trip: &Trip) -> String {
        format!("Who travels to {}?", trip.to)
    }
}

impl Question for Confirm {
    type Args = Trip;

    fn message(trip: &Trip) -> String {
        format!("Really to {}?", trip.to)
    }
}

#[tokio::test]
async fn questions_as_arguments_are_asked_together_before_the_handler_runs() {
    async fn book(Args(trip): Args<Trip>, Ask(who): Ask<Traveller>, Ask(sure): Ask<Confirm>) -> String {
        format!("{} to {}: {}", who.name, trip.to, sure.yes)
    }
    let server = Server::builder("asker", "1.0").tool(tool("book", book)).build().unwrap();
    let mut wire = Wire::connect(&server);
    let params = json!({"name": "book", "arguments": {"to": "Oslo"}});
    let (reply, rounds) = modern(&mut wire, "tools/call", params.clone(), |key, question| {
        assert!(question["params"]["message"].as_str().unwrap().contains("Oslo"));
        accept(&if key == "Traveller" { json!({"name": "Ada"}) } else { json!({"yes": true}) })
    })
    .await;
    assert_eq!((text(&reply), rounds), ("Ada to Oslo: true", 2));
    let (reply, _) = modern(&mut wire, "tools/call", params, |_, _| json!({"action": "decline"})).await;
    assert_eq!(reply["result"]["isError"], true, "{reply}");
}

#[tokio::test]
async fn questions_returned_by_hand_work_in_both_eras() {
    async fn hello(cx: Context) -> Result<Reply, BoxError> {
        match cx.input::<Name>("who")? {
            None => Ok(NeedInput::new().elicit::<Name>("who", "Who?")?.remember(&7)?.into_tool_output()?),
            Some(answer) => {
                let name = answer.accepted().map_or_else(|| "stranger".to_owned(), |who| who.name);
                let remembered: i32 = cx.remembered().unwrap_or_default();
                Ok(format!("{name} {remembered}").into_tool_output()?)
            }
        }
    }
    let server = Server::builder("asker", "1.0").tool(tool("hello", hello)).build().unwrap();
    let mut wire = Wire::connect(&server);
    let ada = accept(&json!({"name": "Ada"}));
    let (reply, rounds) = modern(&mut wire, "tools/call", json!({"name": "hello"}), |_, _| ada.clone()).await;
    assert_eq!((text(&reply), rounds), ("Ada 7", 2));
    let mut wire = Wire::legacy_with(&server, "2025-06-18", everything()).await;
    let reply = legacy(&mut wire, request(1, "tools/call", json!({"name": "hello"})), |_| ada.clone()).await;
    assert_eq!(text(&reply), "Ada 7");
}

#[tokio::test]
async fn a_model_and_a_url_are_asked_in_each_way() {
    async fn ask(cx: Context) -> Result<String, BoxError> {
        let request = CreateMessageRequestParams::new(vec![], 10_u64);
        let said = cx.sample(request).key("model").await?;
        let visited = cx.elicit_url("https://example.com/pay", "Please pay").key("pay").await?;
        if let Answer::Accept(visit) = &visited {
            visit.complete().await;
        }
        let said = said.content.iter().find_map(|content| content.as_text().map(str::to_owned));
        Ok(format!("{} {}", said.unwrap_or_default(), matches!(visited, Answer::Accept(_))))
    }
    let server = Server::builder("asker", "1.0").tool(tool("ask", ask)).build().unwrap();
    let said = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}});
    let mut wire = Wire::connect(&server);
    let (reply, _) = modern(&mut wire, "tools/call", json!({"name": "ask"}), |key, question| {
        assert_eq!(question["params"].get("elicitationId"), None);
        if key == "model" { said.clone() } else { json!({"action": "accept"}) }
    })
    .await;
    assert_eq!(text(&reply), "hi true");
    let mut wire = Wire::legacy_with(&server, "2025-11-25", everything()).await;
    wire.send(&request(1, "tools/call", json!({"name": "ask"}))).await;
    let mut seen = Vec::new();
    let reply = loop {
        let received = wire.receive().await;
        let Some(method) = received["method"].as_str() else { break received };
        seen.push(method.to_owned());
        let result = match method {
            "sampling/createMessage" => said.clone(),
            "elicitation/create" => {
                assert!(received["params"]["elicitationId"].is_string());
                json!({"action": "accept"})
            }
            _ => continue,
        };
        wire.send(&json!({"jsonrpc": "2.0", "id": received["id"], "result": result})).await;
    };
    assert_eq!(text(&reply), "hi true");
    assert_eq!(seen, ["sampling/createMessage", "elicitation/create", "notifications/elicitation/complete"]);
}

#[tokio::test]
async fn a_url_that_comes_first_is_an_error_where_the_revision_has_one() {
    let login = |_: Context| async {
        NeedInput::new().url_first("login", "https://example.com/login", "Please log in").into_tool_output()
    };
    let server = Server::builder("asker", "1.0").tool(tool("login", login)).build().unwrap();
    let mut wire = Wire::legacy_with(&server, "2025-11-25", everything()).await;
    let reply = wire.ask(&request(1, "tools/call", json!({"name": "login"}))).await;
    assert_eq!(reply["error"]["code"], -32042, "{reply}");
    let elicitation = &reply["error"]["data"]["elicitations"][0];
    assert_eq!(
        (&elicitation["mode"], &elicitation["url"]),
        (&json!("url"), &json!("https://example.com/login"))
    );
    assert!(elicitation["elicitationId"].is_string());
    let mut wire = Wire::connect(&server);
    let reply = wire.ask(&call(1, "tools/call", json!({"name": "login"}), &everything())).await;
    assert_eq!(reply["result"]["inputRequests"]["login"]["params"]["mode"], "url", "{reply}");
    let mut wire = Wire::legacy_with(&server, "2025-06-18", everything()).await;
    let reply = wire.ask(&request(1, "tools/call", json!({"name": "login"}))).await;
    assert_eq!(reply["error"]["code"], -32600, "{reply}");
}

#[tokio::test]
async fn a_state_that_may_be_used_once_is_refused_the_second_time() {
    let keys = StateKeys::new(["a secret that is long enough to be one"]).unwrap();
    let server = server().state_keys(keys.single_use(MemoryNonces::default())).build().unwrap();
    let mut wire = Wire::connect(&server);
    let first = wire.ask(&call(1, "tools/call", json!({"name": "delete"}), &everything())).await;
    let retry = |id| {
        let responses = json!({"ok": accept(&json!({"yes": true}))});
        let state = &first["result"]["requestState"];
        call(
            id,
            "tools/call",
            json!({"name": "delete", "requestState": state, "inputResponses": responses}),
            &everything(),
        )
    };
    assert_eq!(text(&wire.ask(&retry(2)).await), "deleted");
    assert_eq!(wire.ask(&retry(3)).await["error"]["code"], -32602);
}

/// A transport that knows who is calling.
async fn as_caller(server: &Server, who: Option<&str>, message: &Value) -> Value {
    let message = toolwire_protocol::Message::parse(&message.to_string().into()).unwrap();
    let toolwire_protocol::Message::Request(request) = message else { panic!("not a request") };
    let peek = toolwire_protocol::peek::Peek::of(&request.params);
    let mut extensions = Extensions::default();
    if let Some(who) = who {
        extensions.insert(Principal::new(who));
    }
    let origin = RequestOrigin::Modern(toolwire_protocol::Version::LATEST);
    let arrival = Arrival::new(server.ledger(), 0, extensions);
    let outcome = Call::new(server, request, peek.into(), origin, arrival).unwrap().await;
    serde_json::from_slice(&outcome.into_body().unwrap()).unwrap()
}

#[tokio::test]
async fn a_state_belongs_to_its_caller() {
    let server = server().build().unwrap();
    let first =
        as_caller(&server, Some("ada"), &call(1, "tools/call", json!({"name": "delete"}), &everything()))
            .await;
    let responses = json!({"ok": accept(&json!({"yes": true}))});
    let params = json!({"name": "delete", "requestState": first["result"]["requestState"], "inputResponses": responses});
    let retry = call(2, "tools/call", params, &everything());
    for stranger in [None, Some("eve")] {
        assert_eq!(as_caller(&server, stranger, &retry).await["error"]["code"], -32602);
    }
    assert_eq!(text(&as_caller(&server, Some("ada"), &retry).await), "deleted");
}

#[tokio::test]
async fn a_state_cannot_be_moved_to_other_arguments_by_what_does_not_decode() {
    let server = server().build().unwrap();
    let deep = format!("{}{}", "[".repeat(130), "]".repeat(130));
    for junk in ["1e999", "\"\\ud800\"", "{\"y\":1,\"y\":2}", &deep] {
        let text = |id: i64, name: &str, more: &str| {
            let meta = json!({V: "2026-07-28", C: everything()});
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","x":{junk},"_meta":{meta}{more}}}}}"#
            )
        };
        let mut wire = Wire::connect(&server);
        // No state is made for a request that nobody can decode.
        wire.send_text(&text(1, "both", "")).await;
        let refused = wire.receive().await;
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &json!(1)), "{refused}");
        // Nor is one that was made for another request accepted with it.
        let made = wire.ask(&call(2, "tools/call", json!({"name": "both"}), &everything())).await;
        let state = &made["result"]["requestState"];
        let more =
            format!(r#","requestState":{state},"inputResponses":{{"ok":{}}}"#, accept(&json!({"yes": true})));
        wire.send_text(&text(3, "delete", &more)).await;
        assert_eq!(wire.receive().await["error"]["code"], -32600);
    }
}

#[tokio::test]
async fn a_resource_is_read_by_its_uri_whatever_name_comes_with_it() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let targets = seen.clone();
    let server = Server::builder("t", "1")
        .resource(resource("note://public", move |cx: Context| {
            targets.lock().unwrap().push(cx.target().map(str::to_owned));
            async { "text" }
        }))
        .build()
        .unwrap();
    let params = json!({"uri": "note://public", "name": "note://secret"});
    let answer = Wire::connect(&server).ask(&call(1, "resources/read", params, &json!({}))).await;
    assert_eq!(answer["result"]["contents"][0]["uri"], "note://public", "{answer}");
    assert_eq!(*seen.lock().unwrap(), [Some("note://public".to_owned())]);
}

/// Calls what it is around until it succeeds, at most twice.
#[derive(Clone)]
struct Retry<S>(S);

impl tower_service::Service<Context> for Retry<Route> {
    type Response = Reply;
    type Error = toolwire_protocol::RpcError;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, Self::Error>> + Send>>;

    fn poll_ready(&mut self, task: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        self.0.poll_ready(task)
    }

    fn call(&mut self, cx: Context) -> Self::Future {
        let mut inner = self.0.clone();
        Box::pin(async move {
            match inner.call(cx.clone()).await {
                Err(_) => inner.call(cx).await,
                reply => reply,
            }
        })
    }
}

#[tokio::test]
async fn a_handler_that_a_layer_calls_again_takes_no_step_twice() {
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&steps);
    let flaky = move |cx: Context| {
        let (steps, attempt) = (Arc::clone(&counted), counted.load(Ordering::Relaxed));
        async move {
            let taken = cx.once("step", async { steps.fetch_add(1, Ordering::Relaxed) + 1 }).await?;
            if attempt == 0 {
                return Err(ToolError::rpc(ErrorCode::INTERNAL_ERROR, "flaky"));
            }
            Ok(taken.to_string())
        }
    };
    let retry = tower_layer::layer_fn(Retry::<Route>);
    let server = Server::builder("t", "1").tool(tool("flaky", flaky).layer(retry)).build().unwrap();
    let reply =
        Wire::connect(&server).ask(&crate::wire::modern(1, "tools/call", json!({"name": "flaky"}))).await;
    assert_eq!(text(&reply), "1", "{reply}");
    assert_eq!(steps.load(Ordering::Relaxed), 1);
}

/// What a layer has seen of each round: which one it was, and how it ended.
#[derive(Clone, Default)]
struct Seen(Arc<std::sync::Mutex<Vec<(u32, &'static str)>>>);

impl tower_layer::Layer<Route> for Seen {
    type Service = Seeing;

    fn layer(&self, inner: Route) -> Seeing {
        Seeing { inner, seen: self.clone() }
    }
}

#[derive(Clone)]
struct Seeing {
    inner: Route,
    seen: Seen,
}

impl tower_service::Service<Context> for Seeing {
    type Response = Reply;
    type Error = toolwire_protocol::RpcError;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, Self::Error>> + Send>>;

    fn poll_ready(&mut self, task: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(task)
    }

    fn call(&mut self, cx: Context) -> Self::Future {
        let (answer, seen) = (self.inner.call(cx.clone()), self.seen.clone());
        Box::pin(async move {
            let reply = answer.await;
            let ended = match &reply {
                Ok(Reply::InputRequired(_)) => "questions",
                Ok(_) => "result",
                Err(_) => "error",
            };
            seen.0.lock().unwrap().push((cx.round(), ended));
            reply
        })
    }
}

#[tokio::test]
async fn layers_see_how_each_round_ends_and_which_one_it_is() {
    for replay_check in [false, true] {
        let (outer, inner) = (Seen::default(), Seen::default());
        let server = Server::builder("asker", "1.0")
            .replay_check(replay_check)
            .tool(tool("two", two_rounds).layer(inner.clone()))
            .layer(outer.clone())
            .build()
            .unwrap();
        let mut wire = Wire::connect(&server);
        let (answer, _) =
            modern(&mut wire, "tools/call", json!({"name": "two"}), |_, _| accept(&json!({"name": "Ada"})))
                .await;
        assert_eq!(text(&answer), "Ada and Ada");
        let mut expected = vec![(1, "questions"), (2, "questions"), (3, "result")];
        if replay_check {
            // The handler is run once more before its questions go out.
            expected =
                vec![(1, "questions"), (1, "questions"), (2, "questions"), (2, "questions"), (3, "result")];
        }
        assert_eq!(*inner.0.lock().unwrap(), expected);
        assert_eq!(*outer.0.lock().unwrap(), expected);
    }
}
