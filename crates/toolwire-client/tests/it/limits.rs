//! Each limit of the client, met by weight.

use std::time::Duration;

use serde_json::{Value, json};
use toolwire_client::{ClientLimits, Delivery, ElicitReply, EraChoice, Error, ErrorKind};
use toolwire_protocol::Version;
use toolwire_transport::{Duplex, Sink, Source, lines::Lines};

use crate::script::{Script, attempt, builder, connect, discovery, initialization, text};

fn limits() -> ClientLimits {
    ClientLimits::default()
}

fn met(error: &Error, kind: ErrorKind, limit: &str) {
    assert_eq!((error.kind(), error.limit()), (kind, Some(limit)), "{error}");
    assert!(error.to_string().contains(limit), "{error}");
}

fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// Answers with page after page until the client has had enough.
async fn pages(script: &mut Script, page: impl Fn(usize) -> Value) -> usize {
    let mut number = 0;
    while let Some(request) = script.receive_now().await {
        let mut page = page(number);
        number += 1;
        assert!(number < 100, "pages are asked for without an end");
        page["nextCursor"] = number.to_string().into();
        script.reply(&request, page).await;
    }
    number
}

#[tokio::test]
async fn the_bytes_of_a_list_are_limited() {
    for version in [Version::LATEST, Version::LATEST_LEGACY] {
        let (client, mut script) = connect(builder().limits(limits().list_bytes(5_000_000)), version).await;
        let heavy = "x".repeat(1_000_000);
        let page = |number: usize| {
            let mut tool = tool(&number.to_string());
            tool["description"] = heavy.as_str().into();
            json!({"tools": [tool], "ttlMs": 60_000, "cacheScope": "private"})
        };
        let (tools, asked) = tokio::join!(client.all_tools(), pages(&mut script, page));
        met(&tools.unwrap_err(), ErrorKind::TooLarge, "list_bytes");
        assert_eq!(asked, 5, "and no more is asked for");
        // Those that were stored count as well.
        if version.is_modern() {
            let (tools, _) = tokio::join!(client.all_tools(), pages(&mut script, page));
            met(&tools.unwrap_err(), ErrorKind::TooLarge, "list_bytes");
        }
    }
}

#[tokio::test]
async fn the_items_of_a_list_are_limited_over_its_pages_and_within_one() {
    let (client, mut script) = connect(builder().limits(limits().list_items(1000)), Version::LATEST).await;
    let hundred = |_: usize| json!({"tools": vec![tool("t"); 100]});
    let (tools, asked) = tokio::join!(client.all_tools(), pages(&mut script, hundred));
    met(&tools.unwrap_err(), ErrorKind::TooLarge, "list_items");
    assert_eq!(asked, 11);

    let many = |_: usize| json!({"resources": vec![json!({}); 20_000]});
    let (resources, asked) = tokio::join!(client.all_resources(), pages(&mut script, many));
    met(&resources.unwrap_err(), ErrorKind::TooLarge, "list_items");
    assert_eq!(asked, 1, "they are counted before they are decoded, or it would be an invalid answer");
}

#[tokio::test]
async fn empty_pages_without_an_end_are_limited() {
    let (client, mut script) = connect(builder().limits(limits().list_pages(20)), Version::LATEST).await;
    let (prompts, asked) = tokio::join!(client.all_prompts(), pages(&mut script, |_| json!({"prompts": []})));
    met(&prompts.unwrap_err(), ErrorKind::TooManyPages, "list_pages");
    assert_eq!(asked, 20);
}

#[tokio::test]
async fn what_a_server_says_of_itself_is_limited() {
    let long = "x".repeat(70_000);
    let limited = || builder().limits(limits().server_info_bytes(64 * 1024));
    let (client, mut script) = attempt(limited(), async |script| {
        let probe = script.expect("server/discover").await;
        let mut found = discovery();
        found["instructions"] = long.as_str().into();
        script.reply(&probe, found).await;
    })
    .await;
    met(&client.unwrap_err(), ErrorKind::TooLarge, "server_info_bytes");
    script.expect_end().await;

    let (client, mut script) = attempt(limited().era(EraChoice::Legacy), async |script| {
        let request = script.expect("initialize").await;
        let mut result = initialization("2025-11-25");
        result["capabilities"]["experimental"] = json!({ long.as_str(): {} });
        script.reply(&request, result).await;
    })
    .await;
    met(&client.unwrap_err(), ErrorKind::TooLarge, "server_info_bytes");
    script.expect_end().await;
}

#[tokio::test]
async fn stored_results_are_limited_in_bytes() {
    let (client, mut script) =
        connect(builder().limits(limits().cache_bytes(250_000)), Version::LATEST).await;
    for number in 0..10 {
        let (read, ()) = tokio::join!(client.read(format!("file:///{number}")), async {
            let request = script.expect("resources/read").await;
            let contents = json!([{"uri": "file:///", "text": "x".repeat(100_000)}]);
            script
                .reply(&request, json!({"contents": contents, "ttlMs": 60_000, "cacheScope": "private"}))
                .await;
        });
        read.unwrap();
        assert!(client.usage().cached_bytes <= 250_000, "{:?}", client.usage());
    }
    assert!(client.usage().cached_bytes > 200_000, "{:?}", client.usage());
}

#[tokio::test(start_paused = true)]
async fn answers_that_nobody_takes_are_limited_in_bytes() {
    let (client, mut script) =
        connect(builder().limits(limits().waiting_bytes(1_000_000)), Version::LATEST).await;
    // They are polled once, so that they are sent, and then not until all answers are there.
    let mut calls: Vec<_> = (0..20).map(|_| Box::pin(client.call("x", ()).into_future())).collect();
    for call in &mut calls {
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx).is_pending()));
        assert!(polled.await);
    }
    for _ in 0..20 {
        let request = script.expect("tools/call").await;
        script.reply(&request, text(&"x".repeat(100_000))).await;
    }
    // Reading goes on slowly while nobody takes anything.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let waiting = client.usage().waiting_bytes;
    assert!((800_000..=1_000_000).contains(&waiting), "{waiting}");
    let (mut good, mut failed) = (0, 0);
    for call in calls {
        match call.await {
            Ok(outcome) => {
                assert_eq!(outcome.text().len(), 100_000);
                good += 1;
            }
            Err(error) => {
                met(&error, ErrorKind::TooLarge, "waiting_bytes");
                assert_eq!(error.delivery(), Delivery::Unknown);
                failed += 1;
            }
        }
    }
    assert_eq!((good, failed), (9, 11));
    assert_eq!(client.usage().waiting_bytes, 0);
    let (outcome, ()) = tokio::join!(client.call("x", ()), async {
        let request = script.expect("tools/call").await;
        script.reply(&request, text(&"x".repeat(2_000_000))).await;
    });
    assert_eq!(outcome.unwrap().text().len(), 2_000_000, "one of any size passes when nothing else waits");
}

#[tokio::test]
async fn questions_that_wait_are_limited_in_bytes() {
    let limits = limits().waiting_bytes(4_000_000).concurrent_handlers(1);
    let forever = builder().limits(limits).on_elicit(async |_| {
        std::future::pending::<()>().await;
        ElicitReply::cancel()
    });
    let (client, mut script) = connect(forever, Version::LATEST_LEGACY).await;
    let schema = json!({"type": "object", "properties": {}});
    for id in 0..10 {
        let params = json!({"message": "x".repeat(300_000), "requestedSchema": schema});
        let method = "elicitation/create";
        script.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }
    for id in 3..10 {
        let refused = script.receive().await.unwrap();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(id), &json!(-32603)));
        assert!(refused["error"]["message"].as_str().unwrap().contains("waiting_bytes"), "{refused}");
    }
    assert!(client.usage().waiting_bytes <= 1_000_000, "{:?}", client.usage());
    for id in 0..3 {
        script.notify("notifications/cancelled", json!({"requestId": id})).await;
    }
    script.expect_silence().await;
    assert_eq!(client.usage().waiting_bytes, 0);
}

#[tokio::test]
async fn names_of_changed_resources_that_wait_are_limited_in_bytes() {
    let limits = limits().waiting_bytes(4_000_000);
    let (client, mut script) = connect(builder().limits(limits), Version::LATEST_LEGACY).await;
    let (listener, ()) = tokio::join!(client.listen().resource("file:///"), async {
        let request = script.expect("resources/subscribe").await;
        script.reply(&request, json!({})).await;
    });
    let mut listener = listener.unwrap();
    for number in 0..5 {
        let uri = format!("file:///{number}{}", "x".repeat(300_000));
        script.notify("notifications/resources/updated", json!({"uri": uri})).await;
        script.expect_silence().await;
        assert!(client.usage().waiting_bytes <= 1_000_000, "{:?}", client.usage());
    }
    assert_eq!(listener.next().await, Some(toolwire_client::Change::Resync));
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_server_that_does_not_read_is_limited_in_bytes() {
    let limits = limits().outgoing_bytes(1_000_000).request_timeout(Duration::from_secs(3));
    let (client, _script) = connect(builder().limits(limits), Version::LATEST_LEGACY).await;
    let heavy = json!({"x": "x".repeat(200_000)});
    let mut sent = 0;
    let error = loop {
        match client.raw().notify("com.example/x", &heavy).await {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        assert!(sent < 100, "messages are taken without an end");
    };
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Timeout, Delivery::NotSent), "{error}");
    // Five in the pipe, one on its way, five in the queue.
    assert!((5..15).contains(&sent), "{sent}");
}

#[tokio::test]
async fn an_answer_that_is_too_long_to_be_read_fails_its_call_at_once() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(near);
    let transport = Lines::new(reader, writer).max_message_bytes(10_000);
    let (reader, writer) = tokio::io::split(far);
    let (mut source, mut sink) = Lines::new(reader, writer).split();
    let server = tokio::spawn(async move {
        for result in [discovery(), text(&"x".repeat(20_000)), text("ok")] {
            let request: Value = serde_json::from_slice(&source.receive().await.unwrap().unwrap()).unwrap();
            let answer = json!({"result": result, "jsonrpc": "2.0", "id": request["id"]});
            sink.send(answer.to_string().into()).await.unwrap();
            sink.flush().await.unwrap();
        }
        let ask = json!({"method": "ping", "params": {"x": "x".repeat(20_000)}, "jsonrpc": "2.0", "id": "q"});
        sink.send(ask.to_string().into()).await.unwrap();
        sink.flush().await.unwrap();
        serde_json::from_slice::<Value>(&source.receive().await.unwrap().unwrap()).unwrap()
    });
    let client = builder().connect(transport).await.unwrap();
    let error = client.call("x", ()).await.unwrap_err();
    met(&error, ErrorKind::TooLarge, "max_message_bytes");
    assert!(error.to_string().contains("10000 bytes"), "{error}");
    assert_eq!(client.call("x", ()).await.unwrap().text(), "ok", "and nothing else is disturbed");
    let refusal = server.await.unwrap();
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!("q"), &json!(-32600)));
}

#[tokio::test]
async fn listeners_are_limited() {
    let (client, _script) = connect(builder().limits(limits().listeners(2)), Version::LATEST_LEGACY).await;
    let first = client.listen().tools().await.unwrap();
    let _second = client.listen().tools().await.unwrap();
    met(&client.listen().tools().await.unwrap_err(), ErrorKind::Busy, "listeners");
    assert_eq!(client.usage().listeners, 2);
    drop(first);
    client.listen().tools().await.unwrap();
}
