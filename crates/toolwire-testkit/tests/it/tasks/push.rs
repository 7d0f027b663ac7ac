//! What clients are told of their tasks without asking.

use serde_json::json;
use toolwire_testkit::Setup;

use super::*;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

#[tokio::test]
async fn a_session_is_told_how_its_tasks_stand() {
    core()
        .run(async |setup: Setup| {
            let server = server();
            let mut wire = wire(&setup, &server).await;
            let mut other = super::wire(&setup, &server).await;
            let task = start(&mut wire, "asks", json!({})).await;
            let told = next_of(&mut wire, "notifications/tasks/status").await;
            assert_eq!(told["params"]["taskId"], task["taskId"]);
            assert!(told["params"].get("_meta").is_none(), "{told}");
            let result = wire.start("tasks/result", id(&task)).await;
            let question = next_of(&mut wire, "elicitation/create").await;
            answer(&mut wire, &question, depth(1)).await;
            wire.reply(result).await.result();
            let mut statuses = vec![told["params"]["status"].clone()];
            while statuses.last().unwrap() != "completed" {
                let told = next_of(&mut wire, "notifications/tasks/status").await;
                statuses.push(told["params"]["status"].clone());
            }
            assert!(statuses.contains(&json!("completed")));
            wire.expect_silence().await;
            other.expect_silence().await;
        })
        .await;
}

#[tokio::test]
async fn progress_goes_on_to_the_end_in_the_core_and_is_the_message_of_the_status() {
    core()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let call = json!({ "name": "reports", "task": {}, "_meta": { "progressToken": "p" } });
            let reply = wire.request("tools/call", call).await;
            let task = reply.result()["task"].clone();
            let progress = next_of(&mut wire, "notifications/progress").await;
            assert_eq!(progress["params"]["progressToken"], "p");
            assert_eq!(progress["params"]["progress"], 1.0);
            assert_eq!(progress["params"]["message"], "fetched");
            assert_eq!(progress["params"]["_meta"][RELATED], id(&task));
        })
        .await;
}

#[tokio::test]
async fn a_listener_is_told_of_the_tasks_that_it_names_and_may_see() {
    extension()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let task = start(&mut wire, "asks", json!({})).await;
            until(&mut wire, &task, "input_required").await;
            let ids = json!([task["taskId"], "unknown", "A".repeat(32)]);
            let listen = json!({ "notifications": { "taskIds": ids } });
            wire.start_as(json!("l"), "subscriptions/listen", listen).await;
            let agreed = wire.next_notification("notifications/subscriptions/acknowledged").await;
            assert_eq!(agreed["notifications"], json!({ "taskIds": [task["taskId"]] }));
            let now = wire.next_notification("notifications/tasks").await;
            assert_eq!(now["status"], "input_required");
            assert_eq!(now["_meta"], json!({ SUBSCRIPTION: "l" }));
            assert!(now["inputRequests"]["depth"].is_object());
            assert!(now.get("resultType").is_none());
            let mut update = id(&task);
            update["inputResponses"] = json!({ "depth": depth(1) });
            wire.request("tasks/update", update).await.result();
            let done = loop {
                let told = next_of(&mut wire, "notifications/tasks").await;
                if told["params"]["status"] == "completed" {
                    break told["params"].clone();
                }
            };
            assert_eq!(crate::text(&done["result"]), "1 deep");
            wire.expect_silence().await;
        })
        .await;
}

#[tokio::test]
async fn progress_of_a_task_of_the_extension_is_its_message_and_nothing_else() {
    extension()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let call = json!({ "name": "reports", "_meta": { "progressToken": "p" } });
            let reply = wire.request("tools/call", call).await;
            let task = reply.result().clone();
            let waiting = until(&mut wire, &task, "input_required").await;
            assert_eq!(waiting["statusMessage"], "waits for an answer: Go on?");
            wire.expect_silence().await;
        })
        .await;
}
