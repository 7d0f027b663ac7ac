//! Tasks of a modern server: calls that go on after their answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::Instant;
use toolwire_client::{Client, ClientBuilder, ClientLimits, ElicitReply, ErrorKind, Started, TaskHandle};
use toolwire_protocol::{
    Version,
    wire::{ElicitResult, TaskStatus},
};

use crate::script::{Script, builder, connect, discovery, text};

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A client of a server that has tasks.
pub(crate) async fn tasks(builder: ClientBuilder) -> (Client, Script) {
    let (end, mut script) = Script::pair();
    let server = async {
        let request = script.expect("server/discover").await;
        let mut found = discovery();
        found["capabilities"]["extensions"] = json!({EXTENSION: {}});
        script.reply(&request, found).await;
    };
    let (client, ()) = tokio::join!(builder.connect(end), server);
    (client.unwrap(), script)
}

pub(crate) fn task(status: &str) -> Value {
    json!({"resultType": "complete", "taskId": "t1", "status": status, "createdAt": "2026-11-16T10:00:00.000Z",
        "lastUpdatedAt": "2026-11-16T10:00:00.000Z", "ttlMs": 60_000, "pollIntervalMs": 1000})
}

pub(crate) fn with(status: &str, name: &str, value: Value) -> Value {
    let mut task = task(status);
    task[name] = value;
    task
}

pub(crate) fn created() -> Value {
    with("working", "resultType", json!("task"))
}

pub(crate) fn form() -> Value {
    let properties = json!({"name": {"type": "string", "default": "Ada"}});
    let schema = json!({"type": "object", "properties": properties});
    json!({"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": schema}})
}

/// The server does not tell of tasks by itself.
pub(crate) async fn no_pushes(script: &mut Script) {
    let listen = script.expect("subscriptions/listen").await;
    assert_eq!(listen["params"]["notifications"], json!({"taskIds": ["t1"]}));
    script.fail(&listen, -32601, "what?").await;
}

pub(crate) async fn begin(script: &mut Script) {
    let call = script.expect("tools/call").await;
    let declared = &call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
    assert_eq!(*declared, json!({EXTENSION: {}}));
    assert!(call["params"].get("task").is_none(), "the server decides");
    script.reply(&call, created()).await;
}

pub(crate) async fn get(script: &mut Script, state: Value) {
    let request = script.expect("tasks/get").await;
    assert_eq!(request["params"]["taskId"], "t1");
    assert!(
        request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"][EXTENSION]
            .is_object()
    );
    script.reply(&request, state).await;
}

/// A task that was begun.
pub(crate) async fn begun(client: &Client, script: &mut Script) -> TaskHandle {
    let (started, ()) = tokio::join!(client.call("report", json!({"year": 2026})).start(), begin(script));
    match started.unwrap() {
        Started::Task(task) => task,
        Started::Done(outcome) => panic!("{outcome:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_gives_the_result_of_the_task_it_became_at_the_servers_pace() {
    let (client, mut script) = tasks(builder()).await;
    let started = Instant::now();
    let (outcome, ()) = tokio::join!(client.call("report", json!({"year": 2026})), async {
        begin(&mut script).await;
        no_pushes(&mut script).await;
        get(&mut script, with("working", "pollIntervalMs", json!(5000))).await;
        get(&mut script, with("completed", "result", text("done"))).await;
    });
    assert_eq!(outcome.unwrap().text(), "done");
    assert_eq!(started.elapsed(), Duration::from_secs(6));
    script.expect_silence().await;
    // The next one knows that the server does not push.
    let (outcome, ()) = tokio::join!(client.call("report", ()), async {
        begin(&mut script).await;
        get(&mut script, with("completed", "result", text("again"))).await;
    });
    assert_eq!(outcome.unwrap().text(), "again");
    // And one that is answered at once is no task.
    let (started, ()) = tokio::join!(client.call("quick", ()).start(), async {
        let call = script.expect("tools/call").await;
        script.reply(&call, text("at once")).await;
    });
    assert!(matches!(started.unwrap(), Started::Done(outcome) if outcome.text() == "at once"));
}

#[tokio::test(start_paused = true)]
async fn what_the_server_pushes_is_looked_at_without_waiting() {
    let (client, mut script) = tasks(builder()).await;
    let started = Instant::now();
    let (outcome, ()) = tokio::join!(client.call("report", ()), async {
        begin(&mut script).await;
        let listen = script.expect("subscriptions/listen").await;
        let meta = json!({"io.modelcontextprotocol/subscriptionId": listen["id"]});
        let agreed = json!({"notifications": {"taskIds": ["t1"]}, "_meta": meta});
        script.notify("notifications/subscriptions/acknowledged", agreed).await;
        // What happened before that is not pushed.
        get(&mut script, task("working")).await;
        script.expect_silence().await;
        let mut pushed = with("working", "statusMessage", json!("half"));
        pushed["_meta"] = meta.clone();
        tokio::time::sleep(Duration::from_millis(200)).await;
        for _ in 0..1000 {
            script.notify("notifications/tasks", pushed.clone()).await;
        }
        // However many there are, they are one reason to look, and not one for each.
        // The last of them may have come after the first look.
        for _ in 0..2 {
            get(&mut script, pushed.clone()).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        script.expect_silence().await;
        script.notify("notifications/tasks", with("completed", "_meta", meta)).await;
        get(&mut script, with("completed", "result", text("done"))).await;
        let cancelled = script.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], listen["id"]);
    });
    assert_eq!(outcome.unwrap().text(), "done");
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn questions_are_answered_by_the_usual_handlers_each_key_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let builder = builder().on_elicit(move |question| {
        assert_eq!(question.message(), "who?");
        count.fetch_add(1, Ordering::Relaxed);
        async { ElicitReply::accept_defaults() }
    });
    let (client, mut script) = tasks(builder).await;
    let task = begun(&client, &mut script).await;
    let (outcome, ()) = tokio::join!(task.result(), async {
        no_pushes(&mut script).await;
        let open = with("input_required", "inputRequests", json!({"who": form(), "else": form()}));
        get(&mut script, open.clone()).await;
        let update = script.expect("tasks/update").await;
        let answer = json!({"action": "accept", "content": {"name": "Ada"}});
        assert_eq!(update["params"]["inputResponses"], json!({"who": answer, "else": answer}));
        script.reply(&update, json!({"resultType": "complete"})).await;
        // The server may need a moment until that shows.
        get(&mut script, open).await;
        get(&mut script, with("input_required", "inputRequests", json!({"who#2": form()}))).await;
        let update = script.expect("tasks/update").await;
        assert_eq!(update["params"]["inputResponses"], json!({"who#2": answer}));
        // Whether it took the answer is not known, so it gets it again.
        script.fail(&update, -32603, "the store is away").await;
        let update = script.expect("tasks/update").await;
        assert_eq!(update["params"]["inputResponses"], json!({"who#2": answer}));
        script.reply(&update, json!({"resultType": "complete"})).await;
        get(&mut script, with("completed", "result", text("Ada"))).await;
    });
    assert_eq!(outcome.unwrap().text(), "Ada");
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    let ticket: Value = serde_json::from_str(&task.ticket()).unwrap();
    assert_eq!(ticket["answered"], json!(["else", "who", "who#2"]));
    // What is known is not asked for again.
    assert_eq!(task.result().await.unwrap().text(), "Ada");
    script.expect_silence().await;
}

/// Counts those that were left.
struct Left(Arc<AtomicUsize>);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_watched_while_somebody_thinks_and_what_is_not_asked_any_more_is_left() {
    let left = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&left);
    let builder = builder().on_elicit(move |_| {
        let left = Left(Arc::clone(&count));
        async move {
            let _left = left;
            tokio::time::sleep(Duration::from_secs(3600)).await;
            ElicitReply::decline()
        }
    });
    let (client, mut script) = tasks(builder).await;
    let (outcome, ()) = tokio::join!(client.call("x", ()).total_timeout(Duration::from_secs(10)), async {
        begin(&mut script).await;
        no_pushes(&mut script).await;
        let open = with("input_required", "inputRequests", json!({"who": form()}));
        // An hour of thinking does not count.
        for _ in 0..100 {
            get(&mut script, open.clone()).await;
        }
        get(&mut script, task("working")).await;
        get(&mut script, task("working")).await;
        assert_eq!(left.load(Ordering::Relaxed), 1);
        get(&mut script, with("completed", "result", text("without"))).await;
    });
    assert_eq!(outcome.unwrap().text(), "without");
}

#[tokio::test(start_paused = true)]
async fn what_no_handler_can_answer_can_be_answered_by_hand() {
    let (client, mut script) = tasks(builder()).await;
    let task = begun(&client, &mut script).await;
    let open = with("input_required", "inputRequests", json!({"who": form()}));
    let (outcome, ()) = tokio::join!(task.result(), async {
        no_pushes(&mut script).await;
        get(&mut script, open.clone()).await;
    });
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unanswerable);
    assert!(error.to_string().contains("\"who\""), "{error}");
    // Updates only tell.
    let mut updates = task.updates();
    assert_eq!(updates.next().await.unwrap().status(), TaskStatus::InputRequired);
    let (state, ()) = tokio::join!(updates.next(), get(&mut script, open));
    let state = state.unwrap();
    let (key, question) = state.questions().next().unwrap();
    assert_eq!((key, question.method()), ("who", "elicitation/create"));
    let (answered, ()) = tokio::join!(task.answer(key, ElicitResult::decline()), async {
        let update = script.expect("tasks/update").await;
        assert_eq!(update["params"]["inputResponses"], json!({"who": {"action": "decline"}}));
        script.reply(&update, json!({"resultType": "complete"})).await;
    });
    answered.unwrap();
    assert_eq!(
        task.answer("who", ElicitResult::decline()).await.unwrap_err().kind(),
        ErrorKind::InvalidParams
    );
    let (state, ()) = tokio::join!(updates.next(), async {
        get(&mut script, with("completed", "result", text("nobody"))).await;
    });
    assert_eq!(state.unwrap().status(), TaskStatus::Completed);
    assert!(updates.next().await.is_none() && updates.error().is_none());
    assert_eq!(task.result().await.unwrap().text(), "nobody");
}

#[tokio::test(start_paused = true)]
async fn a_ticket_goes_on_elsewhere_also_in_another_version() {
    let (client, mut script) = tasks(builder()).await;
    let ticket = begun(&client, &mut script).await.ticket();
    drop(client);

    let (client, mut script) = tasks(builder()).await;
    let task = client.task(&ticket).unwrap();
    assert_eq!((task.id(), task.tool()), ("t1", Some("report")));
    let (state, ()) =
        tokio::join!(task.get(), get(&mut script, with("working", "statusMessage", json!("half"))));
    let state = state.unwrap();
    assert_eq!((state.message(), state.ttl()), (Some("half"), Some(Duration::from_secs(60))));

    let (client, mut script) = crate::tasks_legacy::tasks(builder()).await;
    let task = client.task(&ticket).unwrap();
    let (outcome, ()) = tokio::join!(task.result(), async {
        let result = script.expect("tasks/result").await;
        assert_eq!(result["params"]["taskId"], "t1");
        script.reply(&result, text("older")).await;
    });
    assert_eq!(outcome.unwrap().text(), "older");

    let other = ticket.replace("script", "another");
    assert!(client.task(&other).unwrap_err().to_string().contains("the server \"another\""));
    let (client, _script) = connect(builder(), Version::V2025_06_18).await;
    assert_eq!(client.task(&ticket).unwrap_err().kind(), ErrorKind::NotInThisVersion);
    let (client, _script) = tasks(builder().tasks(false)).await;
    assert!(client.task(&ticket).unwrap_err().to_string().contains("without tasks"));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_its_task_and_dropping_a_handle_does_not() {
    let (client, mut script) = tasks(builder()).await;
    let call = tokio::spawn(client.call("x", ()).into_future());
    begin(&mut script).await;
    no_pushes(&mut script).await;
    get(&mut script, task("working")).await;
    script.expect_silence().await;
    call.abort();
    let cancel = script.expect("tasks/cancel").await;
    assert_eq!(cancel["params"]["taskId"], "t1");
    script.reply(&cancel, json!({"resultType": "complete"})).await;

    let handle = begun(&client, &mut script).await;
    let mut updates = handle.updates();
    updates.next().await.unwrap();
    drop((updates, handle));
    script.expect_silence().await;

    // One that cannot go on is cancelled as well, because nobody else knows of it.
    let (outcome, ()) = tokio::join!(client.call("x", ()), async {
        begin(&mut script).await;
        get(&mut script, with("input_required", "inputRequests", json!({"who": form()}))).await;
    });
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Unanswerable);
    script.expect("tasks/cancel").await;
}

#[tokio::test(start_paused = true)]
async fn every_end_is_told() {
    let (client, mut script) = tasks(builder()).await;
    let failed = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
    let error = json!({"code": -32000, "message": "on fire"});
    let mut first = true;
    for (state, expected) in [
        (with("completed", "result", failed.clone()), Ok(true)),
        (with("failed", "result", failed), Ok(true)),
        (with("failed", "error", error), Err((ErrorKind::Rpc, "on fire"))),
        (with("cancelled", "statusMessage", json!("by Ada")), Err((ErrorKind::TaskCancelled, "by Ada"))),
        (task("failed"), Err((ErrorKind::InvalidResponse, "does not say why"))),
        (task("completed"), Err((ErrorKind::InvalidResponse, "has no result"))),
        (
            with("failed", "error", json!({"code": "x"})),
            Err((ErrorKind::InvalidResponse, "error of the failed")),
        ),
        (
            with("completed", "result", json!({"content": 3})),
            Err((ErrorKind::InvalidResponse, "not that of a tool")),
        ),
        (with("completed", "result", created()), Err((ErrorKind::InvalidResponse, "not that of a tool"))),
        (
            with("completed", "result", json!({"resultType": "input_required", "content": []})),
            Err((ErrorKind::InvalidResponse, "input_required")),
        ),
    ] {
        let (outcome, ()) = tokio::join!(client.call("x", ()), async {
            begin(&mut script).await;
            if std::mem::take(&mut first) {
                no_pushes(&mut script).await;
            }
            get(&mut script, state).await;
        });
        match (outcome, expected) {
            (Ok(outcome), Ok(is_error)) => assert_eq!(outcome.is_error(), is_error),
            (Err(error), Err((kind, text))) => {
                assert_eq!(error.kind(), kind, "{error}");
                assert!(error.to_string().contains(text), "{error}");
            }
            (outcome, expected) => panic!("{outcome:?} {expected:?}"),
        }
        script.expect_silence().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lies_about_a_task_is_told_of() {
    for (first, second, expected) in [
        (None, with("working", "taskId", json!("t2")), "another task"),
        (Some(with("completed", "result", text("x"))), task("working"), "what has ended cannot change"),
        (None, with("paused", "x", json!(1)), "tasks/get"),
        (None, json!({"taskId": "t1"}), "tasks/get"),
        (None, with("input_required", "inputRequests", json!({"a": {"method": "what/ever"}})), "what/ever"),
    ] {
        let (client, mut script) = tasks(builder()).await;
        let handle = begun(&client, &mut script).await;
        if let Some(first) = first {
            tokio::join!(handle.get(), get(&mut script, first)).0.unwrap();
        }
        let (state, ()) = tokio::join!(handle.get(), get(&mut script, second));
        let error = state.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidResponse);
        assert!(error.to_string().contains(expected), "{error}");
    }
    // What is no task does not become one.
    for (id, expected) in
        [(json!(""), "1 to 1024 bytes"), (json!("x".repeat(1025)), "1 to 1024 bytes"), (json!(7), "taskId")]
    {
        let (client, mut script) = tasks(builder()).await;
        let (outcome, ()) = tokio::join!(client.call("x", ()), async {
            let call = script.expect("tools/call").await;
            let mut created = created();
            created["taskId"] = id;
            script.reply(&call, created).await;
        });
        let error = outcome.unwrap_err();
        assert!(
            error.kind() == ErrorKind::InvalidResponse && error.to_string().contains(expected),
            "{error}"
        );
    }
    let (client, mut script) = tasks(builder()).await;
    let (outcome, ()) = tokio::join!(client.read("file:///a"), async {
        let request = script.expect("resources/read").await;
        script.reply(&request, created()).await;
    });
    assert!(outcome.unwrap_err().to_string().contains("unexpected result type \"task\""));
    let (client, mut script) = tasks(builder().tasks(false)).await;
    let (outcome, ()) = tokio::join!(client.call("x", ()), async {
        let call = script.expect("tools/call").await;
        let declared = &call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(*declared, json!({}));
        script.reply(&call, created()).await;
    });
    assert!(outcome.unwrap_err().to_string().contains("unexpected result type \"task\""));
}

#[tokio::test(start_paused = true)]
async fn questions_without_an_end_have_one() {
    let limits = ClientLimits::default().task_questions(3);
    let builder = builder().limits(limits).on_elicit(async |_| ElicitReply::decline());
    let (client, mut script) = tasks(builder).await;
    let (outcome, ()) = tokio::join!(client.call("x", ()), async {
        begin(&mut script).await;
        no_pushes(&mut script).await;
        for n in 0..3 {
            get(&mut script, with("input_required", "inputRequests", json!({format!("q#{n}"): form()})))
                .await;
            let update = script.expect("tasks/update").await;
            script.reply(&update, json!({})).await;
        }
        get(&mut script, with("input_required", "inputRequests", json!({"q#4": form()}))).await;
        let cancel = script.expect("tasks/cancel").await;
        script.reply(&cancel, json!({})).await;
    });
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.limit()), (ErrorKind::TooManyRounds, Some("task_questions")));
}

#[tokio::test(start_paused = true)]
async fn the_pace_and_the_life_of_a_task_have_limits_whatever_the_server_says() {
    let (client, mut script) = tasks(builder()).await;
    let task = begun(&client, &mut script).await;
    let mut updates = task.updates();
    updates.next().await.unwrap();
    let server = async {
        no_pushes(&mut script).await;
        get(&mut script, with("working", "pollIntervalMs", json!(0))).await;
        let mut last = Instant::now();
        for (wanted, waited) in [(u64::MAX, 100), (1, 60_000), (250, 100), (1000, 250)] {
            let mut state = with("working", "pollIntervalMs", json!(wanted));
            state["ttlMs"] = json!(u64::MAX);
            state["statusMessage"] = json!(wanted.to_string());
            get(&mut script, state).await;
            assert_eq!(last.elapsed(), Duration::from_millis(waited));
            last = Instant::now();
        }
        get(&mut script, with("cancelled", "ttlMs", json!(null))).await;
    };
    let watch = async { while updates.next().await.is_some() {} };
    tokio::join!(server, watch);
    assert_eq!(updates.error().unwrap().kind(), ErrorKind::TaskCancelled);

    let limits = ClientLimits::default().task_time(Duration::from_secs(90));
    let (client, mut script) = tasks(builder().limits(limits)).await;
    let began = Instant::now();
    let endless = async {
        begin(&mut script).await;
        no_pushes(&mut script).await;
        for _ in 0..1000 {
            let request = script.receive().await.unwrap();
            if request["method"] == "tasks/cancel" {
                return;
            }
            script.reply(&request, with("working", "pollIntervalMs", json!(10_000))).await;
        }
        panic!("the task is looked at without an end");
    };
    let (outcome, ()) = tokio::join!(client.call("x", ()), endless);
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.limit()), (ErrorKind::Timeout, Some("task_time")));
    assert_eq!(began.elapsed(), Duration::from_secs(90));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_for_a_while_is_asked_again_and_not_for_ever() {
    let (client, mut script) = tasks(builder()).await;
    let task = begun(&client, &mut script).await;
    let (outcome, ()) = tokio::join!(task.result(), async {
        no_pushes(&mut script).await;
        for _ in 0..3 {
            let request = script.expect("tasks/get").await;
            script.fail(&request, -32603, "ask again").await;
        }
        get(&mut script, with("completed", "result", text("done"))).await;
    });
    assert_eq!(outcome.unwrap().text(), "done");

    let task = begun(&client, &mut script).await;
    let began = Instant::now();
    let away = async {
        for _ in 0..1000 {
            let request = script.expect("tasks/get").await;
            script.fail(&request, -32603, "the store is away").await;
        }
    };
    let outcome = tokio::select! {
        outcome = task.result() => outcome,
        () = away => panic!("the task is looked at without an end"),
    };
    let error = outcome.unwrap_err();
    assert_eq!(error.limit(), Some("task_outage"));
    assert!(error.to_string().contains("the store is away"), "{error}");
    assert!((300..320).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());

    let (outcome, ()) = tokio::join!(task.result(), async {
        let request = script.expect("tasks/get").await;
        script.fail(&request, -32602, "no such task").await;
    });
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::TaskGone);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_connection_ends_following() {
    let (client, mut script) = tasks(builder()).await;
    let task = begun(&client, &mut script).await;
    let (outcome, ()) = tokio::join!(task.result(), async {
        no_pushes(&mut script).await;
        script.expect("tasks/get").await;
        drop(script);
    });
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_tasks_and_their_answers_are_of_one_version_each() {
    let (client, _script) = tasks(builder()).await;
    assert_eq!(client.tasks().collect().await.unwrap_err().kind(), ErrorKind::NotInThisVersion);
    let (client, mut script) = crate::tasks_legacy::tasks(builder()).await;
    let (listed, ()) = tokio::join!(client.tasks().collect(), async {
        let list = script.expect("tasks/list").await;
        let task = crate::tasks_legacy::task("working");
        script.reply(&list, json!({"tasks": [task], "nextCursor": "2"})).await;
        let list = script.expect("tasks/list").await;
        assert_eq!(list["params"]["cursor"], "2");
        script.reply(&list, json!({"tasks": []})).await;
    });
    assert_eq!(listed.unwrap().len(), 1);
}
