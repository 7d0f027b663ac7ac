//! Tasks that a server of 2025-11-25 has the client run: questions that may take a while.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwire_client::{Client, ClientLimits, ElicitReply};
use toolwire_protocol::{
    RpcError, Version,
    wire::{Content, CreateMessageResult, Role},
};

use crate::script::{Script, builder, connect};

async fn request(script: &mut Script, id: impl Into<Value>, method: &str, params: Value) {
    script.send(json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})).await;
}

async fn ask(script: &mut Script, method: &str, params: Value) -> Value {
    request(script, "q", method, params).await;
    let answer = script.receive().await.unwrap();
    assert_eq!(answer["id"], "q", "{answer}");
    answer
}

fn form(task: &Value) -> Value {
    let properties = json!({"name": {"type": "string", "default": "Ada"}});
    json!({"message": "who?", "requestedSchema": {"type": "object", "properties": properties}, "task": task})
}

fn sample(task: &Value) -> Value {
    json!({"messages": [], "maxTokens": 9, "task": task})
}

/// A client that answers as soon as there are permits.
async fn gated(limits: &ClientLimits) -> (Client, Script, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let open = Arc::clone(&gate);
    let builder = builder().limits(*limits).on_elicit(move |_| {
        let gate = Arc::clone(&open);
        async move {
            gate.acquire().await.unwrap().forget();
            ElicitReply::accept_defaults()
        }
    });
    let (client, script) = connect(builder, Version::V2025_11_25).await;
    (client, script, gate)
}

#[tokio::test]
async fn the_client_says_which_questions_may_become_tasks() {
    let answers = builder()
        .on_elicit(async |_| ElicitReply::decline())
        .on_sample(async |_| Err(RpcError::internal("no")));
    let all = json!({"list": {}, "cancel": {}, "requests": {
        "elicitation": {"create": {}}, "sampling": {"createMessage": {}}}});
    let person = json!({"list": {}, "cancel": {}, "requests": {"elicitation": {"create": {}}}});
    for (builder, expected) in [
        (answers, Some(all)),
        (builder().on_elicit(async |_| ElicitReply::decline()), Some(person)),
        (builder().on_elicit(async |_| ElicitReply::decline()).tasks(false), None),
        (builder(), None),
    ] {
        let (client, _) = crate::script::attempt(builder, async |script| {
            let probe = script.expect("server/discover").await;
            script.fail(&probe, -32601, "what?").await;
            let request = script.expect("initialize").await;
            assert_eq!(request["params"]["capabilities"].get("tasks").cloned(), expected);
            script.reply(&request, crate::script::initialization("2025-11-25")).await;
            script.expect("notifications/initialized").await;
            let listed = ask(script, "tasks/list", json!({})).await;
            match expected {
                Some(_) => assert_eq!(listed["result"], json!({"tasks": []})),
                None => assert_eq!(listed["error"]["code"], -32601),
            }
        })
        .await;
        client.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_becomes_a_task_with_all_its_operations() {
    let (_client, mut script, gate) = gated(&ClientLimits::default()).await;
    let created = ask(&mut script, "elicitation/create", form(&json!({"ttl": 60_000}))).await;
    let task = &created["result"]["task"];
    let id = task["taskId"].as_str().unwrap().to_owned();
    assert_eq!(
        (&task["status"], &task["ttl"], &task["pollInterval"]),
        (&json!("working"), &json!(60_000), &json!(1000))
    );
    assert!(task["createdAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(ask(&mut script, "tasks/get", json!({"taskId": id})).await["result"], *task);
    assert_eq!(ask(&mut script, "tasks/list", json!({})).await["result"], json!({"tasks": [task]}));
    assert_eq!(ask(&mut script, "tasks/list", json!({"cursor": "x"})).await["error"]["code"], -32602);

    // Whoever asks for the result waits, and may stop waiting.
    for waiting in ["a", "b", "c"] {
        request(&mut script, waiting, "tasks/result", json!({"taskId": id})).await;
    }
    script.notify("notifications/cancelled", json!({"requestId": "b"})).await;
    script.expect_silence().await;
    gate.add_permits(1);
    let related = json!({"io.modelcontextprotocol/related-task": {"taskId": id}});
    let expected = json!({"action": "accept", "content": {"name": "Ada"}, "_meta": related});
    for waiting in ["a", "c"] {
        let answer = script.receive().await.unwrap();
        assert_eq!((&answer["id"], &answer["result"]), (&json!(waiting), &expected));
    }
    let told = script.expect("notifications/tasks/status").await;
    assert_eq!((&told["params"]["taskId"], &told["params"]["status"]), (&json!(id), &json!("completed")));
    assert_eq!(ask(&mut script, "tasks/result", json!({"taskId": id})).await["result"], expected);
    assert_eq!(ask(&mut script, "tasks/cancel", json!({"taskId": id})).await["error"]["code"], -32602);

    // After its time it is gone.
    tokio::time::advance(Duration::from_secs(61)).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(ask(&mut script, method, json!({"taskId": id})).await["error"]["code"], -32602);
    }
    assert_eq!(ask(&mut script, "tasks/get", json!({"taskId": 3})).await["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn cancelling_stops_the_handler() {
    let (_client, mut script, gate) = gated(&ClientLimits::default()).await;
    let created = ask(&mut script, "elicitation/create", form(&json!({}))).await;
    let id = created["result"]["task"]["taskId"].clone();
    assert_eq!(created["result"]["task"]["ttl"], 3_600_000, "an hour, where nothing is said");
    request(&mut script, "r", "tasks/result", json!({"taskId": id})).await;
    request(&mut script, "c", "tasks/cancel", json!({"taskId": id})).await;
    let result = script.receive().await.unwrap();
    assert_eq!((&result["id"], &result["error"]["code"]), (&json!("r"), &json!(-32603)));
    let cancelled = script.receive().await.unwrap();
    assert_eq!(cancelled["result"]["status"], "cancelled");
    assert_eq!(script.expect("notifications/tasks/status").await["params"]["status"], "cancelled");
    // The handler is gone, so the next one gets the permit.
    gate.add_permits(1);
    script.expect_silence().await;
    assert_eq!(gate.available_permits(), 1);
    assert_eq!(ask(&mut script, "tasks/get", json!({"taskId": id})).await["result"]["status"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn errors_are_kept_and_plain_questions_stay_plain() {
    let builder = builder().on_sample(async |request| match request.task {
        Some(_) => Err(RpcError::internal("the model is asleep")),
        None => Ok(CreateMessageResult::new(Role::Assistant, Content::text("hm"), "model")),
    });
    let (_client, mut script) = connect(builder, Version::V2025_11_25).await;
    let created = ask(&mut script, "sampling/createMessage", sample(&json!({}))).await;
    let id = created["result"]["task"]["taskId"].clone();
    let told = script.expect("notifications/tasks/status").await;
    assert_eq!(told["params"]["status"], "failed");
    assert!(told["params"]["statusMessage"].as_str().unwrap().contains("asleep"));
    let failed = ask(&mut script, "tasks/result", json!({"taskId": id})).await;
    assert!(failed["error"]["message"].as_str().unwrap().contains("asleep"));
    let plain = ask(&mut script, "sampling/createMessage", json!({"messages": [], "maxTokens": 9})).await;
    assert_eq!(plain["result"]["model"], "model");
    // There is no handler that could take its time.
    assert_eq!(ask(&mut script, "elicitation/create", form(&json!({}))).await["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn there_are_not_more_tasks_and_they_are_not_kept_longer_than_allowed() {
    let limits = ClientLimits::default().hosted_tasks(3).hosted_task_ttl(Duration::from_secs(60));
    let (_client, mut script, _gate) = gated(&limits).await;
    for ttl in [json!(u64::MAX), json!(0), json!(1000)] {
        let created = ask(&mut script, "elicitation/create", form(&json!({"ttl": ttl}))).await;
        let kept = created["result"]["task"]["ttl"].as_u64().unwrap();
        assert!((1000..=60_000).contains(&kept), "{kept}");
    }
    let refused = ask(&mut script, "elicitation/create", form(&json!({}))).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("hosted_tasks"), "{refused}");
    tokio::time::advance(Duration::from_secs(2)).await;
    let created = ask(&mut script, "elicitation/create", form(&json!({}))).await;
    assert!(created["result"]["task"].is_object());
    // Nor do more requests wait for a result than that.
    let id = created["result"]["task"]["taskId"].clone();
    for n in 0..8 {
        request(&mut script, n, "tasks/result", json!({"taskId": id})).await;
    }
    script.expect_silence().await;
    assert_eq!(ask(&mut script, "tasks/result", json!({"taskId": id})).await["error"]["code"], -32603);
}
