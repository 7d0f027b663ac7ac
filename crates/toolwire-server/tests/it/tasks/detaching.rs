//! When a call becomes a task, and what moves into it.

use serde_json::json;
use toolwire_protocol::wire::TaskStatus;
use toolwire_server::{Args, Ask, Context, Extension, Json, Question, Server, TaskPolicy, ToolError, tool};
use toolwire_store::Outcome;

use super::*;

#[derive(Deserialize, JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

async fn add(Args(sum): Args<Sum>) -> String {
    tokio::time::sleep(seconds(2)).await;
    (sum.a + sum.b).to_string()
}

#[tokio::test(start_paused = true)]
async fn a_call_becomes_a_task_where_its_caller_can_deal_with_that() {
    let bench = Bench::new();
    let server = bench.builder().tool(tool("add", add).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&server);
    let answer = client.call("add", json!({"a": 1, "b": 2})).await;
    let result = &answer["result"];
    assert_eq!((&result["resultType"], &result["status"]), (&json!("task"), &json!("working")), "{answer}");
    assert!(result["ttlMs"].as_u64().unwrap() > 0 && result["pollIntervalMs"] == 1000, "{answer}");
    let id = task_id(&answer);
    assert_eq!(bench.view(id).await.unwrap().head.status, TaskStatus::Working);
    let done = bench.ended(id).await;
    assert_eq!((done.head.status, &*told(&done)), (TaskStatus::Completed, "3"));

    let plain = modern(1, "tools/call", json!({"name": "add", "arguments": {"a": 1, "b": 2}, "task": {}}));
    assert_eq!(text(&client.0.ask(&plain).await), "3", "it did not say that it knows tasks");
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_the_arguments_is_said_at_once_or_by_the_task_of_a_client_that_asked_for_one() {
    let bench = Bench::new();
    let strict = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let server = bench
        .builder()
        .tool(tool("add", add).task(TaskPolicy::optional()))
        .tool(tool("raw", || async { "ran" }).input_schema(strict).task(TaskPolicy::optional()))
        .build()
        .unwrap();
    let mut client = Modern::connect(&server);
    for name in ["add", "raw"] {
        let answer = client.call(name, json!({"b": 2})).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
    let mut core = Wire::connect_as(&server, Some(ada()));
    core.handshake("2025-11-25", json!({})).await;
    for name in ["add", "raw"] {
        let answer = ask(&mut core, &core_call(name, json!({"b": 2}))).await;
        assert_eq!(answer["result"]["task"]["status"], "working", "{answer}");
        let ended = bench.ended(task_id(&answer)).await;
        assert!(ended.head.is_error, "{ended:?}");
        assert!(told(&ended).contains('a'), "{ended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn errors_of_tools_are_results_and_panics_are_failures() {
    let bench = Bench::new();
    let wrong = || async { Err::<String, _>(ToolError::message("it did not work")) };
    let gives_up = || -> String { panic!("oh no") };
    let panics = move || async move { gives_up() };
    let unfit = tool("unfit", || async { Json(json!({"n": "x"})) })
        .output_schema(json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
    let server = bench
        .builder()
        .tool(tool("wrong", wrong).task(TaskPolicy::optional()))
        .tool(tool("panics", panics).task(TaskPolicy::required()))
        .tool(unfit.task(TaskPolicy::optional()))
        .build()
        .unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("wrong").await;
    let ended = bench.ended(id).await;
    assert_eq!((ended.head.status, ended.head.is_error), (TaskStatus::Completed, true));
    assert_eq!(told(&ended), "it did not work");
    for (name, why) in [("panics", "the handler panicked"), ("unfit", "does not match its output schema")] {
        let id = client.start(name).await;
        let ended = bench.ended(id).await;
        assert_eq!(ended.head.status, TaskStatus::Failed, "{ended:?}");
        assert!(matches!(ended.outcome, Some(Outcome::Error(_))));
        assert!(told(&ended).contains(why), "{ended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn tools_that_are_tasks_only_refuse_those_who_cannot_deal_with_tasks() {
    let bench = Bench::new();
    let server = bench
        .builder()
        .tool(tool("must", || async { "done" }).task(TaskPolicy::required()))
        .tool(tool("plain", || async { "plain" }))
        .build()
        .unwrap();
    let mut client = Modern::connect(&server);
    let refused = client.0.ask(&modern(1, "tools/call", json!({"name": "must"}))).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    assert!(
        refused["error"]["data"]["requiredCapabilities"]["extensions"]["io.modelcontextprotocol/tasks"]
            .is_object(),
        "{refused}"
    );
    let mut core = Wire::legacy(&server, "2025-11-25").await;
    let refused = ask(&mut core, &request(1, "tools/call", json!({"name": "must"}))).await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    let refused = ask(&mut core, &core_call("plain", json!({}))).await;
    assert_eq!(refused["error"]["code"], -32601, "it has no tasks: {refused}");
    let listed = ask(&mut core, &request(1, "tools/list", json!({}))).await;
    assert_eq!(listed["result"]["tools"][0]["execution"]["taskSupport"], "required", "{listed}");
    assert!(listed["result"]["tools"][1].get("execution").is_none(), "{listed}");
    let mut older = Wire::legacy(&server, "2025-06-18").await;
    let refused = older.ask(&request(1, "tools/call", json!({"name": "must"}))).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(text(&refused).contains("2025-11-25"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_its_time_becomes_a_task_then_and_not_before() {
    let bench = Bench::new();
    let runs = Count::default();
    let counted = runs.clone();
    let work = move |cx: Context| {
        let counted = counted.clone();
        async move {
            let first = cx.once("first", async { counted.add() }).await.unwrap();
            tokio::time::sleep(seconds(if cx.arguments().len() > 2 { 1 } else { 5 })).await;
            cx.once("second", async { 2 }).await.unwrap();
            format!("{first} {}", cx.attempt())
        }
    };
    let server = bench
        .builder()
        .tool(tool("work", work).lenient().task(TaskPolicy::after(seconds(2))))
        .build()
        .unwrap();
    let mut client = Modern::connect(&server);
    assert_eq!(text(&client.call("work", json!({"quick": true})).await), "1 1");
    let started = tokio::time::Instant::now();
    let id = client.start("work").await;
    assert_eq!(started.elapsed(), seconds(2));
    assert_eq!(told(&bench.ended(id).await), "2 1");
    assert_eq!(runs.get(), 2, "what ran was moved, not begun anew");
    assert_eq!(started.elapsed().as_secs(), 5);
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct UserName {
    name: String,
}

impl Question for UserName {
    type Args = Nothing;

    fn message(_: &Self::Args) -> String {
        "Who are you?".to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_before_the_handler_runs_is_asked_before_there_is_a_task() {
    let bench = Bench::new();
    let greet = |Ask(who): Ask<UserName>, cx: Context| async move {
        tokio::time::sleep(seconds(1)).await;
        let sure = cx.elicit::<Name>("Sure?").key("sure").accepted().await.unwrap();
        format!("{} {}", who.name, sure.name)
    };
    let server = bench.builder().tool(tool("greet", greet).task(TaskPolicy::required())).build().unwrap();
    let mut client = Modern::connect(&server);
    let round = client.call("greet", json!({})).await;
    assert_eq!(round["result"]["resultType"], "input_required", "{round}");
    assert!(round["result"].get("taskId").is_none());
    let mut retry = call("greet", json!({}));
    retry["params"]["requestState"] = round["result"]["requestState"].clone();
    retry["params"]["inputResponses"] =
        json!({"UserName": {"action": "accept", "content": {"name": "Alice"}}});
    let id = task_id(&client.0.ask(&retry).await);
    assert_eq!(bench.asked(id).await, ["sure"]);
    bench.answer(id, "sure", json!({"name": "yes"})).await;
    assert_eq!(
        told(&bench.ended(id).await),
        "Alice yes",
        "the run that follows knows what was answered before"
    );

    // A client that asked for a task gets one, and the question is one of the task.
    let mut core = Wire::connect_as(&server, Some(ada()));
    core.handshake("2025-11-25", json!({"elicitation": {}})).await;
    let id = task_id(&ask(&mut core, &core_call("greet", json!({}))).await);
    assert_eq!(bench.asked(id).await, ["UserName"]);
    bench.answer(id, "UserName", json!({"name": "Bob"})).await;
    bench.when(id, |view| view.open.iter().any(|open| open.key == "sure")).await;
    bench.answer(id, "sure", json!({"name": "no"})).await;
    assert_eq!(told(&bench.ended(id).await), "Bob no");
}

#[tokio::test(start_paused = true)]
async fn a_task_goes_on_without_its_connection_and_knows_who_asked_for_it() {
    let bench = Bench::new();
    let whoami = |cx: Context, who: Option<Principal>| async move {
        tokio::time::sleep(seconds(3)).await;
        let name = cx.elicit::<Name>("Name?").key("name").accepted().await.unwrap().name;
        format!("{name} {} {}", who.unwrap().subject(), cx.caller().info().map_or("", |info| &info.name))
    };
    let server = bench.builder().tool(tool("whoami", whoami).task(TaskPolicy::optional())).build().unwrap();
    let mut core = Wire::connect_as(&server, Some(ada()));
    core.handshake("2025-11-25", json!({"elicitation": {}})).await;
    let id = task_id(&ask(&mut core, &core_call("whoami", json!({}))).await);
    drop(core);
    assert_eq!(bench.asked(id).await, ["name"]);
    bench.answer(id, "name", json!({"name": "me"})).await;
    assert_eq!(told(&bench.ended(id).await), "me ada t");
}

#[test]
fn what_only_a_request_has_cannot_be_taken_by_a_tool_that_has_tasks() {
    #[derive(Clone, serde::Serialize, Deserialize)]
    struct Tenant(String);
    let takes = || tool("t", |Extension(tenant): Extension<Tenant>| async move { tenant.0 });
    let may = || {
        tool(
            "t",
            |tenant: Option<Extension<Tenant>>| async move { tenant.map_or_else(String::new, |it| it.0.0) },
        )
    };
    let build = |route: toolwire_server::ToolRoute| Server::builder("t", "1").tool(route).build();
    assert!(build(takes()).is_ok());
    let error = build(takes().task(TaskPolicy::optional())).unwrap_err().to_string();
    assert!(error.contains("Tenant") && error.contains(".carry"), "{error}");
    assert!(build(may().task(TaskPolicy::optional())).is_ok());
    let session = |_: toolwire_server::Session<String>| async { "x" };
    assert!(build(tool("t", session).task(TaskPolicy::optional())).is_err());
    let carried = Server::builder("t", "1").carry::<Tenant>().tool(takes().task(TaskPolicy::optional()));
    let server = carried.build().unwrap();
    assert!(server.add_tool(tool("u", session).task(TaskPolicy::optional())).is_err());
    let twice = TaskPolicy::optional().revision(2).older(1, || async { "1" }).older(1, || async { "1" });
    assert!(build(tool("t", || async { "x" }).task(twice)).is_err());
    let same = TaskPolicy::optional().older(1, || async { "1" });
    assert!(build(tool("t", || async { "x" }).task(same)).is_err());
}
