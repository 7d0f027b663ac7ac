//! Sessions: their id, their end, what comes unasked, and how a lost one is replaced.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};
use toolwire_client::{Change, Client, ClientLimits, Delivery, ElicitReply, EndReason, EraChoice, ErrorKind};
use toolwire_http::client::Http;
use toolwire_protocol::{RawJson, Version, wire::ClientCapabilities};

use crate::{
    PATIENCE,
    client_script::{Reply, Script, Seen, Step, builder, event, legacy, said},
};

/// A server of this version that answers like this, where it has an answer.
async fn server(
    version: &'static str,
    special: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static,
) -> Script {
    Script::start(move |seen| special(seen).unwrap_or_else(|| legacy(seen, version, "session-1"))).await
}

async fn connect(script: &Script) -> Client {
    script.connect_with(builder().era(EraChoice::Legacy)).await
}

fn tools_changed() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })
}

#[tokio::test]
async fn a_session_is_named_in_everything_after_its_beginning_and_ended_at_last() {
    for (version, named) in [("2025-11-25", true), ("2025-06-18", true), ("2025-03-26", false)] {
        let script = server(version, |_| None).await;
        let client = connect(&script).await;
        assert_eq!(client.call("tool", json!({})).await.unwrap().text(), "hello");
        script.wait_for("GET", 1).await;
        client.close().await.unwrap();
        // The client does not wait long for its answer.
        script.wait_for("DELETE", 1).await;
        let seen = script.seen();
        let (first, rest) = seen.split_first().unwrap();
        assert_eq!(first.what(), "initialize");
        assert_eq!((first.header("mcp-session-id"), first.header("mcp-protocol-version")), (None, None));
        for later in rest {
            assert_eq!(later.header("mcp-session-id"), Some("session-1"), "{later:?}");
            assert_eq!(later.header("mcp-protocol-version"), named.then_some(version), "{later:?}");
            assert_eq!(later.header("mcp-method"), None);
        }
        let get = script.all("GET").pop().unwrap();
        assert_eq!(get.header("accept"), Some("text/event-stream"));
        assert_eq!(script.story().last().unwrap(), "DELETE");
    }
}

#[tokio::test]
async fn a_server_needs_neither_sessions_nor_a_stream_of_its_own() {
    for status in [400, 404, 405, 406, 501] {
        let script = Script::start(move |seen| match seen.what() {
            "GET" | "DELETE" => Reply::status(status),
            _ => legacy(seen, "2025-11-25", ""),
        })
        .await;
        let client = connect(&script).await;
        script.wait_for("GET", 1).await;
        for _ in 0..3 {
            client.call("tool", json!({})).await.unwrap();
        }
        client.close().await.unwrap();
        assert_eq!(script.all("GET").len(), 1, "{status}");
        assert!(script.all("DELETE").is_empty());
    }
}

#[tokio::test]
async fn dropping_the_client_ends_the_session_too() {
    let script = server("2025-11-25", |_| None).await;
    drop(connect(&script).await);
    assert_eq!(script.wait_for("DELETE", 1).await.header("mcp-session-id"), Some("session-1"));
}

#[tokio::test]
async fn an_accepted_message_may_have_an_answer_nobody_asked_for() {
    let script = server("2025-11-25", |seen| {
        (seen.what() == "notifications/initialized").then(|| Reply::json(200, &json!({ "ok": true })))
    })
    .await;
    assert_eq!(connect(&script).await.version(), Version::V2025_11_25);
}

#[tokio::test]
async fn what_comes_unasked_is_heard_and_the_stream_is_taken_up_again() {
    let gets = Arc::new(AtomicUsize::new(0));
    let script = server("2025-11-25", move |seen| {
        (seen.what() == "GET").then(|| match gets.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::stream([Step::Send(format!("id: one\nretry: 10\n{}", event(&tools_changed())))]),
            1 => Reply::status(503),
            2 => Reply::stream([Step::Send(format!("id: two\n{}", event(&tools_changed()))), Step::Cut]),
            _ => Reply::stream([Step::Send(event(&tools_changed())), Step::UntilGone]),
        })
    })
    .await;
    let (heard, mut changes) = mpsc::unbounded_channel();
    let builder = builder().era(EraChoice::Legacy).on_change(move |change| {
        let _ = heard.send(change);
    });
    let client = script.connect_with(builder).await;
    for _ in 0..3 {
        assert_eq!(timeout(PATIENCE, changes.recv()).await.unwrap(), Some(Change::Tools));
    }
    let last: Vec<_> =
        script.all("GET").iter().map(|seen| seen.header("last-event-id").map(str::to_owned)).collect();
    assert_eq!(last, [None, Some("one".to_owned()), Some("one".to_owned()), Some("two".to_owned())]);
    client.close().await.unwrap();
    script.wait_until_gone(1).await;
}

#[tokio::test]
async fn the_servers_own_requests_are_answered_with_a_post_from_every_stream() {
    let question = |id: &str| {
        let schema =
            json!({ "type": "object", "properties": { "name": { "type": "string", "default": "Ada" } } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create",
            "params": { "message": "who?", "requestedSchema": schema } })
    };
    let script = server("2025-11-25", move |seen| match seen.what() {
        "GET" => Some(Reply::stream([
            Step::Send(event(&question("from get"))),
            Step::Send(event(&json!({ "jsonrpc": "2.0", "id": 5, "method": "ping" }))),
            Step::UntilGone,
        ])),
        "tools/call" => Some(Reply::events([&question("from post"), &seen.result(&said("done"))])),
        _ => None,
    })
    .await;
    let builder = builder().era(EraChoice::Legacy).on_elicit(async |_| ElicitReply::accept_defaults());
    let client = script.connect_with(builder).await;
    client.call("tool", json!({})).await.unwrap();
    script.wait_for("answer", 3).await;
    let mut ids = Vec::new();
    for answer in script.all("answer") {
        assert_eq!(answer.header("mcp-session-id"), Some("session-1"));
        if answer.body["id"] != 5 {
            assert_eq!(answer.body["result"]["content"], json!({ "name": "Ada" }));
        }
        ids.push(answer.body["id"].to_string());
    }
    ids.sort();
    assert_eq!(ids, ["\"from get\"", "\"from post\"", "5"]);
}

#[tokio::test]
async fn cancelling_takes_a_message() {
    let script = server("2025-11-25", |seen| (seen.what() == "tools/call").then(Reply::hang)).await;
    let client = connect(&script).await;
    let call = client.call("slow", json!({})).timeout(Duration::from_secs(20));
    let error = script.time_out("tools/call", 1, call).await.unwrap_err();
    assert!(error.is_timeout());
    let cancelled = script.wait_for("notifications/cancelled", 1).await;
    assert_eq!(cancelled.body["params"]["requestId"], script.all("tools/call")[0].body["id"]);
    assert_eq!(cancelled.header("mcp-session-id"), Some("session-1"));
    script.wait_until_gone(1).await;
}

#[tokio::test]
async fn what_nobody_waits_for_is_sent_all_the_same() {
    let script = server("2025-11-25", |seen| {
        seen.what().starts_with("resources/").then(|| Reply::json(200, &seen.result(&json!({}))))
    })
    .await;
    let client = connect(&script).await;
    let listener = client.listen().resource("file:///a").await.unwrap();
    drop(listener);
    let seen = script.wait_for("resources/unsubscribe", 1).await;
    assert_eq!(seen.body["params"]["uri"], "file:///a");
}

#[tokio::test]
async fn closing_cancels_what_is_under_way_and_waits_for_what_is_being_sent() {
    let script = server("2025-11-25", |seen| (seen.what() == "tools/call").then(Reply::hang)).await;
    let client = connect(&script).await;
    let calling = tokio::spawn(client.call("slow", json!({})).into_future());
    script.wait_for("tools/call", 1).await;
    client.close().await.unwrap();
    let error = timeout(PATIENCE, calling).await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    script.wait_for("DELETE", 1).await;
    assert_eq!(script.story().last().unwrap(), "DELETE");
}

/// A server whose first session is over as soon as a tool is called in it.
async fn forgetful(second: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static) -> Script {
    let sessions = Arc::new(AtomicUsize::new(0));
    Script::start(move |seen| {
        if seen.what() == "initialize" {
            let number = sessions.fetch_add(1, Ordering::SeqCst) + 1;
            let special = if number > 1 { second(seen) } else { None };
            return special.unwrap_or_else(|| legacy(seen, "2025-11-25", &format!("session-{number}")));
        }
        let lost = seen.header("mcp-session-id") == Some("session-1");
        let early = ["notifications/initialized", "GET"].contains(&seen.what());
        if lost && !early { Reply::status(404) } else { legacy(seen, "2025-11-25", "") }
    })
    .await
}

#[tokio::test]
async fn a_lost_session_is_replaced_and_what_was_refused_is_sent_again() {
    let script = forgetful(|_| None).await;
    let client = connect(&script).await;
    script.wait_for("GET", 1).await;
    let call = |client: Client| async move { client.call("tool", json!({})).await.unwrap().text() };
    let answers = tokio::join!(call(client.clone()), call(client.clone()), call(client.clone()));
    assert_eq!(answers, ("hello".to_owned(), "hello".to_owned(), "hello".to_owned()));
    let again = script.all("initialize");
    assert_eq!(again.len(), 2);
    assert_eq!(again[1].header("mcp-session-id"), None);
    assert_eq!(again[0].body, again[1].body);
    let confirmed = script.all("notifications/initialized").pop().unwrap();
    assert_eq!(confirmed.header("mcp-session-id"), Some("session-2"));
    let answered = script
        .all("tools/call")
        .iter()
        .filter(|seen| seen.header("mcp-session-id") == Some("session-2"))
        .count();
    assert_eq!(answered, 3);
    let get = script.wait_for("GET", 2).await;
    assert_eq!(get.header("mcp-session-id"), Some("session-2"));
    client.close().await.unwrap();
    assert_eq!(script.wait_for("DELETE", 1).await.header("mcp-session-id"), Some("session-2"));
}

#[tokio::test]
async fn the_clients_limit_of_open_requests_counts_and_leaves_room_for_a_new_session() {
    let script = server("2025-11-25", |seen| (seen.what() == "tools/call").then(Reply::hang)).await;
    let client = script
        .connect_with(builder().era(EraChoice::Legacy).limits(ClientLimits::default().pending_requests(1)))
        .await;
    let calling = tokio::spawn(client.call("slow", json!({})).into_future());
    script.wait_for("tools/call", 1).await;
    let error = client.call("tool", json!({})).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Busy, Delivery::NotSent));
    calling.abort();

    let script = forgetful(|_| None).await;
    let client = script
        .connect_with(builder().era(EraChoice::Legacy).limits(ClientLimits::default().pending_requests(1)))
        .await;
    assert_eq!(client.call("tool", json!({})).await.unwrap().text(), "hello");
    assert_eq!(script.all("initialize").len(), 2);
}

#[tokio::test]
async fn a_server_that_makes_no_new_session_is_not_waited_for_for_ever() {
    let hung = AtomicUsize::new(0);
    let script = forgetful(move |_| (hung.fetch_add(1, Ordering::SeqCst) == 0).then(Reply::hang)).await;
    let http = Http::builder(script.url()).send_timeout(Duration::from_secs(20)).build().unwrap();
    let client = builder().era(EraChoice::Legacy).connect(http).await.unwrap();
    let error = script.time_out("initialize", 2, client.call("tool", json!({}))).await.unwrap_err();
    assert!(error.to_string().contains("has made no new one within 20 s"), "{error}");
    // Nobody waits behind that one.
    assert_eq!(client.call("tool", json!({})).await.unwrap().text(), "hello");
}

#[tokio::test]
async fn a_notification_is_sent_again_in_a_new_session() {
    let script = forgetful(|_| None).await;
    let client = script.connect_with(builder().era(EraChoice::Legacy).roots([])).await;
    // The scripted server refuses this one in any session; what matters is that it was sent in the second.
    client.roots_changed().await.unwrap_err();
    let sent = script.all("notifications/roots/list_changed");
    assert_eq!(sent.last().unwrap().header("mcp-session-id"), Some("session-2"));
}

#[tokio::test]
async fn a_session_that_cannot_be_replaced_is_an_error() {
    let refused = forgetful(|seen| Some(Reply::json(200, &seen.error(-32603, "not today")))).await;
    let down = forgetful(|_| Some(Reply::status(503))).await;
    let other = forgetful(|seen| Some(legacy(seen, "2025-06-18", "session-2"))).await;
    for (script, text) in [(refused, "not today"), (down, "503"), (other, "2025-06-18")] {
        let client = connect(&script).await;
        let error = client.call("tool", json!({})).await.unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!(script.all("initialize").len(), 2);
    }
}

#[tokio::test]
async fn a_server_that_keeps_forgetting_is_asked_twice() {
    let script = server("2025-11-25", |seen| (seen.what() == "tools/call").then(|| Reply::status(404))).await;
    let client = connect(&script).await;
    let error = client.call("tool", json!({})).await.unwrap_err();
    assert_eq!(error.delivery(), Delivery::Rejected);
    assert_eq!((script.all("tools/call").len(), script.all("initialize").len()), (2, 2));
}

#[tokio::test]
async fn a_session_lost_while_only_listening_is_noticed() {
    let gets = Arc::new(AtomicUsize::new(0));
    let script = server("2025-11-25", move |seen| {
        (seen.what() == "GET").then(|| match gets.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::stream([Step::Send("data:\n\n".to_owned())]),
            1 => Reply::status(404),
            _ => Reply::stream([Step::Send(event(&tools_changed())), Step::UntilGone]),
        })
    })
    .await;
    let (heard, mut changes) = mpsc::unbounded_channel();
    let builder = builder().era(EraChoice::Legacy).on_change(move |change| {
        let _ = heard.send(change);
    });
    let _client = script.connect_with(builder).await;
    assert_eq!(timeout(PATIENCE, changes.recv()).await.unwrap(), Some(Change::Tools));
    assert_eq!(script.all("initialize").len(), 2);
}

#[tokio::test]
async fn a_listener_ends_when_its_server_is_gone_for_long_and_a_new_one_finds_it_again() {
    let (gets, back) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let returned = Arc::clone(&back);
    let script = server("2025-11-25", move |seen| {
        (seen.what() == "GET").then(|| match gets.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::stream([Step::Send("data:\n\n".to_owned())]),
            _ if !returned.load(Ordering::SeqCst) => Reply::status(503),
            _ => Reply::stream([Step::Send(event(&tools_changed())), Step::UntilGone]),
        })
    })
    .await;
    let (heard, mut changes) = mpsc::unbounded_channel();
    let builder = builder().era(EraChoice::Legacy).on_change(move |change| {
        let _ = heard.send(change);
    });
    let client = script.connect_with(builder).await;
    let mut listener = client.listen().tools().await.unwrap();
    // The pauses in between take a minute, which nobody has.
    tokio::time::pause();
    let ended = listener.next().await;
    tokio::time::resume();
    assert!(matches!(&ended, Some(Change::Ended(EndReason::Lost(why))) if !why.is_empty()), "{ended:?}");
    assert_eq!(listener.next().await, None);
    let mut hopeless = client.listen().tools().await.unwrap();
    assert_eq!(hopeless.next().await, ended);
    back.store(true, Ordering::SeqCst);
    client.call("tool", json!({})).await.unwrap();
    assert_eq!(timeout(PATIENCE, changes.recv()).await.unwrap(), Some(Change::Tools));
    let mut listener = client.listen().tools().await.unwrap();
    tokio::select! {
        biased;
        change = listener.next() => panic!("it has ended: {change:?}"),
        () = std::future::ready(()) => {}
    }
}

#[tokio::test]
async fn answers_may_come_in_batches_where_the_version_has_them() {
    let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": 1 } });
    for (version, good) in [("2025-03-26", true), ("2025-11-25", false)] {
        let log = log.clone();
        let script = server(version, move |seen| {
            (seen.what() == "tools/call").then(|| Reply::json(200, &json!([log, seen.result(&said("both"))])))
        })
        .await;
        let logs = Arc::new(Mutex::new(0));
        let heard = Arc::clone(&logs);
        let builder = builder().era(EraChoice::Legacy).on_log(move |_| *heard.lock().unwrap() += 1);
        let client = script.connect_with(builder).await;
        let result = client.call("tool", json!({})).await;
        assert_eq!(result.map(|result| result.text()).ok(), good.then(|| "both".to_owned()));
        assert_eq!(*logs.lock().unwrap(), u32::from(good));
    }
}

#[tokio::test]
async fn a_question_is_told_with_the_call_that_it_came_with() {
    let script = server("2025-11-25", |seen| {
        let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "acme/ask", "params": {} });
        (seen.what() == "tools/call").then(|| Reply::events([&question, &seen.result(&said("hello"))]))
    })
    .await;
    let (asking, mut asked) = mpsc::unbounded_channel();
    let builder = builder().era(EraChoice::Legacy).on_request(ClientCapabilities::new(), move |request| {
        asking.send(request.during().cloned()).unwrap();
        async { Ok(RawJson::from(&json!({}))) }
    });
    let client = script.connect_with(builder).await;
    let (told, id) = tokio::sync::oneshot::channel();
    let params = json!({ "name": "tool" });
    let call = client.raw().request("tools/call", params).on_id(move |id| told.send(id.clone()).unwrap());
    assert_eq!(call.await.unwrap().decode::<Value>().unwrap(), said("hello"));
    assert_eq!(asked.recv().await.unwrap(), Some(id.await.unwrap()));
}
