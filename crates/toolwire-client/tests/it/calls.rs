//! Calls: what is sent, what comes back, and what happens when nobody waits.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolwire_client::{ClientLimits, Delivery, ErrorKind};
use toolwire_protocol::{
    Version,
    wire::{CompletionReference, LoggingLevel, PromptReference},
};

use crate::script::{VERSION_KEY, builder, connect, legacy, modern, text};

#[tokio::test]
async fn a_modern_call_carries_its_envelope_and_a_legacy_one_does_not() {
    let (client, mut script) = modern().await;
    let call =
        client.call("add", json!({"a": 1})).meta("com.example/tenant", "blue").log_level(LoggingLevel::Error);
    let (outcome, ()) = tokio::join!(call, async {
        let request = script.expect("tools/call").await;
        assert_eq!(request["params"]["name"], "add");
        assert_eq!(request["params"]["arguments"], json!({"a": 1}));
        let meta = request["params"]["_meta"].as_object().unwrap();
        assert_eq!(meta[VERSION_KEY], "2026-07-28");
        assert_eq!(meta["com.example/tenant"], "blue");
        assert_eq!(meta["io.modelcontextprotocol/logLevel"], "error");
        assert!(!meta.contains_key("progressToken"));
        script.reply(&request, text("2")).await;
    });
    assert_eq!(outcome.unwrap().text(), "2");

    let (client, mut script) = legacy().await;
    let (outcome, ()) = tokio::join!(client.call("now", ()), async {
        let request = script.expect("tools/call").await;
        assert_eq!(request["params"], json!({"name": "now"}));
        script.reply(&request, json!({"content": [], "isError": true})).await;
    });
    assert!(outcome.unwrap().is_error());
}

#[tokio::test]
async fn every_typed_method_sends_what_it_should() {
    for version in Version::ALL {
        let (client, mut script) = connect(builder(), version).await;
        let answers = async {
            let request = script.expect("resources/read").await;
            assert_eq!(request["params"]["uri"], "file:///a");
            script.reply(&request, json!({"contents": [{"uri": "file:///a", "text": "hi"}]})).await;
            let request = script.expect("prompts/get").await;
            assert_eq!(request["params"]["arguments"], json!({"who": "Ada"}));
            script.reply(&request, json!({"messages": []})).await;
            let request = script.expect("completion/complete").await;
            assert_eq!(request["params"]["ref"], json!({"type": "ref/prompt", "name": "greet"}));
            assert_eq!(request["params"]["argument"], json!({"name": "who", "value": "A"}));
            assert_eq!(request["params"]["context"], json!({"arguments": {"title": "Dr"}}));
            script.reply(&request, json!({"completion": {"values": ["Ada"]}})).await;
            let request = script.expect("com.example/odd").await;
            assert_eq!(request["params"]["x"], 1);
            script.reply(&request, json!({"resultType": "odd", "y": 2})).await;
            let notification = script.expect("notifications/com.example").await;
            assert_eq!(notification["params"], json!({"z": 3}));
        };
        let calls = async {
            assert_eq!(client.read("file:///a").await.unwrap().contents.len(), 1);
            assert!(client.get_prompt("greet", json!({"who": "Ada"})).await.unwrap().messages.is_empty());
            let greet: CompletionReference = PromptReference::new("greet").into();
            let completed = client.complete(greet, "who", "A").context([("title", "Dr")]).await.unwrap();
            assert_eq!(completed.completion.values, ["Ada"]);
            let raw = client.raw();
            let odd = raw.request("com.example/odd", json!({"x": 1})).await.unwrap();
            assert_eq!(odd.text(), r#"{"resultType":"odd","y":2}"#);
            raw.notify("notifications/com.example", json!({"z": 3})).await.unwrap();
        };
        tokio::join!(calls, answers);
    }
}

#[tokio::test]
async fn legacy_only_methods_work_where_they_exist() {
    let (client, mut script) = legacy().await;
    let calls = async {
        client.ping().await.unwrap();
        client.set_log_level(LoggingLevel::Debug).await.unwrap();
        client.roots_changed().await.unwrap();
    };
    tokio::join!(calls, async {
        let ping = script.expect("ping").await;
        script.reply(&ping, json!({})).await;
        let level = script.expect("logging/setLevel").await;
        script.reply(&level, json!({})).await;
        script.expect("notifications/roots/list_changed").await;
    });
}

#[tokio::test]
async fn parameters_that_cannot_be_sent_are_not() {
    let (client, mut script) = modern().await;
    for error in [
        client.call("add", [1, 2]).await.unwrap_err(),
        client.call("add", 3).await.unwrap_err(),
        client.get_prompt("greet", json!({"who": 3})).await.unwrap_err(),
        client.raw().request("x", "text").await.unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::InvalidParams, Delivery::NotSent));
    }
    script.expect_silence().await;
}

#[tokio::test]
async fn an_error_says_whether_the_server_may_have_acted() {
    let (client, mut script) = modern().await;
    let (rejected, ()) = tokio::join!(client.call("x", ()), async {
        let request = script.expect("tools/call").await;
        script.fail(&request, -32602, "no tool named \"x\"").await;
    });
    let rejected = rejected.unwrap_err();
    assert_eq!((rejected.kind(), rejected.delivery()), (ErrorKind::Rpc, Delivery::Rejected));
    assert_eq!(rejected.rpc().unwrap().message, "no tool named \"x\"");

    let (unknown, ()) = tokio::join!(client.call("x", ()), async {
        script.expect("tools/call").await;
        drop(script);
    });
    let unknown = unknown.unwrap_err();
    assert_eq!((unknown.kind(), unknown.delivery()), (ErrorKind::Closed, Delivery::Unknown));
    assert!(unknown.to_string().contains("the server closed the connection"), "{unknown}");

    let not_sent = client.call("x", ()).await.unwrap_err();
    assert_eq!((not_sent.kind(), not_sent.delivery()), (ErrorKind::Closed, Delivery::NotSent));
    assert!(not_sent.to_string().contains("the server closed the connection"), "{not_sent}");
}

#[tokio::test]
async fn a_result_of_an_unknown_or_wrong_kind_is_an_error() {
    let (client, mut script) = modern().await;
    for result in [
        json!({"resultType": "surprise", "content": []}),
        json!({"resultType": "task", "taskId": "1"}),
        json!({"resultType": "complete"}),
        json!({"content": 3}),
        json!([]),
    ] {
        let (outcome, ()) = tokio::join!(client.call("x", ()), async {
            let request = script.expect("tools/call").await;
            script.reply(&request, result.clone()).await;
        });
        let error = outcome.unwrap_err();
        assert_eq!(
            (error.kind(), error.delivery()),
            (ErrorKind::InvalidResponse, Delivery::Unknown),
            "{result}"
        );
    }
    // Lists have no rounds.
    let (outcome, ()) = tokio::join!(client.list_tools(), async {
        let request = script.expect("tools/list").await;
        script.reply(&request, json!({"resultType": "input_required", "requestState": "s"})).await;
    });
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::InvalidResponse);
}

#[tokio::test]
async fn progress_is_passed_on_in_order_and_only_forward() {
    for version in [Version::LATEST, Version::LATEST_LEGACY] {
        let (client, mut script) = connect(builder(), version).await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let call =
            client.call("slow", ()).progress(move |step| noted.lock().unwrap().push(step.progress.as_f64()));
        let (outcome, ()) = tokio::join!(call, async {
            let request = script.expect("tools/call").await;
            for progress in [1.0, 3.0, 2.0, 3.0, 4.5] {
                script.progress(&request, progress).await;
            }
            script.reply(&request, text("done")).await;
            // It is late, and nobody minds.
            script.progress(&request, 5.0).await;
        });
        assert_eq!(outcome.unwrap().text(), "done");
        assert_eq!(*seen.lock().unwrap(), [1.0, 3.0, 4.5]);
    }
}

#[tokio::test]
async fn progress_for_a_token_of_ones_own_is_a_notification_like_any_other() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let listening =
        builder().on_notification(move |heard| noted.lock().unwrap().push(heard.params.text().to_owned()));
    let (client, mut script) = connect(listening, Version::LATEST).await;
    let raw = client.raw();
    let call = raw.request("tools/call", json!({"name": "x", "_meta": {"progressToken": "mine"}}));
    let (result, ()) = tokio::join!(call, async {
        let request = script.expect("tools/call").await;
        script.progress(&request, 1.0).await;
        script.reply(&request, text("done")).await;
    });
    result.unwrap();
    assert_eq!(*seen.lock().unwrap(), [r#"{"progress":1.0,"progressToken":"mine"}"#]);
}

#[tokio::test]
async fn dropping_a_call_cancels_it_and_nothing_else() {
    for version in [Version::LATEST, Version::LATEST_LEGACY] {
        let (client, mut script) = connect(builder(), version).await;
        let request = {
            let call = client.call("slow", ()).into_future();
            tokio::select! {
                _ = call => panic!("there was no answer"),
                request = script.expect("tools/call") => request,
            }
        };
        let cancelled = script.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], request["id"]);
        // The answer comes too late to matter, and the next call is another one.
        script.reply(&request, text("late")).await;
        let (outcome, ()) = tokio::join!(client.call("next", ()), async {
            let request = script.expect("tools/call").await;
            script.reply(&request, text("in time")).await;
        });
        assert_eq!(outcome.unwrap().text(), "in time");
        script.expect_silence().await;
    }
}

#[tokio::test]
async fn a_call_that_is_done_is_not_cancelled() {
    let (client, mut script) = modern().await;
    let mut call = Box::pin(client.call("fast", ()).into_future());
    let request = tokio::select! {
        biased;
        _ = &mut call => panic!("there was no answer"),
        request = script.expect("tools/call") => request,
    };
    script.reply(&request, text("done")).await;
    script.expect_silence().await;
    // The answer is here, but nobody has looked at it.
    drop(call);
    script.expect_silence().await;
}

#[tokio::test]
async fn initialize_and_the_probe_are_never_cancelled() {
    for opening in ["server/discover", "initialize"] {
        let (end, mut script) = crate::script::Script::pair();
        let builder = builder();
        let builder =
            if opening == "initialize" { builder.era(toolwire_client::EraChoice::Legacy) } else { builder };
        tokio::select! {
            _ = builder.connect(end) => panic!("there was no answer"),
            _ = script.expect(opening) => {}
        }
        script.expect_end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_at_once() {
    let (client, mut script) = modern().await;
    let server = tokio::spawn(async move {
        let mut requests = Vec::new();
        for _ in 0..1000 {
            requests.push(script.expect("tools/call").await);
        }
        // In the other order, so that nothing is answered by luck.
        for request in requests.iter().rev() {
            let number = request["params"]["arguments"]["n"].to_string();
            script.reply(request, text(&number)).await;
        }
        script
    });
    let calls: Vec<_> = (0..1000)
        .map(|number| {
            let call = client.call("echo", json!({"n": number})).into_future();
            tokio::spawn(async move { (number, call.await.unwrap().text()) })
        })
        .collect();
    for call in calls {
        let (number, text) = call.await.unwrap();
        assert_eq!(text, number.to_string());
    }
    server.await.unwrap();
}

#[tokio::test]
async fn the_limit_of_open_requests_is_an_error_and_not_a_queue() {
    let (client, mut script) =
        connect(builder().limits(ClientLimits::default().pending_requests(2)), Version::LATEST).await;
    let mut first = Box::pin(client.call("a", ()).into_future());
    let mut second = Box::pin(client.call("b", ()).into_future());
    let request = tokio::select! {
        biased;
        _ = &mut first => panic!(),
        _ = &mut second => panic!(),
        request = script.expect("tools/call") => request,
    };
    let error = client.call("c", ()).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Busy, Delivery::NotSent));
    script.reply(&request, text("a")).await;
    assert_eq!(first.await.unwrap().text(), "a");
    script.expect("tools/call").await;
    let mut third = Box::pin(client.call("c", ()).into_future());
    tokio::select! {
        biased;
        _ = &mut third => panic!(),
        request = script.expect("tools/call") => assert_eq!(request["params"]["name"], "c"),
    }
}

#[tokio::test]
async fn big_calls_wait_for_a_slow_server_and_are_not_refused() {
    let (client, mut script) = modern().await;
    let big = "x".repeat(64 * 1024);
    let calls = (0..300).map(|_| tokio::spawn(client.call("big", json!({"text": big})).into_future()));
    let calls: Vec<_> = calls.collect();
    for _ in 0..300 {
        let request = script.expect("tools/call").await;
        script.reply(&request, text("ok")).await;
    }
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().text(), "ok");
    }
}

/// A call is allocated as a whole. Above this size the usual allocator has to search for a place.
#[tokio::test]
async fn a_call_is_a_small_allocation() {
    let (client, _script) = modern().await;
    let call = client.call("add", json!({})).into_future();
    assert!(size_of_val(&*call) <= 1024, "{} bytes", size_of_val(&*call));
}
