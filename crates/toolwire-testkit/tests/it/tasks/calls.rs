//! What a call becomes: table 2A.

use serde_json::json;
use toolwire_testkit::{Matrix, Setup};

use super::*;
use crate::text;

#[tokio::test]
async fn who_has_not_declared_the_extension_is_answered_inline() {
    extension()
        .run(async |setup: Setup| {
            let mut wire = setup.wire(&server()).await;
            for tool in ["plain", "sum", "later"] {
                let params = json!({ "name": tool, "arguments": if tool == "plain" { json!({}) } else { json!({ "a": 1, "b": 2 }) } });
                let reply = wire.request("tools/call", params).await;
                assert_eq!(reply.result()["resultType"], "complete", "{tool}");
            }
            let reply = wire.request("tools/call", json!({ "name": "must" })).await;
            assert_eq!(reply.code(), -32021);
            let required = &reply.error()["data"]["requiredCapabilities"];
            assert_eq!(*required, json!({ "extensions": { TASKS: {} } }));
        })
        .await;
}

#[tokio::test]
async fn who_has_declared_it_gets_a_task_where_the_tool_says_so() {
    extension()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            for tool in ["sum", "must"] {
                let arguments = if tool == "sum" { json!({ "a": 1, "b": 2 }) } else { json!({}) };
                let reply = wire.request("tools/call", json!({ "name": tool, "arguments": arguments })).await;
                assert_eq!(reply.result()["resultType"], "task", "{tool}");
            }
            let later = json!({ "name": "later", "arguments": { "a": 1, "b": 2 } });
            assert_eq!(text(wire.request("tools/call", later).await.result()), "3");
            let plain = json!({ "name": "plain", "task": { "ttl": 1 } });
            assert_eq!(text(wire.request("tools/call", plain).await.result()), "plain");
            // The wish of another revision is ignored, whatever it is.
            let odd = json!({ "name": "plain", "task": 7 });
            assert_eq!(text(wire.request("tools/call", odd).await.result()), "plain");
            let wrong = wire.request("tools/call", json!({ "name": "sum", "arguments": { "a": 1 } })).await;
            assert_eq!(wrong.result()["isError"], true, "what is wrong with the arguments is told at once");
        })
        .await;
}

#[tokio::test]
async fn in_the_core_the_client_decides_and_the_tool_may_refuse() {
    core()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let call = |name: &str, task: bool| {
                let mut params = json!({ "name": name });
                if ["sum", "later"].contains(&name) {
                    params["arguments"] = json!({ "a": 1, "b": 2 });
                }
                if task {
                    params["task"] = json!({});
                }
                params
            };
            for tool in ["sum", "later", "must"] {
                let reply = wire.request("tools/call", call(tool, true)).await;
                assert_eq!(reply.result()["task"]["status"], "working", "{tool}");
            }
            for tool in ["sum", "later", "plain"] {
                let reply = wire.request("tools/call", call(tool, false)).await;
                assert!(reply.result()["content"].is_array(), "{tool}");
            }
            assert_eq!(wire.request("tools/call", call("plain", true)).await.code(), -32601);
            assert_eq!(wire.request("tools/call", call("must", false)).await.code(), -32601);
            let odd = json!({ "name": "sum", "arguments": { "a": 1, "b": 2 }, "task": 7 });
            assert_eq!(wire.request("tools/call", odd).await.code(), -32602);
        })
        .await;
}

#[tokio::test]
async fn a_server_without_tasks_ignores_the_wish_for_one() {
    core()
        .run(async |setup: Setup| {
            let plain = Server::builder("plain", "1.0").tool(tool("plain", || async { "plain" }));
            let mut wire = wire(&setup, &plain.build().unwrap()).await;
            let reply = wire.request("tools/call", json!({ "name": "plain", "task": {} })).await;
            assert_eq!(text(reply.result()), "plain");
            assert_eq!(wire.request("tasks/get", json!({ "taskId": "x" })).await.code(), -32601);
        })
        .await;
}

#[tokio::test]
async fn older_revisions_have_no_tasks() {
    let older = Version::ALL.into_iter().filter(|version| *version < CORE);
    Matrix::new()
        .versions(older)
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let call = json!({ "name": "sum", "arguments": { "a": 1, "b": 2 }, "task": {} });
            assert_eq!(text(wire.request("tools/call", call).await.result()), "3");
            let must = wire.request("tools/call", json!({ "name": "must" })).await;
            assert_eq!(must.result()["isError"], true);
            assert!(text(must.result()).contains("2025-11-25"), "{:?}", must.message());
            for method in ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"] {
                assert_eq!(wire.request(method, json!({ "taskId": "x" })).await.code(), -32601, "{method}");
            }
            let list = wire.request("tools/list", json!({})).await;
            assert!(
                list.result()["tools"].as_array().unwrap().iter().all(|tool| tool.get("execution").is_none())
            );
        })
        .await;
}

#[tokio::test]
async fn lists_say_which_tools_have_tasks_in_the_core_only() {
    both()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &server()).await;
            let list = wire.request("tools/list", json!({})).await;
            for tool in list.result()["tools"].as_array().unwrap() {
                let support = match tool["name"].as_str().unwrap() {
                    _ if setup.version == EXTENSION => None,
                    "plain" => None,
                    "must" => Some("required"),
                    _ => Some("optional"),
                };
                assert_eq!(tool["execution"]["taskSupport"].as_str(), support, "{tool}");
            }
        })
        .await;
}

#[tokio::test]
async fn beyond_the_limit_the_core_is_told_that_the_server_is_busy_and_the_extension_goes_on_inline() {
    both()
        .run(async |setup: Setup| {
            let mut wire = wire(&setup, &builder().limits(few_tasks(1)).build().unwrap()).await;
            start(&mut wire, "waits", json!({})).await;
            let mut call = json!({ "name": "sum", "arguments": { "a": 1, "b": 2 } });
            if setup.version == CORE {
                call["task"] = json!({});
                let reply = wire.request("tools/call", call).await;
                assert_eq!(reply.code(), -32603);
                assert!(reply.error_text().contains("nothing was started"), "{}", reply.error_text());
            } else {
                assert_eq!(text(wire.request("tools/call", call).await.result()), "3");
                assert_eq!(wire.request("tools/call", json!({ "name": "must" })).await.code(), -32603);
            }
        })
        .await;
}
