//! The methods of 2025-11-25.

use serde_json::json;
use toolwire_testkit::Setup;

use super::*;
use crate::text;

#[tokio::test]
async fn a_task_is_made_looked_at_and_its_result_fetched() {
    core()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let task = start(&mut wire, "sum", json!({ "a": 1, "b": 2 })).await;
            assert_eq!(task["status"], "working");
            assert!(task["ttl"].as_u64().unwrap() >= 60_000);
            assert!(task["pollInterval"].as_u64().unwrap() > 0);
            let result = wire.request("tasks/result", id(&task)).await;
            assert_eq!(text(result.result()), "3");
            assert_eq!(result.result()["_meta"][RELATED], id(&task));
            let done = wire.request("tasks/get", id(&task)).await;
            assert_eq!(done.result()["status"], "completed");
            for never in ["result", "error", "inputRequests", "resultType", "_meta", "ttlMs"] {
                assert_eq!(done.result().get(never), None, "{never}");
            }
            // It can be fetched again.
            assert_eq!(text(wire.request("tasks/result", id(&task)).await.result()), "3");
        })
        .await;
}

#[tokio::test]
async fn a_result_that_is_an_error_and_an_error_both_make_a_failed_task() {
    core()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let task = start(&mut wire, "fails", json!({})).await;
            let result = wire.request("tasks/result", id(&task)).await;
            assert_eq!(result.result()["isError"], true);
            let failed = until(&mut wire, &task, "failed").await;
            assert_eq!(failed["statusMessage"], "no such file");

            let task = start(&mut wire, "panics", json!({})).await;
            assert_eq!(wire.request("tasks/result", id(&task)).await.code(), -32603);
            until(&mut wire, &task, "failed").await;

            let wrong = start(&mut wire, "sum", json!({ "a": 1 })).await;
            let result = wire.request("tasks/result", id(&wrong)).await;
            assert_eq!(result.result()["isError"], true, "wrong arguments are the result of the task");
            until(&mut wire, &wrong, "failed").await;
        })
        .await;
}

#[tokio::test]
async fn structured_content_is_wrapped_as_the_list_of_tools_says() {
    core()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let task = start(&mut wire, "number", json!({})).await;
            let result = wire.request("tasks/result", id(&task)).await;
            assert_eq!(result.result()["structuredContent"], json!({ "result": 7 }));
        })
        .await;
}

#[tokio::test]
async fn questions_come_while_the_result_is_waited_for() {
    core()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let task = start(&mut wire, "asks", json!({})).await;
            let waiting = until(&mut wire, &task, "input_required").await;
            assert_eq!(waiting["statusMessage"], "waits for an answer: How deep?");
            let result = wire.start("tasks/result", id(&task)).await;
            let question = next_of(&mut wire, "elicitation/create").await;
            assert_eq!(question["params"]["_meta"][RELATED], id(&task));
            let named = format!("t:{}:", task["taskId"].as_str().unwrap());
            assert!(question["id"].as_str().unwrap().starts_with(&named), "{question}");
            answer(&mut wire, &question, depth(3)).await;
            assert_eq!(text(wire.reply(result).await.result()), "3 deep");
            // The same answer once more changes nothing.
            answer(&mut wire, &question, depth(4)).await;
            assert_eq!(text(wire.request("tasks/result", id(&task)).await.result()), "3 deep");
        })
        .await;
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again_by_another_request() {
    core()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let task = start(&mut wire, "asks", json!({})).await;
            let result = wire.start("tasks/result", id(&task)).await;
            let first = next_of(&mut wire, "elicitation/create").await;
            answer(&mut wire, &first, json!({ "action": "accept", "content": { "depth": "deep" } })).await;
            let second = next_of(&mut wire, "elicitation/create").await;
            assert!(second["id"].as_str().unwrap().ends_with(":depth#2"), "{second}");
            answer(&mut wire, &second, depth(5)).await;
            assert_eq!(text(wire.reply(result).await.result()), "5 deep");
        })
        .await;
}

#[tokio::test]
async fn a_client_that_refuses_a_question_is_heard() {
    core()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let task = start(&mut wire, "asks", json!({})).await;
            let result = wire.start("tasks/result", id(&task)).await;
            let question = next_of(&mut wire, "elicitation/create").await;
            let refusal = json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -1, "message": "nobody is there" } });
            wire.send_raw(refusal.to_string()).await;
            let reply = wire.reply(result).await;
            assert!(reply.message().to_string().contains("nobody is there"), "{:?}", reply.message());
            until(&mut wire, &task, "failed").await;
        })
        .await;
}

#[tokio::test]
async fn of_several_who_wait_the_newest_is_asked_and_all_get_the_result() {
    core()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let task = start(&mut wire, "asks", json!({})).await;
            let first = wire.start("tasks/result", id(&task)).await;
            let old = next_of(&mut wire, "elicitation/create").await;
            let second = wire.start("tasks/result", id(&task)).await;
            let (mut withdrawn, mut new) = (None, None);
            while withdrawn.is_none() || new.is_none() {
                let message = wire.next().await;
                match message["method"].as_str() {
                    Some("notifications/cancelled") => {
                        withdrawn = Some(message["params"]["requestId"].clone());
                    }
                    Some("elicitation/create") => new = Some(message),
                    _ => {}
                }
            }
            assert_eq!(withdrawn.unwrap(), old["id"]);
            answer(&mut wire, &new.unwrap(), depth(1)).await;
            assert_eq!(text(wire.reply(first).await.result()), "1 deep");
            assert_eq!(text(wire.reply(second).await.result()), "1 deep");
        })
        .await;
}

#[tokio::test]
async fn a_task_is_cancelled_once_and_has_no_result_then() {
    core()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let task = start(&mut wire, "waits", json!({})).await;
            let waiting = wire.start("tasks/result", id(&task)).await;
            let cancelled = wire.request("tasks/cancel", id(&task)).await;
            assert_eq!(cancelled.result()["status"], "cancelled");
            assert_eq!(wire.reply(waiting).await.code(), -32603);
            let again = wire.request("tasks/cancel", id(&task)).await;
            assert_eq!(again.code(), -32602);
            assert!(again.error_text().contains("cancelled"), "{}", again.error_text());
            let done = start(&mut wire, "fails", json!({})).await;
            until(&mut wire, &done, "failed").await;
            let late = wire.request("tasks/cancel", id(&done)).await;
            assert!(late.error_text().contains("failed"), "{}", late.error_text());
        })
        .await;
}

#[tokio::test]
async fn what_the_other_era_has_is_not_there() {
    core()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let task = start(&mut wire, "asks", json!({})).await;
            let mut update = id(&task);
            update["inputResponses"] = json!({ "depth": depth(1) });
            assert_eq!(wire.request("tasks/update", update).await.code(), -32601);
        })
        .await;
}
