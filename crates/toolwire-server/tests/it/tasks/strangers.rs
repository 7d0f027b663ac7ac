//! Tasks that a server cannot run, because it has other keys, is another server, or lacks something.

use serde::{Deserialize as De, Serialize};
use toolwire_protocol::Version;
use toolwire_server::{Context, Extensions, StateKeys, TaskPolicy, ToolRoute, tool};
use toolwire_store::{NewTask, Quota, TaskRequest};
use toolwire_transport::{LocalPeer, memory};

use super::*;

const OLD: &str = "the old secret, which is long enough";
const NEW: &str = "the new secret, which is long enough as well";
const DAY: u64 = 24 * 60 * 60;

/// Asks for a name, and says who has run it for the how-manyth time.
fn asks(who: &'static str, policy: TaskPolicy) -> ToolRoute {
    let work = move |cx: Context| async move {
        let name = cx.elicit::<Name>("Name?").key("n").accepted().await;
        format!("{who} {} {}", name.map_or_else(|error| error.to_string(), |name| name.name), cx.attempt())
    };
    tool("work", work).task(policy)
}

fn keys<const N: usize>(secrets: [&str; N]) -> StateKeys {
    StateKeys::new(secrets).unwrap()
}

/// Answers a question as a client does.
async fn update(client: &mut Modern, id: TaskId, key: &str, content: Value) -> Value {
    let reply = json!({"action": "accept", "content": content});
    let params = json!({"taskId": id.to_string(), "inputResponses": {key: reply}});
    let mut update = modern(7, "tasks/update", params);
    update["params"]["_meta"][CAPABILITIES] = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    ask(&mut client.0, &update).await
}

/// A task of this server that waits for its answer, when the server is gone.
async fn left_by(bench: &Bench, server: Server) -> TaskId {
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    bench.asked(id).await;
    drop(client);
    server.shutdown();
    tokio::time::sleep(seconds(30)).await;
    id
}

#[tokio::test(start_paused = true)]
async fn a_node_with_keys_leaves_what_is_not_sealed_to_nodes_without() {
    let bench = Bench::new();
    let plain = || bench.builder().tool(asks("plain", TaskPolicy::optional())).build().unwrap();
    let id = left_by(&bench, plain()).await;
    bench.answer(id, "n", json!({"name": "x"})).await;
    let route = asks("sealing", TaskPolicy::optional());
    let sealing = bench.builder().state_keys(keys([NEW])).tool(route).build().unwrap();
    let _serving = Wire::connect(&sealing);
    tokio::time::sleep(seconds(1000)).await;
    assert!(!bench.view(id).await.unwrap().head.status.is_terminal());
    let plain = plain();
    let _serving = Wire::connect(&plain);
    let began = tokio::time::Instant::now();
    assert_eq!(told(&bench.ended(id).await), "plain x 1", "being given back is no attempt");
    assert!(began.elapsed() < seconds(1000), "{:?}", began.elapsed());
}

/// Lets so many seconds pass, with claims at least twice an hour.
async fn pass(time: u64) {
    for _ in 0..time / 900 {
        tokio::time::advance(seconds(600)).await;
        tokio::time::sleep(seconds(300)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_no_node_can_open_fails_after_a_day() {
    let bench = Bench::new();
    let plain = bench.builder().tool(asks("plain", TaskPolicy::optional())).build().unwrap();
    let id = left_by(&bench, plain).await;
    bench.answer(id, "n", json!({"name": "x"})).await;
    let route = asks("sealing", TaskPolicy::optional());
    let sealing = bench.builder().state_keys(keys([NEW])).tool(route).build().unwrap();
    let _serving = Wire::connect(&sealing);
    tokio::time::sleep(seconds(300)).await;
    pass(DAY - 900).await;
    assert!(!bench.view(id).await.unwrap().head.status.is_terminal());
    pass(1800).await;
    let view = bench.view(id).await.unwrap();
    assert_eq!(view.head.status, TaskStatus::Failed, "{view:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_other_nodes_run_does_not_fail_where_it_was_met_a_day_ago() {
    let bench = Bench::new();
    let work = |cx: Context| async move {
        let name = cx.elicit::<Name>("Name?").key("n").accepted().await.unwrap().name;
        cx.sleep("t", seconds(DAY + 3600)).await.unwrap();
        name
    };
    let route = || tool("work", work).task(TaskPolicy::optional());
    let plain = || bench.builder().tool(route()).build().unwrap();
    let id = left_by(&bench, plain()).await;
    bench.answer(id, "n", json!({"name": "x"})).await;
    let sealing = bench.builder().state_keys(keys([NEW])).tool(route()).build().unwrap();
    let _serving = Wire::connect(&sealing);
    tokio::time::sleep(seconds(10)).await;
    let other = plain();
    let serving = Wire::connect(&other);
    tokio::time::sleep(seconds(600)).await;
    assert!(!bench.view(id).await.unwrap().head.status.is_terminal(), "it sleeps for a day");
    drop(serving);
    other.shutdown();
    tokio::time::advance(seconds(DAY + 3600)).await;
    tokio::time::sleep(seconds(300)).await;
    let view = bench.view(id).await.unwrap();
    assert!(!view.head.status.is_terminal(), "it was claimed, and is left to others: {view:?}");
    let other = plain();
    let _serving = Wire::connect(&other);
    assert_eq!(told(&bench.ended(id).await), "x");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_given_back_keeps_its_questions() {
    let bench = Bench::new();
    let work = |cx: Context| async move {
        let name = cx.elicit::<Name>("Name?").key("n").accepted();
        let (name, slept) = tokio::join!(name, cx.sleep("t", seconds(100)));
        slept.unwrap();
        name.unwrap().name
    };
    let route = || tool("work", work).task(TaskPolicy::optional());
    let id = left_by(&bench, bench.builder().tool(route()).build().unwrap()).await;
    let sealing = bench.builder().state_keys(keys([NEW])).tool(route()).build().unwrap();
    let _serving = Wire::connect(&sealing);
    tokio::time::sleep(seconds(1000)).await;
    assert_eq!(bench.asked(id).await, ["n"], "its time has come, and it was claimed and given back");
    let plain = bench.builder().tool(route()).build().unwrap();
    let _serving = Wire::connect(&plain);
    bench.answer(id, "n", json!({"name": "x"})).await;
    assert_eq!(told(&bench.ended(id).await), "x");
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_sealed_with_the_key_of_its_task_wherever_it_comes_in() {
    for policy in [TaskPolicy::optional(), TaskPolicy::optional().live()] {
        let bench = Bench::new();
        let old = bench.builder().state_keys(keys([OLD])).tool(asks("old", policy.clone())).build().unwrap();
        let mut client = Modern::connect(&old);
        let id = client.start("work").await;
        let key = bench.asked(id).await.remove(0);
        // A replica that has its new key already, and another revision, so that it runs nothing of the old ones.
        let route = asks("new", policy.revision(2));
        let new = bench.builder().state_keys(keys([NEW, OLD])).tool(route).build().unwrap();
        let mut client = Modern::connect(&new);
        let taken = update(&mut client, id, &key, json!({"name": "x"})).await;
        assert_eq!(taken["result"]["resultType"], "complete", "{taken}");
        assert_eq!(told_by(&mut client, id, &bench).await, "old x 1");
    }
}

async fn get(client: &mut Modern, id: TaskId) -> Value {
    let mut get = modern(8, "tasks/get", json!({"taskId": id.to_string()}));
    get["params"]["_meta"][CAPABILITIES] = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    ask(&mut client.0, &get).await
}

/// What a client hears of a task that has ended.
async fn told_by(client: &mut Modern, id: TaskId, bench: &Bench) -> String {
    bench.ended(id).await;
    let answer = get(client, id).await;
    answer["result"]["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_replica_without_the_key_of_a_task_takes_no_answers_to_it() {
    let bench = Bench::new();
    let sealing = || {
        let route = asks("sealing", TaskPolicy::optional());
        bench.builder().state_keys(keys([NEW])).tool(route).build().unwrap()
    };
    let id = left_by(&bench, sealing()).await;
    let key = bench.asked(id).await.remove(0);
    for builder in [bench.builder(), bench.builder().state_keys(keys([OLD]))] {
        let other = builder.tool(asks("other", TaskPolicy::optional())).build().unwrap();
        let refused = update(&mut Modern::connect(&other), id, &key, json!({"name": "x"})).await;
        assert_eq!(refused["error"]["code"], -32603, "{refused}");
        assert_eq!(refused["error"]["data"]["retry"], true, "another replica may take it: {refused}");
        assert_eq!(bench.asked(id).await, [key.as_str()], "nothing is stored in clear");
    }
    let sealing = sealing();
    let mut client = Modern::connect(&sealing);
    update(&mut client, id, &key, json!({"name": "x"})).await;
    assert_eq!(told_by(&mut client, id, &bench).await, "sealing x 1");
}

#[tokio::test(start_paused = true)]
async fn two_servers_with_one_store_run_their_own_tasks() {
    for sealed in [false, true] {
        let bench = Bench::new();
        let server = |name: &'static str| {
            let builder = Server::builder(name, "1").store(bench.store.clone());
            let builder = if sealed { builder.state_keys(keys([NEW])) } else { builder };
            builder.tool(asks(name, TaskPolicy::optional())).build().unwrap()
        };
        let id = left_by(&bench, server("books")).await;
        let key = bench.asked(id).await.remove(0);
        let films = server("films");
        let _serving = Wire::connect(&films);
        if !sealed {
            bench.answer(id, &key, json!({"name": "x"})).await;
            tokio::time::sleep(seconds(600)).await;
            assert!(!bench.view(id).await.unwrap().head.status.is_terminal(), "it has a tool of this name");
        }
        let books = server("books");
        let mut client = Modern::connect(&books);
        if sealed {
            update(&mut client, id, &key, json!({"name": "x"})).await;
        }
        assert_eq!(told_by(&mut client, id, &bench).await, "books x 1");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_large_is_refused_for_that_reason() {
    let bench = Bench::new();
    let server = bench.builder().tool(asks("server", TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    let key = bench.asked(id).await.remove(0);
    let refused = update(&mut client, id, &key, json!({"name": "x".repeat(300 * 1024)})).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(refused["error"]["data"], json!({"reason": "tooLarge", "limit": 256 * 1024}));
    assert_eq!(bench.asked(id).await, [key.as_str()], "it is still open");
    update(&mut client, id, &key, json!({"name": "x"})).await;
    assert_eq!(told_by(&mut client, id, &bench).await, "server x 1");
}

/// Returns a task that is stored with this in its extensions.
async fn carrying<T>(bench: &Bench, carried: Value, live: bool) -> TaskId {
    let params = json!({"name": "work", "arguments": {}});
    let mut request = TaskRequest::new("work", Version::V2026_07_28, RawJson::from(&params));
    request.carried = RawJson::from(&json!({std::any::type_name::<T>(): carried}));
    request.live = live;
    let id = TaskId::from_bytes([9; 24]);
    bench.tasks().create(NewTask::new(id, owner(), Quota::from_bytes([0; 32]), request)).await.unwrap();
    id
}

#[derive(Clone, Serialize, De)]
struct Tenant {
    number: u32,
}

#[tokio::test(start_paused = true)]
async fn what_is_carried_in_another_form_is_left_to_the_nodes_that_know_it() {
    let bench = Bench::new();
    let server =
        bench.builder().carry::<Tenant>().tool(tool("work", || async { "ran" }).task(TaskPolicy::optional()));
    let server = server.build().unwrap();
    let _serving = Wire::connect(&server);
    let id = carrying::<Tenant>(&bench, json!({"name": "of a newer version"}), false).await;
    tokio::time::sleep(seconds(1000)).await;
    assert!(!bench.view(id).await.unwrap().head.status.is_terminal());
    pass(DAY).await;
    let view = bench.view(id).await.unwrap();
    assert!(told(&view).contains("what was carried"), "{view:?}");
}

#[tokio::test(start_paused = true)]
async fn a_live_task_that_cannot_be_run_here_fails_at_once_for_its_true_reason() {
    let bench = Bench::new();
    let route = tool("work", || async { "ran" }).task(TaskPolicy::optional().live());
    let server = bench.builder().carry::<Tenant>().tool(route).build().unwrap();
    let _serving = Wire::connect(&server);
    let id = carrying::<Tenant>(&bench, json!({"name": "of a newer version"}), true).await;
    tokio::time::sleep(seconds(300)).await;
    let view = bench.view(id).await.unwrap();
    assert!(told(&view).contains("what was carried"), "its only claim is used: {view:?}");
}

#[derive(Clone, Serialize)]
struct Fragile;

impl<'de> De<'de> for Fragile {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("it always does")
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_reading_panics_is_given_up() {
    let bench = Bench::new();
    let server = bench
        .builder()
        .carry::<Fragile>()
        .tool(tool("work", || async { "ran" }).task(TaskPolicy::optional()));
    let server = server.build().unwrap();
    let _serving = Wire::connect(&server);
    let id = carrying::<Fragile>(&bench, json!(null), false).await;
    tokio::time::sleep(seconds(1000)).await;
    let view = bench.view(id).await.unwrap();
    assert_eq!(told(&view), "stopped after 5 attempts without progress");
}

#[tokio::test(start_paused = true)]
async fn a_user_of_this_machine_has_no_tasks_in_a_store_of_several_machines() {
    let bench = Bench::new();
    let local = Owner::Local(Some(1000));
    let (mut connected, mut other) = (Vec::new(), None);
    for remote in [false, true] {
        let server = Server::builder("t", "1")
            .store(bench.store.clone().remote(remote))
            .tool(tool("work", || async { "inline" }).task(TaskPolicy::optional()))
            .tool(tool("must", || async { "inline" }).task(TaskPolicy::required()))
            .build()
            .unwrap();
        let (ours, theirs) = memory::pair();
        let mut extensions = Extensions::default();
        extensions.insert(LocalPeer::with_uid(1000));
        connected.push(tokio::spawn(async move { server.serve_with(theirs, extensions).await }));
        let mut client = Modern(Wire::over(ours));
        let answer = client.call("work", json!({})).await;
        let Some(other) = other else {
            // On another machine it may be another one's.
            other = Some(task_id(&answer));
            continue;
        };
        assert_eq!(text(&answer), "inline");
        let refused = client.call("must", json!({})).await;
        assert_eq!(refused["error"]["code"], -32603, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("no principal"), "{refused}");
        assert!(bench.tasks().view(&local, &other).await.unwrap().is_some());
        let unknown = get(&mut client, other).await;
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
}
