//! Stores that are away, or slow, for a while: what is lost by it, and who goes on.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use toolwire_server::{Context, Progress, TaskPolicy, tool};
use toolwire_store::{Claim, NodeId, Token};
use toolwire_transport::ledger::Account;

use super::{
    durable::stored,
    tap::{Fate, Tap},
    *,
};

/// A tool that takes so long, and says how often it was run.
fn takes(name: &'static str, time: Duration, runs: &Count, policy: TaskPolicy) -> toolwire_server::ToolRoute {
    let runs = runs.clone();
    let work = move || {
        let runs = runs.clone();
        async move {
            let run = runs.add();
            tokio::time::sleep(time).await;
            format!("run {run}")
        }
    };
    tool(name, work).task(policy)
}

#[tokio::test(start_paused = true)]
async fn after_a_long_outage_no_node_takes_what_another_one_still_runs() {
    let bench = Bench::new();
    let taps = [Tap::to(&bench), Tap::to(&bench)];
    let (lives, results) = (Count::default(), Count::default());
    let nodes: Vec<Server> = taps
        .iter()
        .map(|tap| {
            tap.node(&bench)
                .tool(takes("live", seconds(60), &lives, TaskPolicy::optional().live()))
                .tool(takes("result", seconds(10), &results, TaskPolicy::optional()))
                .build()
                .unwrap()
        })
        .collect();
    let mut clients: Vec<_> = nodes.iter().map(Modern::connect).collect();
    let live = [clients[0].start("live").await, clients[1].start("live").await];
    let result = [clients[0].start("result").await, clients[1].start("result").await];
    for tap in &taps {
        tap.all(Fate::Fails);
    }
    // Between two looks at what has changed, which lead to a renewal.
    tokio::time::sleep(Duration::from_millis(40_100)).await;
    for tap in &taps {
        tap.all(Fate::Done);
    }
    for id in live.into_iter().chain(result) {
        let ended = bench.ended(id).await;
        assert!(told(&ended).starts_with("run"), "what was done was thrown away: {ended:?}");
    }
    assert_eq!((lives.get(), results.get()), (2, 2), "everything has had one run");
}

#[tokio::test(start_paused = true)]
async fn a_node_without_free_places_leaves_others_their_time_after_an_outage_as_well() {
    let bench = Bench::new();
    let (full, slower) = (Tap::to(&bench), Tap::to(&bench));
    let (fills, works) = (Count::default(), Count::default());
    let node = |tap: &Tap, places| {
        tap.node(&bench)
            .limits(limits(|limits| limits.task_runs = places))
            .tool(takes("fills", seconds(20), &fills, TaskPolicy::optional().live()))
            .tool(takes("work", seconds(60), &works, TaskPolicy::optional().live()))
            .build()
            .unwrap()
    };
    let (first, second) = (node(&full, 1), node(&slower, 8));
    let filled = Modern::connect(&first).start("fills").await;
    let id = Modern::connect(&second).start("work").await;
    full.all(Fate::Fails);
    slower.all(Fate::Fails);
    tokio::time::sleep(seconds(40)).await;
    // What fills the node is done, and its place is free once that is written.
    full.all(Fate::Done);
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(told(&bench.view(filled).await.unwrap()), "run 1");
    slower.all(Fate::Done);
    assert_eq!(told(&bench.ended(id).await), "run 1", "it was taken from a node that still runs it");
    assert_eq!(works.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_does_not_claim_at_each_connection() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let route = takes("work", seconds(1), &Count::default(), TaskPolicy::optional());
    let server = tap.node(&bench).tool(route).build().unwrap();
    let mut clients = Vec::new();
    for _ in 0..100 {
        clients.push(Modern::connect(&server));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let claims = tap.calls("claim");
    assert!((1..=2).contains(&claims), "{claims} claims for 100 connections in 100 ms");
}

#[tokio::test(start_paused = true)]
async fn tasks_of_a_node_that_does_not_come_back_are_taken_over_after_an_outage() {
    let bench = Bench::new();
    let (gone, stays) = (Tap::to(&bench), Tap::to(&bench));
    let runs = Count::default();
    let node = |tap: &Tap| {
        let route = takes("work", seconds(100), &runs, TaskPolicy::optional());
        tap.node(&bench).tool(route).build().unwrap()
    };
    let (first, second) = (node(&gone), node(&stays));
    let id = Modern::connect(&first).start("work").await;
    second.start_tasks();
    tokio::time::sleep(seconds(1)).await;
    gone.all(Fate::Fails);
    stays.all(Fate::Fails);
    tokio::time::sleep(seconds(40)).await;
    stays.all(Fate::Done);
    let back = tokio::time::Instant::now();
    assert_eq!(told(&bench.ended(id).await), "run 2");
    let took = back.elapsed();
    assert!(took <= seconds(107), "others have had their time to renew, and it takes 100 s: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_claimed_has_a_place_and_keeps_its_lease() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let (claims, calls) = (Count::default(), Count::default());
    let limits = limits(|limits| limits.task_runs = 1);
    let server = tap
        .node(&bench)
        .limits(limits)
        .tool(takes("claimed", seconds(60), &claims, TaskPolicy::optional()))
        .tool(takes("called", seconds(60), &calls, TaskPolicy::optional()))
        .build()
        .unwrap();
    tap.plan(|name| if name == "claim" { Fate::Takes(seconds(2)) } else { Fate::Done });
    let claimed = stored(&bench, "claimed").await;
    let mut client = Modern::connect(&server);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(tap.calls("claim"), 1, "it is on its way");
    let called = client.start("called").await;
    tokio::time::sleep(seconds(40)).await;
    let token = Token::from_bytes([9; 16]);
    let claim =
        Claim::new(NodeId::from_bytes([9; 8]), token, vec![("claimed".to_owned(), 1)], 1, seconds(20));
    let lapsed = bench.tasks().claim(&claim).await.unwrap();
    assert!(lapsed.is_empty(), "it was claimed, and its lease was not kept: {lapsed:?}");
    assert_eq!(told(&bench.ended(claimed).await), "run 1");
    assert_eq!(told(&bench.ended(called).await), "run 1");
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_made_is_undone_however_long_the_store_is_away() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let runs = Count::default();
    let server = tap
        .node(&bench)
        .tool(takes("work", seconds(10), &runs, TaskPolicy::after(seconds(1))))
        .build()
        .unwrap();
    let mut client = Modern::connect(&server);
    let made = Arc::new(AtomicBool::new(false));
    let gone = Arc::clone(&made);
    tap.plan(move |name| match name {
        _ if gone.load(Ordering::SeqCst) => Fate::Fails,
        "create" => {
            gone.store(true, Ordering::SeqCst);
            Fate::LosesReply
        }
        _ => Fate::Done,
    });
    assert_eq!(text(&client.call("work", json!({})).await), "run 1", "it goes on as it is");
    assert!(made.load(Ordering::SeqCst));
    tokio::time::sleep(seconds(1000)).await;
    tap.all(Fate::Done);
    tokio::time::sleep(seconds(100)).await;
    assert_eq!(runs.get(), 1, "it was answered, and must not be run once more");
    let tasks = bench.tasks().list(&owner(), None, 10).await.unwrap();
    let stands: Vec<_> = tasks.iter().map(|head| head.status).collect();
    assert_eq!(stands, [TaskStatus::Cancelled]);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_made_is_undone_too_and_nothing_of_it_can_be_run() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let runs = Count::default();
    let route = takes("work", seconds(10), &runs, TaskPolicy::after(seconds(1)));
    let server = tap.node(&bench).tool(route).build().unwrap();
    let mut client = Modern::connect(&server);
    tap.plan(|name| if name == "create" || name == "cancel" { Fate::Fails } else { Fate::Done });
    assert_eq!(text(&client.call("work", json!({})).await), "run 1");
    // It can be made now, and not be cancelled.
    tap.plan(|name| if name == "cancel" { Fate::Fails } else { Fate::Done });
    tokio::time::sleep(seconds(40)).await;
    let tasks = bench.tasks().list(&owner(), None, 10).await.unwrap();
    assert_eq!(tasks.iter().map(|head| &*head.tool).collect::<Vec<_>>(), [""], "a tool that no node serves");
    tap.all(Fate::Done);
    tokio::time::sleep(seconds(60)).await;
    let tasks = bench.tasks().list(&owner(), None, 10).await.unwrap();
    assert!(tasks.iter().all(|head| head.status == TaskStatus::Cancelled), "{tasks:?}");
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_with_much_progress_does_not_renew_all_the_time() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let work = |progress: Progress| async move {
        for done in 1..=100 {
            progress.report(f64::from(done), 100.0);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let server = tap.node(&bench).tool(tool("work", work).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&server);
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(client.start("work").await);
        tokio::time::sleep(Duration::from_millis(37)).await;
    }
    for id in ids {
        bench.ended(id).await;
    }
    let (written, renewed) = (tap.calls("advance"), tap.calls("renew"));
    assert!(written > 150 && renewed <= 14, "{renewed} renewals for {written} writes in eleven seconds");
}

/// A session of 2025-11-25 that can be asked.
async fn session(server: &Server) -> Wire {
    let mut core = Wire::connect_as(server, Some(ada()));
    core.handshake("2025-11-25", json!({"elicitation": {}})).await;
    core
}

/// The next message that is about this.
async fn next(core: &mut Wire, about: impl Fn(&Value) -> bool) -> Value {
    loop {
        let message = core.receive().await;
        if about(&message) {
            return message;
        }
    }
}

fn is_question(message: &Value) -> bool {
    message["method"] == "elicitation/create"
}

async fn ask_name(cx: Context) -> String {
    cx.elicit::<Name>("Name?").key("n").accepted().await.unwrap().name
}

/// Starts a server with a task that asks for a name. Returns it with the session that was asked, and the question.
async fn asked(bench: &Bench, tap: &Tap) -> (Server, Wire, Value) {
    let server = tap.node(bench).tool(tool("asks", ask_name).task(TaskPolicy::optional())).build().unwrap();
    let mut core = session(&server).await;
    let id = task_id(&ask(&mut core, &core_call("asks", json!({}))).await);
    core.send(&request(2, "tasks/result", json!({"taskId": id.to_string()}))).await;
    let question = next(&mut core, is_question).await;
    (server, core, question)
}

/// Returns the answer to a question for a name.
fn reply(question: &Value) -> Value {
    let reply = json!({"action": "accept", "content": {"name": "Ada"}});
    json!({"jsonrpc": "2.0", "id": question["id"], "result": reply})
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_stored_when_the_store_is_back() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let (_server, mut core, question) = asked(&bench, &tap).await;
    tap.all(Fate::Fails);
    core.send(&reply(&question)).await;
    tokio::time::sleep(seconds(4)).await;
    tap.all(Fate::Done);
    let result = next(&mut core, |message| !message["result"].is_null() || is_question(message)).await;
    assert_eq!(text(&result), "Ada", "it is not asked twice");
}

#[tokio::test(start_paused = true)]
async fn a_question_whose_answer_was_lost_is_asked_again() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let (_server, mut core, question) = asked(&bench, &tap).await;
    // Everything else can be done.
    tap.plan(|name| if name == "answer" { Fate::Fails } else { Fate::Done });
    core.send(&reply(&question)).await;
    let again = next(&mut core, is_question).await;
    assert_ne!(again["id"], question["id"]);
    tap.all(Fate::Done);
    core.send(&reply(&again)).await;
    let result = next(&mut core, |message| !message["result"].is_null()).await;
    assert_eq!(text(&result), "Ada");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_could_not_be_looked_at_is_told_later() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let runs = Count::default();
    let route = takes("work", seconds(5), &runs, TaskPolicy::optional());
    let server = tap.node(&bench).tool(route).build().unwrap();
    let mut core = session(&server).await;
    let id = task_id(&ask(&mut core, &core_call("work", json!({}))).await);
    tap.plan(|name| if name == "view" { Fate::Fails } else { Fate::Done });
    bench.ended(id).await;
    tokio::time::sleep(seconds(30)).await;
    tap.all(Fate::Done);
    let told = next(&mut core, |message| message["params"]["status"] == "completed").await;
    assert_eq!(told["method"], "notifications/tasks/status", "{told}");
}

#[tokio::test(start_paused = true)]
async fn sessions_are_told_of_their_tasks_when_wakes_may_have_been_lost() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let runs = Count::default();
    let route = takes("work", seconds(5), &runs, TaskPolicy::optional());
    let bus = GapBus::default();
    let store = Store::new(
        Arc::new(tap.clone()),
        bench.store.sessions().clone(),
        bench.store.log().clone(),
        Arc::new(bus.clone()),
        bench.store.nonces().clone(),
    );
    let server = Server::builder("t", "1").store(store).tool(route).build().unwrap();
    let mut core = session(&server).await;
    let id = task_id(&ask(&mut core, &core_call("work", json!({}))).await);
    let session = bench.view(id).await.unwrap().head.session;
    bus.0.send(&[toolwire_store::Topic::Task { id, session }]);
    let told = next(&mut core, |message| message["method"] == "notifications/tasks/status").await;
    assert_eq!(told["params"]["status"], "working");
    bench.ended(id).await;
    bus.0.gap();
    let told = next(&mut core, |message| message["method"] == "notifications/tasks/status").await;
    assert_eq!(told["params"]["status"], "completed", "{told}");
}

/// A bus that tells of nothing by itself.
#[derive(Clone, Debug, Default)]
struct GapBus(Arc<toolwire_store::Hub>);

impl toolwire_store::Bus for GapBus {
    fn wake<'a>(&'a self, _: &'a [toolwire_store::Topic]) -> toolwire_store::Op<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn listen(&self) -> toolwire_store::Wakes {
        self.0.listen()
    }
}

/// The next question of a task to its client.
async fn question(wire: &mut Wire) -> Value {
    loop {
        let message = wire.receive().await;
        if message["method"] == "elicitation/create" {
            return message["id"].clone();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_asked_again_if_too_many_answers_are_refused_at_once() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let work = |cx: Context| async move { cx.elicit::<Name>("?").key("n").accepted().await.unwrap().name };
    let limits = limits(|limits| limits.held_bytes = 1024 * 1024);
    let route = tool("work", work).task(TaskPolicy::optional());
    let server = tap.node(&bench).limits(limits).tool(route).build().unwrap();
    let mut wire = Wire::connect_as(&server, Some(ada()));
    wire.handshake("2025-11-25", json!({"elicitation": {}})).await;
    let id = task_id(&ask(&mut wire, &core_call("work", json!({}))).await);
    wire.send(&request("result", "tasks/result", json!({"taskId": id.to_string()}))).await;
    let asked = question(&mut wire).await;

    // There is no room for any answer, and to store the errors in their place takes its time.
    let free = server.limits().held_bytes - server.ledger().used_bytes();
    let held = server.ledger().charge(Account::RequestBytes, free - 500).unwrap();
    tap.plan(|name| if name == "view" { Fate::Takes(seconds(4)) } else { Fate::Done });
    let answer = |id: &Value, name: &str| {
        let content = json!({"action": "accept", "content": {"name": name}});
        json!({"jsonrpc": "2.0", "id": id, "result": content})
    };
    for number in 0..64 {
        wire.send(&answer(&json!(format!("t:{id}:x-{number}:other")), "none")).await;
    }
    wire.send(&answer(&asked, "lost")).await;
    let again = question(&mut wire).await;
    assert_ne!(again, asked);
    tap.all(Fate::Done);
    drop(held);
    wire.send(&answer(&again, "one")).await;
    assert_eq!(told(&bench.ended(id).await), "one");
}
