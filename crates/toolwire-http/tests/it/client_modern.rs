//! Requests that stand alone: their headers, their streams, and how they are cancelled.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::Notify, time::timeout};
use toolwire_client::{Client, Delivery, ErrorKind};
use toolwire_http::client::{Http, HttpLimits};
use toolwire_protocol::wire::LoggingLevel;

use crate::{
    PATIENCE,
    client_script::{Reply, Script, Seen, Step, builder, discovered, event, said, tools},
};

/// A modern server with these tools that answers calls like this.
async fn server(listed: Value, call: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Script {
    Script::start(move |seen| match seen.what() {
        "server/discover" => discovered(seen),
        "tools/list" => tools(seen, &listed),
        _ => call(seen),
    })
    .await
}

fn annotated(name: &str, header: &str) -> Value {
    let properties = json!({
        "region": { "type": "string", "x-mcp-header": header },
        "count": { "type": "integer", "x-mcp-header": "Count" },
        "flag": { "type": "boolean", "x-mcp-header": "Flag" },
        "query": { "type": "string" },
    });
    json!({ "name": name, "inputSchema": { "type": "object", "properties": properties }, "unknown": [1.50] })
}

fn plain(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

fn hello(seen: &Seen) -> Reply {
    Reply::json(200, &seen.result(&said("hello")))
}

#[tokio::test]
async fn method_and_name_are_mirrored() {
    let script = server(json!([]), |seen| {
        let result = match seen.what() {
            "prompts/get" => json!({ "resultType": "complete", "messages": [] }),
            "resources/read" => {
                json!({ "resultType": "complete", "contents": [], "ttlMs": 0, "cacheScope": "private" })
            }
            _ => said("hello"),
        };
        Reply::json(200, &seen.result(&result))
    })
    .await;
    let client = script.connect().await;
    client.list_tools().await.unwrap();
    client.call("Grüß Gott", json!({})).await.unwrap();
    client.get_prompt("a prompt", json!({})).await.unwrap();
    client.read("file:///a%20b").await.unwrap();
    client.raw().notify("com.example/ping", json!({})).await.unwrap();
    let mirrored: Vec<_> = script
        .seen()
        .iter()
        .skip(1)
        .map(|seen| {
            assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
            assert_eq!(seen.header("mcp-method"), Some(seen.method()));
            assert_eq!(seen.header("mcp-session-id"), None);
            (seen.method().to_owned(), seen.header("mcp-name").map(str::to_owned))
        })
        .collect();
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(
        mirrored,
        [
            ("tools/list".to_owned(), None),
            ("tools/call".to_owned(), name("=?base64?R3LDvMOfIEdvdHQ=?=")),
            ("prompts/get".to_owned(), name("a prompt")),
            ("resources/read".to_owned(), name("file:///a%20b")),
            ("com.example/ping".to_owned(), None),
        ]
    );
}

#[tokio::test]
async fn annotated_arguments_travel_in_headers() {
    let script = server(json!([annotated("weather", "Region")]), hello).await;
    let client = script.connect().await;
    client.all_tools().await.unwrap();
    let arguments = json!({ "region": " Wien ", "count": -7, "flag": true, "query": "x" });
    client.call("weather", arguments).await.unwrap();
    client.call("weather", json!({ "region": "", "count": null })).await.unwrap();
    let [first, second]: [Seen; 2] = script.all("tools/call").try_into().unwrap();
    assert_eq!(first.header("mcp-param-region"), Some("=?base64?IFdpZW4g?="));
    assert_eq!(first.header("mcp-param-count"), Some("-7"));
    assert_eq!(first.header("mcp-param-flag"), Some("true"));
    assert_eq!(first.header("mcp-param-query"), None);
    assert_eq!(second.header("mcp-param-region"), Some(""));
    assert_eq!(second.header("mcp-param-count"), None);
    assert_eq!(script.story(), ["server/discover", "tools/list", "tools/call", "tools/call"]);
}

#[tokio::test]
async fn a_tool_that_is_not_known_is_looked_up_once() {
    let script = server(json!([annotated("weather", "Region"), plain("plain")]), hello).await;
    let client = script.connect().await;
    let call = |name: &'static str| {
        let client = client.clone();
        async move { client.call(name, json!({ "region": "Wien" })).await.unwrap() }
    };
    tokio::join!(call("weather"), call("weather"), call("nobody knows it"));
    call("plain").await;
    let listed = script.all("tools/list");
    assert_eq!(listed.len(), 1, "{:?}", script.story());
    assert_eq!(listed[0].header("mcp-method"), Some("tools/list"));
    assert_eq!(listed[0].header("mcp-name"), None);
    assert_eq!(listed[0].body["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "test");
    for seen in script.all("tools/call") {
        let region = (seen.body["params"]["name"] == "weather").then_some("Wien");
        assert_eq!(seen.header("mcp-param-region"), region);
    }
}

#[tokio::test]
async fn the_list_is_read_up_to_the_page_with_the_tool() {
    let script = Script::start(|seen| match seen.what() {
        "server/discover" => discovered(seen),
        "tools/list" => {
            let page: usize =
                seen.body["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
            let tool = annotated(&format!("t{page}"), "Region");
            Reply::json(200, &seen.result(&json!({ "tools": [tool], "nextCursor": (page + 1).to_string() })))
        }
        _ => hello(seen),
    })
    .await;
    script.connect().await.call("t2", json!({ "region": "x" })).await.unwrap();
    assert_eq!(script.all("tools/list").len(), 3);
    assert_eq!(script.all("tools/call")[0].header("mcp-param-region"), Some("x"));
}

#[tokio::test]
async fn a_server_without_a_list_can_be_called_all_the_same() {
    let script = Script::start(|seen| match seen.what() {
        "server/discover" => discovered(seen),
        "tools/list" => Reply::status(500),
        _ => hello(seen),
    })
    .await;
    let client = script.connect().await;
    for _ in 0..2 {
        assert_eq!(client.call("tool", json!({})).await.unwrap().text(), "hello");
    }
    assert_eq!(script.all("tools/list").len(), 1);
}

#[tokio::test]
async fn headers_that_are_out_of_date_are_corrected_once() {
    let lists = Arc::new(AtomicUsize::new(0));
    let script = Script::start(move |seen| match seen.what() {
        "server/discover" => discovered(seen),
        "tools/list" => {
            let header = if lists.fetch_add(1, Ordering::SeqCst) == 0 { "Old" } else { "New" };
            tools(seen, &json!([annotated("weather", header)]))
        }
        _ if seen.header("mcp-param-new").is_none() || seen.body["params"]["name"] == "never" => {
            Reply::json(400, &seen.error(-32020, "header mismatch"))
        }
        _ => hello(seen),
    })
    .await;
    let client = script.connect().await;
    let result = client.call("weather", json!({ "region": "Wien" })).await.unwrap();
    assert_eq!(result.text(), "hello");
    assert_eq!(script.story(), ["server/discover", "tools/list", "tools/call", "tools/list", "tools/call"]);
    let error = client.call("never", json!({})).await.unwrap_err();
    assert_eq!(error.rpc().unwrap().code.0, -32020);
    assert_eq!(script.all("tools/call").len(), 4);
}

#[tokio::test]
async fn tools_with_annotations_that_cannot_be_followed_are_left_out_and_not_called() {
    let script = server(json!([annotated("bad", "no good"), annotated("good", "Region")]), hello).await;
    let client = script.connect().await;
    let listed = client.raw().request("tools/list", json!({})).await.unwrap();
    let listed: Value = serde_json::from_str(listed.text()).unwrap();
    assert_eq!(listed["tools"], json!([annotated("good", "Region")]));
    let error = client.call("bad", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("\"bad\"") && error.to_string().contains("x-mcp-header"), "{error}");
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::InvalidParams, Delivery::NotSent));
    assert!(script.all("tools/call").is_empty());
    client.call("good", json!({})).await.unwrap();
}

#[tokio::test]
async fn an_answer_may_come_on_a_stream_with_progress_and_logs_before_it() {
    let script = server(json!([]), |seen| {
        let token = &seen.body["params"]["_meta"]["progressToken"];
        let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress",
            "params": { "progressToken": token, "progress": 0.5 } });
        let log = json!({ "jsonrpc": "2.0", "method": "notifications/message",
            "params": { "level": "info", "data": "working" } });
        let foreign = json!({ "jsonrpc": "2.0", "id": "other", "result": {} });
        let question = json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" });
        Reply::events([&progress, &log, &foreign, &question, &seen.result(&said("done"))])
    })
    .await;
    let logs = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&logs);
    let client = script
        .connect_with(builder().on_log(move |message| heard.lock().unwrap().push(message.data.clone())))
        .await;
    client.list_tools().await.unwrap();
    let steps = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&steps);
    let call = client.call("slow", json!({}));
    let result = call.progress(move |step| taken.lock().unwrap().push(step.progress.as_f64())).await.unwrap();
    assert_eq!(result.text(), "done");
    assert_eq!(*steps.lock().unwrap(), [0.5]);
    assert_eq!(logs.lock().unwrap().len(), 1);
    assert!(script.all("answer").is_empty());
}

#[tokio::test]
async fn dropping_a_call_closes_its_stream() {
    let script =
        server(json!([]), |_| Reply::stream([Step::Send(": hi\n\n".to_owned()), Step::UntilGone])).await;
    let client = script.connect().await;
    client.list_tools().await.unwrap();
    let calling = client.call("slow", json!({})).into_future();
    tokio::select! {
        _ = calling => panic!(),
        _ = script.wait_for("tools/call", 1) => {}
    }
    script.wait_until_gone(1).await;
    assert!(script.all("notifications/cancelled").is_empty());
}

#[tokio::test]
async fn a_timeout_closes_the_stream_as_well() {
    let script = server(json!([]), |_| Reply::hang()).await;
    let client = script.connect().await;
    client.list_tools().await.unwrap();
    let call = client.call("slow", json!({})).timeout(Duration::from_secs(20));
    let error = script.time_out("tools/call", 1, call).await.unwrap_err();
    assert!(error.is_timeout());
    script.wait_until_gone(1).await;
}

#[tokio::test]
async fn closing_the_client_ends_what_is_under_way() {
    let script = server(json!([]), |_| Reply::hang()).await;
    let client = script.connect().await;
    client.list_tools().await.unwrap();
    let calling = tokio::spawn(client.call("slow", json!({})).into_future());
    script.wait_for("tools/call", 1).await;
    let other = client.clone();
    client.close().await.unwrap();
    let error = timeout(PATIENCE, calling).await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    script.wait_until_gone(1).await;
    assert_eq!(other.call("slow", json!({})).await.unwrap_err().delivery(), Delivery::NotSent);
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_not_resumed() {
    let half = event(&json!({ "jsonrpc": "2.0" }));
    for end in [vec![], vec![Step::Cut]] {
        let mut steps = vec![Step::Send("id: 1\ndata:\n\n".to_owned()), Step::Send(half[..9].to_owned())];
        steps.extend(end);
        let script = server(json!([]), move |_| Reply::stream(steps.clone())).await;
        let client = script.connect().await;
        client.list_tools().await.unwrap();
        let error = client.call("tool", json!({})).await.unwrap_err();
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::Closed, Delivery::Unknown), "{error}");
        assert!(script.all("GET").is_empty());
    }
}

async fn connect_with(script: &Script, limits: HttpLimits) -> Client {
    let client =
        builder().connect(Http::builder(script.url()).limits(limits).build().unwrap()).await.unwrap();
    client.list_tools().await.unwrap();
    client
}

#[tokio::test]
async fn responses_and_events_have_a_limit() {
    let script = server(json!([]), |seen| match seen.body["params"]["name"].as_str().unwrap() {
        "large" => Reply::json(200, &seen.result(&said(&"x".repeat(3000)))),
        "large event" => Reply::events([&seen.result(&said(&"x".repeat(3000)))]),
        "endless event" => {
            Reply::stream([Step::Send(format!("data: {}", "x".repeat(3000))), Step::UntilGone])
        }
        "garbage" => {
            Reply::stream((0..200).map(|_| Step::Send("data: x\n\n".to_owned())).collect::<Vec<_>>())
        }
        _ => Reply::events([&json!({ "jsonrpc": "2.0", "method": "x" }), &seen.result(&said("fits"))]),
    })
    .await;
    let limits = HttpLimits { event_bytes: 2000, response_bytes: 2000, ..HttpLimits::default() };
    let client = connect_with(&script, limits).await;
    for (name, text, limit) in [
        ("large", "response is larger than the limit of 2000 bytes", Some("response_bytes")),
        ("large event", "event is larger than the limit of 2000 bytes", Some("event_bytes")),
        ("endless event", "event is larger than the limit of 2000 bytes", Some("event_bytes")),
        ("garbage", "100 events in a row", None),
    ] {
        let error = client.call(name, json!({})).await.unwrap_err();
        let kind = if limit.is_some() { ErrorKind::TooLarge } else { ErrorKind::InvalidResponse };
        assert_eq!((error.kind(), error.limit()), (kind, limit), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
    assert_eq!(client.call("small", json!({})).await.unwrap().text(), "fits");
}

#[tokio::test]
async fn the_number_of_open_streams_is_limited_and_the_others_wait() {
    let go = Arc::new(Notify::new());
    let waiting = Arc::clone(&go);
    let script = server(json!([]), move |seen| {
        Reply::stream([Step::Wait(Arc::clone(&waiting)), Step::Send(event(&seen.result(&said("done"))))])
    })
    .await;
    let client = connect_with(&script, HttpLimits { open_streams: 2, ..HttpLimits::default() }).await;
    let calls: Vec<_> = (0..6).map(|_| tokio::spawn(client.call("slow", json!({})).into_future())).collect();
    for count in 1..=6 {
        script.wait_for("tools/call", count).await;
        go.notify_one();
    }
    for call in calls {
        assert_eq!(timeout(PATIENCE, call).await.unwrap().unwrap().unwrap().text(), "done");
    }
    assert!(script.most_open() <= 2, "{}", script.most_open());
}

#[tokio::test]
async fn subscriptions_are_streams_that_stay_open() {
    let script = server(json!([]), |seen| {
        let tag = json!({ "io.modelcontextprotocol/subscriptionId": seen.body["id"] });
        let acknowledged = json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": { "notifications": { "toolsListChanged": true }, "_meta": tag } });
        let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": { "_meta": tag } });
        Reply::stream([Step::Send(event(&acknowledged)), Step::Send(event(&changed)), Step::UntilGone])
    })
    .await;
    let client = script.connect().await;
    let mut listener = timeout(PATIENCE, client.listen().tools().into_future()).await.unwrap().unwrap();
    let change = timeout(PATIENCE, listener.next()).await.unwrap();
    assert_eq!(format!("{change:?}"), "Some(Tools)");
    assert_eq!(script.all("subscriptions/listen")[0].header("mcp-method"), Some("subscriptions/listen"));
    drop(listener);
    script.wait_until_gone(1).await;
}

#[tokio::test]
async fn an_error_is_the_servers_own_whatever_its_status() {
    for status in [200, 400, 404] {
        let script =
            server(json!([]), move |seen| Reply::json(status, &seen.error(-32602, "no such tool"))).await;
        let client = script.connect().await;
        let error = client.call("tool", json!({})).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Rpc);
        assert!(error.to_string().contains("no such tool"), "{error}");
    }
}

#[tokio::test]
async fn requests_without_types_are_mirrored_like_the_others() {
    let script = server(json!([annotated("search", "Region")]), hello).await;
    let client = script.connect().await;
    let arguments = json!({ "region": "eu", "count": 3 });
    client.raw().request("tools/call", json!({ "name": "search", "arguments": arguments })).await.unwrap();
    client.raw().request("resources/read", json!({ "uri": "a:b" })).await.unwrap();
    client.raw().request("com.example/any", json!({ "name": "x" })).await.unwrap();
    let call = script.all("tools/call").pop().unwrap();
    assert_eq!(call.header("mcp-name"), Some("search"));
    assert_eq!((call.header("mcp-param-region"), call.header("mcp-param-count")), (Some("eu"), Some("3")));
    assert_eq!(script.all("resources/read").pop().unwrap().header("mcp-name"), Some("a:b"));
    assert_eq!(script.all("com.example/any").pop().unwrap().header("mcp-name"), None);
}

#[tokio::test]
async fn a_list_is_asked_for_in_the_name_of_the_same_client() {
    let script = server(json!([plain("tool")]), hello).await;
    let client = script.connect().await;
    client.call("tool", json!({})).log_level(LoggingLevel::Debug).progress(|_| {}).await.unwrap();
    let meta = |what: &str| script.all(what).pop().unwrap().body["params"]["_meta"].clone();
    let (mut call, list) = (meta("tools/call"), meta("tools/list"));
    // Progress and logs are wanted for the call alone.
    let own = call.as_object_mut().unwrap();
    own.remove("progressToken").unwrap();
    own.remove("io.modelcontextprotocol/logLevel").unwrap();
    assert_eq!(list, call);
}
