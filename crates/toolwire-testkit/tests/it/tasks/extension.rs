//! The methods of the extension of 2026-07-28.

use serde_json::json;
use toolwire_testkit::Setup;

use super::*;
use crate::text;

#[tokio::test]
async fn a_task_is_made_and_its_result_is_part_of_it() {
    extension()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let task = start(&mut wire, "sum", json!({ "a": 1, "b": 2 })).await;
            assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")));
            for never in ["result", "error", "inputRequests", "requestState", "task", "ttl", "pollInterval"] {
                assert_eq!(task.get(never), None, "{never}");
            }
            assert!(task["ttlMs"].as_u64().unwrap() > 0 && task["pollIntervalMs"].as_u64().unwrap() > 0);
            let done = until(&mut wire, &task, "completed").await;
            assert_eq!(done["resultType"], "complete");
            assert_eq!(text(&done["result"]), "3");
            assert!(done["result"]["_meta"].get(RELATED).is_none());
            assert!(done.get("requestState").is_none());
            let number = start(&mut wire, "number", json!({})).await;
            let done = until(&mut wire, &number, "completed").await;
            assert_eq!(done["result"]["structuredContent"], 7);
        })
        .await;
}

#[tokio::test]
async fn a_result_that_is_an_error_completes_the_task_and_an_error_fails_it() {
    extension()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let task = start(&mut wire, "fails", json!({})).await;
            let done = until(&mut wire, &task, "completed").await;
            assert_eq!(done["result"]["isError"], true);
            let task = start(&mut wire, "panics", json!({})).await;
            let failed = until(&mut wire, &task, "failed").await;
            assert_eq!(failed["error"]["code"], -32603);
            assert!(failed.get("result").is_none());
        })
        .await;
}

#[tokio::test]
async fn questions_are_part_of_the_task_and_vanish_when_they_are_answered() {
    extension()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let task = start(&mut wire, "asks_twice", json!({})).await;
            let waiting = until(&mut wire, &task, "input_required").await;
            assert_eq!(waiting["inputRequests"].as_object().unwrap().len(), 2);
            let mut update = id(&task);
            update["inputResponses"] = json!({ "one": depth(1), "never asked": {} });
            let acknowledged = wire.request("tasks/update", update.clone()).await;
            assert_eq!(acknowledged.result()["resultType"], "complete");
            assert!(acknowledged.result().get("taskId").is_none());
            let partly = wire.request("tasks/get", id(&task)).await;
            assert_eq!(partly.result()["status"], "input_required");
            let open: Vec<_> = partly.result()["inputRequests"].as_object().unwrap().keys().collect();
            assert_eq!(open, ["two"]);
            // What was answered is not taken again.
            update["inputResponses"] = json!({ "one": depth(9), "two": depth(2) });
            wire.request("tasks/update", update.clone()).await.result();
            let done = until(&mut wire, &task, "completed").await;
            assert_eq!(text(&done["result"]), "1 and 2");
            assert_eq!(wire.request("tasks/update", update).await.result()["resultType"], "complete");
        })
        .await;
}

#[tokio::test]
async fn a_question_that_is_asked_again_has_another_key() {
    extension()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let task = start(&mut wire, "asks", json!({})).await;
            until(&mut wire, &task, "input_required").await;
            let mut update = id(&task);
            update["inputResponses"] =
                json!({ "depth": { "action": "accept", "content": { "depth": "deep" } } });
            wire.request("tasks/update", update.clone()).await.result();
            let is_asked_again = |now: &Value| {
                now["status"] == "input_required" && now["inputRequests"].get("depth").is_none()
            };
            let again = until_it(&mut wire, &task, is_asked_again).await;
            assert!(again["inputRequests"]["depth#2"].is_object(), "{again}");
            update["inputResponses"] = json!({ "depth": depth(1), "depth#2": depth(2) });
            wire.request("tasks/update", update).await.result();
            assert_eq!(text(&until(&mut wire, &task, "completed").await["result"]), "2 deep");
        })
        .await;
}

#[tokio::test]
async fn a_cancel_is_acknowledged_whatever_became_of_the_task() {
    extension()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let task = start(&mut wire, "waits", json!({})).await;
            for _ in 0..2 {
                let acknowledged = wire.request("tasks/cancel", id(&task)).await;
                assert_eq!(acknowledged.result()["resultType"], "complete");
                assert!(acknowledged.result().get("status").is_none());
            }
            let cancelled = until(&mut wire, &task, "cancelled").await;
            assert!(cancelled.get("result").is_none() && cancelled.get("error").is_none());
        })
        .await;
}

#[tokio::test]
async fn who_has_not_declared_the_extension_learns_nothing_of_any_task() {
    extension()
        .run(async |setup: Setup| {
            let server = server();
            let task = start(&mut wire(&setup, &server).await, "sum", json!({ "a": 1, "b": 2 })).await;
            let mut wire = setup.wire(&server).await;
            for named in [id(&task), json!({ "taskId": "unknown" })] {
                for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
                    let mut params = named.clone();
                    params["inputResponses"] = json!({});
                    let reply = wire.request(method, params).await;
                    assert_eq!(reply.code(), -32021, "{method}");
                    assert_eq!(
                        reply.error()["data"]["requiredCapabilities"],
                        json!({ "extensions": { TASKS: {} } })
                    );
                }
            }
            let listen = json!({ "notifications": { "taskIds": [task["taskId"]] } });
            assert_eq!(wire.request("subscriptions/listen", listen).await.code(), -32021);
            let removed = wire.request("tasks/result", id(&task)).await;
            assert_eq!(removed.code(), -32601);
            assert_eq!(wire.request("tasks/list", json!({})).await.code(), -32601);
        })
        .await;
}

#[tokio::test]
async fn the_extension_is_announced_and_the_capability_of_the_core_is_not() {
    extension()
        .run(async |setup: Setup| {
            let mut wire = setup.wire(&server()).await;
            let found = wire.request("server/discover", json!({})).await;
            let capabilities = &found.result()["capabilities"];
            assert_eq!(capabilities["extensions"][TASKS], json!({}));
            assert_eq!(capabilities.get("tasks"), None);
        })
        .await;
}
