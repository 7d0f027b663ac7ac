//! Tasks of a server of 2025-11-25: the client says which calls may become one, and holds `tasks/result` open.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::Instant;
use toolwire_client::{Client, ClientBuilder, ElicitReply, ErrorKind, Started, TaskHandle};
use toolwire_protocol::wire::TaskStatus;

use crate::script::{Script, builder, initialization, text};

/// A client of a server that has tasks with this capability.
async fn tasks_with(builder: ClientBuilder, capability: Value) -> (Client, Script) {
    let (end, mut script) = Script::pair();
    let server = async {
        let probe = script.expect("server/discover").await;
        script.fail(&probe, -32601, "what?").await;
        let request = script.expect("initialize").await;
        let mut result = initialization("2025-11-25");
        result["capabilities"]["tasks"] = capability;
        script.reply(&request, result).await;
        script.expect("notifications/initialized").await;
    };
    let (client, ()) = tokio::join!(builder.connect(end), server);
    (client.unwrap(), script)
}

pub(crate) async fn tasks(builder: ClientBuilder) -> (Client, Script) {
    tasks_with(builder, json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}})).await
}

pub(crate) fn task(status: &str) -> Value {
    json!({"taskId": "t1", "status": status, "createdAt": "2026-11-16T10:00:00Z",
        "lastUpdatedAt": "2026-11-16T10:00:00Z", "ttl": 60_000, "pollInterval": 1000})
}

fn tool(name: &str, support: Option<&str>) -> Value {
    let mut tool = json!({"name": name, "inputSchema": {"type": "object"}});
    if let Some(support) = support {
        tool["execution"] = json!({"taskSupport": support});
    }
    tool
}

async fn list(script: &mut Script, tools: Value) {
    let request = script.expect("tools/list").await;
    script.reply(&request, json!({"tools": tools})).await;
}

fn related() -> Value {
    json!({"io.modelcontextprotocol/related-task": {"taskId": "t1"}})
}

fn result(said: &str) -> Value {
    let mut result = text(said);
    result["_meta"] = related();
    result
}

/// Makes a task of the next call.
async fn begin(script: &mut Script) -> Value {
    let call = script.expect("tools/call").await;
    assert!(call["params"]["task"].is_object(), "{call}");
    script.reply(&call, json!({"task": task("working")})).await;
    call
}

async fn begun(client: &Client, script: &mut Script) -> TaskHandle {
    let server = async {
        list(script, json!([tool("report", Some("required"))])).await;
        begin(script).await;
    };
    let (started, ()) = tokio::join!(client.call("report", ()).start(), server);
    match started.unwrap() {
        Started::Task(task) => task,
        Started::Done(outcome) => panic!("{outcome:?}"),
    }
}

async fn get(script: &mut Script, state: Value) {
    let request = script.expect("tasks/get").await;
    assert_eq!(request["params"]["taskId"], "t1");
    script.reply(&request, state).await;
}

#[tokio::test(start_paused = true)]
async fn only_tools_that_allow_it_are_called_as_tasks_and_the_list_is_read_once() {
    let (client, mut script) = tasks(builder()).await;
    let (outcome, ()) = tokio::join!(client.call("report", ()).keep(Duration::from_secs(7)), async {
        let request = script.expect("tools/list").await;
        // One that cannot be read does not hide the others.
        let page = json!([{"name": 3}, tool("plain", None), tool("never", Some("forbidden"))]);
        script.reply(&request, json!({"tools": page, "nextCursor": "2"})).await;
        list(&mut script, json!([tool("report", Some("required")), tool("maybe", Some("optional"))])).await;
        let call = script.expect("tools/call").await;
        assert_eq!(call["params"]["task"], json!({"ttl": 7000}));
        script.reply(&call, json!({"task": task("working")})).await;
        let held = script.expect("tasks/result").await;
        assert_eq!(held["params"], json!({"taskId": "t1"}));
        script.expect_silence().await;
        script.reply(&held, result("done")).await;
    });
    assert_eq!(outcome.unwrap().text(), "done");
    for (name, expected) in [("maybe", Some(json!({}))), ("plain", None), ("never", None), ("unknown", None)]
    {
        let (outcome, ()) = tokio::join!(client.call(name, ()), async {
            let call = script.expect("tools/call").await;
            assert_eq!(call["params"].get("task").cloned(), expected, "{name}");
            // A server that does not make a task of it after all.
            script.reply(&call, text("at once")).await;
        });
        assert_eq!(outcome.unwrap().text(), "at once");
    }
    // After a change it is read again.
    script.notify("notifications/tools/list_changed", json!({})).await;
    script.expect_silence().await;
    let (outcome, ()) = tokio::join!(client.call("plain", ()), async {
        list(&mut script, json!([tool("plain", Some("optional"))])).await;
        begin(&mut script).await;
        let held = script.expect("tasks/result").await;
        script.reply(&held, result("changed")).await;
    });
    assert_eq!(outcome.unwrap().text(), "changed");
    // And after a refusal that means that it has changed.
    let (outcome, ()) = tokio::join!(client.call("plain", ()), async {
        let call = script.expect("tools/call").await;
        script.fail(&call, -32601, "no tasks here").await;
        list(&mut script, json!([tool("plain", None)])).await;
        let call = script.expect("tools/call").await;
        assert!(call["params"].get("task").is_none());
        script.fail(&call, -32601, "still not").await;
    });
    assert!(outcome.unwrap_err().to_string().contains("still not"), "and not again and again");
}

#[tokio::test]
async fn where_tasks_are_not_announced_or_not_wanted_nothing_is_asked() {
    let call = json!({"list": {}, "cancel": {}});
    for (builder, capability) in
        [(builder(), call), (builder().tasks(false), json!({"requests": {"tools": {"call": {}}}}))]
    {
        let (client, mut script) = tasks_with(builder, capability).await;
        let (outcome, ()) = tokio::join!(client.call("x", ()), async {
            let call = script.expect("tools/call").await;
            assert!(call["params"].get("task").is_none());
            script.reply(&call, text("plain")).await;
        });
        assert_eq!(outcome.unwrap().text(), "plain");
        // A task that nobody has asked for is not one.
        let (outcome, ()) = tokio::join!(client.call("x", ()), async {
            let call = script.expect("tools/call").await;
            script.reply(&call, json!({"task": task("working")})).await;
        });
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::InvalidResponse);
    }
}

#[tokio::test(start_paused = true)]
async fn questions_come_while_the_result_is_awaited_and_progress_goes_on() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let builder = builder().on_elicit(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async { ElicitReply::decline() }
    });
    let (client, mut script) = tasks(builder).await;
    let steps = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&steps);
    let call =
        client.call("report", ()).progress(move |step| seen.lock().unwrap().push(step.progress.as_f64()));
    let (outcome, ()) = tokio::join!(call, async {
        list(&mut script, json!([tool("report", Some("optional"))])).await;
        let call = begin(&mut script).await;
        let held = script.expect("tasks/result").await;
        let token = &call["params"]["_meta"]["progressToken"];
        let step = json!({"progressToken": token, "progress": 3, "_meta": related()});
        script.notify("notifications/progress", step).await;
        script.expect_silence().await;
        let schema = json!({"type": "object", "properties": {}});
        let params = json!({"message": "who?", "requestedSchema": schema, "_meta": related()});
        script
            .send(json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}))
            .await;
        let answer = script.receive().await.unwrap();
        assert_eq!((&answer["id"], &answer["result"]), (&json!("q"), &json!({"action": "decline"})));
        script.reply(&held, result("done")).await;
    });
    assert_eq!(outcome.unwrap().text(), "done");
    assert_eq!(*steps.lock().unwrap(), [3.0]);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn every_end_is_fetched() {
    let failed = json!({"content": [{"type": "text", "text": "no"}], "isError": true, "_meta": related()});
    let (client, mut script) = tasks(builder()).await;
    let task_handle = begun(&client, &mut script).await;
    let (outcome, ()) = tokio::join!(task_handle.result(), async {
        let held = script.expect("tasks/result").await;
        script.reply(&held, failed).await;
    });
    assert!(outcome.unwrap().is_error());

    // An error may be the task's or that of the request; how the task stands tells which.
    for (state, code, kind, says) in [
        (Ok(task("failed")), -32602, ErrorKind::Rpc, "tools/call"),
        (Ok(task("failed")), -32000, ErrorKind::Rpc, "tools/call"),
        (Ok(task("cancelled")), -32603, ErrorKind::TaskCancelled, "cancelled"),
        (Ok(task("working")), -32601, ErrorKind::Rpc, "tasks/result"),
        (Err(-32602), -32602, ErrorKind::TaskGone, "does not know the task"),
        (Err(-32602), -32000, ErrorKind::Rpc, "tools/call"),
    ] {
        let (client, mut script) = tasks(builder()).await;
        let handle = begun(&client, &mut script).await;
        let (outcome, ()) = tokio::join!(handle.result(), async {
            let held = script.expect("tasks/result").await;
            script.fail(&held, code, "the reason").await;
            let request = script.expect("tasks/get").await;
            match state {
                Ok(state) => script.reply(&request, state).await,
                Err(code) => script.fail(&request, code, "what?").await,
            }
        });
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    for wrong in [
        json!({"content": 3}),
        json!({"task": task("working")}),
        json!({"content": [], "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t2"}}}),
    ] {
        let (client, mut script) = tasks(builder()).await;
        let handle = begun(&client, &mut script).await;
        let (outcome, ()) = tokio::join!(handle.result(), async {
            let held = script.expect("tasks/result").await;
            script.reply(&held, wrong).await;
        });
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::InvalidResponse);
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_breaks_off_is_asked_for_again_when_the_task_was_looked_at() {
    let (client, mut script) = tasks(builder()).await;
    let handle = begun(&client, &mut script).await;
    let (outcome, ()) = tokio::join!(handle.result(), async {
        for _ in 0..3 {
            let held = script.expect("tasks/result").await;
            script.fail(&held, -32603, "the store is away").await;
            get(&mut script, task("working")).await;
            get(&mut script, task("working")).await;
        }
        let held = script.expect("tasks/result").await;
        script.reply(&held, result("done")).await;
    });
    assert_eq!(outcome.unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_got_lost_is_asked_for_again_and_not_for_ever() {
    let (client, mut script) = tasks(builder()).await;
    let handle = begun(&client, &mut script).await;
    let began = Instant::now();
    let server = async {
        script.expect("tasks/result").await;
        get(&mut script, task("working")).await;
        assert_eq!(began.elapsed(), Duration::from_secs(30), "it is looked at now and then");
        get(&mut script, task("completed")).await;
        get(&mut script, task("completed")).await;
        let lost = script.expect("notifications/cancelled").await;
        assert!(lost["params"]["requestId"].is_number());
        let held = script.expect("tasks/result").await;
        script.reply(&held, result("done")).await;
    };
    let (outcome, ()) = tokio::join!(handle.result(), server);
    assert_eq!(outcome.unwrap().text(), "done");

    let handle = client.task(&handle.ticket()).unwrap();
    let never = async {
        for _ in 0..10_000 {
            let request = script.receive().await.unwrap();
            if request["method"] == "tasks/get" {
                script.reply(&request, task("completed")).await;
            }
        }
    };
    let outcome = tokio::select! {
        outcome = handle.result() => outcome,
        () = never => panic!("the task is looked at without an end"),
    };
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Timeout);
}

#[tokio::test(start_paused = true)]
async fn updates_are_polled_and_pushed() {
    let (client, mut script) = tasks(builder()).await;
    let handle = begun(&client, &mut script).await;
    let mut updates = handle.updates();
    let server = async {
        let held = script.expect("tasks/result").await;
        let began = Instant::now();
        get(&mut script, task("working")).await;
        assert_eq!(began.elapsed(), Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(500)).await;
        script.notify("notifications/tasks/status", task("input_required")).await;
        get(&mut script, task("input_required")).await;
        assert_eq!(began.elapsed(), Duration::from_millis(1500));
        script.expect_silence().await;
        script.reply(&held, result("done")).await;
    };
    let watch = async {
        let mut seen = Vec::new();
        while let Some(state) = updates.next().await {
            seen.push(state.status());
        }
        seen
    };
    let ((), seen) = tokio::join!(server, watch);
    assert_eq!(seen, [TaskStatus::Working, TaskStatus::InputRequired, TaskStatus::Completed]);
    assert_eq!(handle.result().await.unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn cancelling() {
    let (client, mut script) = tasks(builder()).await;
    let handle = begun(&client, &mut script).await;
    let (cancelled, ()) = tokio::join!(handle.cancel(), async {
        let cancel = script.expect("tasks/cancel").await;
        script.reply(&cancel, task("cancelled")).await;
    });
    cancelled.unwrap();
    // One that has ended is not a mistake, one that is not there is.
    for (state, expected) in [(Some(task("completed")), None), (None, Some(ErrorKind::TaskGone))] {
        let (client, mut script) = tasks(builder()).await;
        let handle = begun(&client, &mut script).await;
        let (cancelled, ()) = tokio::join!(handle.cancel(), async {
            let cancel = script.expect("tasks/cancel").await;
            script.fail(&cancel, -32602, "no").await;
            let request = script.expect("tasks/get").await;
            match state {
                Some(state) => script.reply(&request, state).await,
                None => script.fail(&request, -32602, "no").await,
            }
        });
        assert_eq!(cancelled.err().map(|error| error.kind()), expected);
    }
    let call = tokio::spawn(client.call("report", ()).into_future());
    begin(&mut script).await;
    script.expect("tasks/result").await;
    call.abort();
    let messages = [script.receive().await.unwrap(), script.receive().await.unwrap()];
    let methods = messages.each_ref().map(|message| message["method"].as_str().unwrap());
    assert_eq!(methods, ["notifications/cancelled", "tasks/cancel"]);

    let (client, mut script) = tasks_with(builder(), json!({"requests": {"tools": {"call": {}}}})).await;
    let handle = begun(&client, &mut script).await;
    assert_eq!(handle.cancel().await.unwrap_err().kind(), ErrorKind::NotAdvertised);
    assert_eq!(client.tasks().collect().await.unwrap_err().kind(), ErrorKind::NotAdvertised);
    assert_eq!(handle.answer("k", ()).await.unwrap_err().kind(), ErrorKind::NotInThisVersion);
}
