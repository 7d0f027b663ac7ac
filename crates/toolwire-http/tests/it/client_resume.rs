//! Streams of legacy servers that end before the answer, wherever they are cut.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use toolwire_client::{Client, Delivery, EraChoice, ErrorKind};

use crate::{
    PATIENCE,
    client_script::{Reply, Script, Seen, Step, builder, event, legacy, said},
};

/// More than the events that are cut have bytes.
const CUTS: usize = 200;

/// A legacy server that answers calls and GETs with a `Last-Event-ID` like this.
async fn server(special: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Script {
    Script::start(move |seen| match seen.what() {
        "tools/call" => special(seen),
        "GET" if seen.header("last-event-id").is_some() => special(seen),
        _ => legacy(seen, "2025-11-25", "s"),
    })
    .await
}

async fn connect(script: &Script) -> Client {
    script.connect_with(builder().era(EraChoice::Legacy)).await
}

fn resumed(script: &Script) -> Vec<Seen> {
    script.all("GET").into_iter().filter(|seen| seen.header("last-event-id").is_some()).collect()
}

#[tokio::test]
async fn the_answer_is_taken_from_the_resumed_stream_after_the_pause_that_was_asked_for() {
    let ended = Arc::new(Mutex::new(None));
    let closing = Arc::clone(&ended);
    let call = Arc::new(Mutex::new(Value::Null));
    let script = server(move |seen| {
        if seen.verb == "GET" {
            return Reply::events([&*call.lock().unwrap()]);
        }
        *call.lock().unwrap() = seen.result(&said("resumed"));
        *closing.lock().unwrap() = Some(Instant::now());
        Reply::stream([Step::Send("id: prime-1\nretry: 500\ndata:\n\n".to_owned())])
    })
    .await;
    let client = connect(&script).await;
    let result = timeout(PATIENCE, client.call("tool", json!({})).into_future()).await.unwrap().unwrap();
    assert_eq!(result.text(), "resumed");
    let [get]: [Seen; 1] = resumed(&script).try_into().unwrap();
    assert_eq!(get.header("last-event-id"), Some("prime-1"));
    assert_eq!(get.header("mcp-session-id"), Some("s"));
    assert!(get.at - ended.lock().unwrap().unwrap() >= Duration::from_millis(500));
    assert_eq!(script.all("tools/call").len(), 1);
}

#[tokio::test]
async fn wherever_a_stream_is_cut_nothing_is_lost_and_nothing_comes_twice() {
    // Every event of the log has an id; a stream is the events after the last one that the client has.
    let log = |name: &Value, result: &Value| -> Vec<String> {
        let key = name.as_str().unwrap();
        let note = json!({ "jsonrpc": "2.0", "method": "com.example/note", "params": { "of": name } });
        vec![
            format!("id: {key}/0\ndata:\n\n"),
            format!("id: {key}/1\n{}", event(&note)),
            format!("id: {key}/2\n{}", event(result)),
        ]
    };
    let results = Arc::new(Mutex::new(HashMap::<String, Value>::new()));
    let script = server(move |seen| {
        if seen.verb == "GET" {
            let (key, last) = seen.header("last-event-id").unwrap().split_once('/').unwrap();
            let name = json!(key);
            let result: Value = results.lock().unwrap()[key].clone();
            let rest = log(&name, &result).split_off(last.parse::<usize>().unwrap() + 1);
            return Reply::stream(rest.into_iter().map(Step::Send).collect::<Vec<_>>());
        }
        let name = seen.body["params"]["name"].clone();
        let result = seen.result(&said(name.as_str().unwrap()));
        results.lock().unwrap().insert(name.as_str().unwrap().to_owned(), result.clone());
        let whole = log(&name, &result);
        let cut: usize = name.as_str().unwrap().parse().unwrap();
        let text: String = whole.concat();
        // The priming event is always whole: without it there would be nothing to resume from.
        let at = (whole[0].len() + cut).min(text.len());
        Reply::stream([Step::Send(text[..at].to_owned()), Step::Cut])
    })
    .await;
    let notes = Arc::new(AtomicUsize::new(0));
    let heard = Arc::clone(&notes);
    let builder = builder().era(EraChoice::Legacy).on_notification(move |_| {
        heard.fetch_add(1, Ordering::SeqCst);
    });
    let client = script.connect_with(builder).await;
    let calls: Vec<_> =
        (0..CUTS).map(|cut| tokio::spawn(client.call(cut.to_string(), json!({})).into_future())).collect();
    for (cut, call) in calls.into_iter().enumerate() {
        let result = timeout(PATIENCE, call).await.unwrap().unwrap().unwrap();
        assert_eq!(result.text(), cut.to_string());
    }
    assert_eq!(notes.load(Ordering::SeqCst), CUTS);
    assert_eq!(script.all("tools/call").len(), CUTS);
}

#[tokio::test]
async fn a_stream_can_be_polled_many_times() {
    let polls = Arc::new(AtomicUsize::new(0));
    let call = Arc::new(Mutex::new(Value::Null));
    let script = server(move |seen| {
        let poll = polls.fetch_add(1, Ordering::SeqCst);
        if poll == 0 {
            *call.lock().unwrap() = seen.result(&said("at last"));
        }
        match poll {
            0..20 => Reply::stream([Step::Send(format!("id: {poll}\nretry: 1\ndata:\n\n"))]),
            _ => Reply::events([&*call.lock().unwrap()]),
        }
    })
    .await;
    let client = connect(&script).await;
    let result = timeout(PATIENCE, client.call("tool", json!({})).into_future()).await.unwrap().unwrap();
    assert_eq!(result.text(), "at last");
    let ids: Vec<_> =
        resumed(&script).iter().map(|seen| seen.header("last-event-id").unwrap().to_owned()).collect();
    assert_eq!(ids, (0..20).map(|poll: usize| poll.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_server_that_is_away_for_a_moment_is_waited_for() {
    let gets = Arc::new(AtomicUsize::new(0));
    let call = Arc::new(Mutex::new(Value::Null));
    let script = server(move |seen| {
        if seen.verb == "POST" {
            *call.lock().unwrap() = seen.result(&said("back"));
            return Reply::stream([Step::Send("id: 1\nretry: 1\ndata:\n\n".to_owned()), Step::Cut]);
        }
        match gets.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::status(502),
            1 => Reply::stream([]),
            _ => Reply::events([&*call.lock().unwrap()]),
        }
    })
    .await;
    let client = connect(&script).await;
    let result = timeout(PATIENCE, client.call("tool", json!({})).into_future()).await.unwrap().unwrap();
    assert_eq!(result.text(), "back");
}

#[tokio::test]
async fn what_cannot_be_resumed_is_told_as_lost() {
    let primed = "id: 1\nretry: 1\ndata:\n\n";
    for (first, then, text) in [
        ("", 200, "no event id to resume from"),
        (": only a comment\n\n", 200, "no event id to resume from"),
        (primed, 405, "cannot be resumed"),
        (primed, 404, "cannot be resumed"),
    ] {
        let script = server(move |seen| match seen.verb.as_str() {
            "POST" => Reply::stream([Step::Send(first.to_owned()), Step::Cut]),
            _ => Reply::status(then),
        })
        .await;
        let client = connect(&script).await;
        let error =
            timeout(PATIENCE, client.call("tool", json!({})).into_future()).await.unwrap().unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::Closed, Delivery::Unknown));
        assert_eq!(script.all("tools/call").len(), 1);
    }
}

#[tokio::test]
async fn a_cancelled_request_is_not_resumed() {
    let script = server(|seen| match seen.verb.as_str() {
        "POST" => Reply::stream([Step::Send("id: 1\nretry: 100000\ndata:\n\n".to_owned())]),
        _ => Reply::status(500),
    })
    .await;
    let client = connect(&script).await;
    let call = client.call("tool", json!({})).timeout(Duration::from_secs(20));
    let error = script.time_out("tools/call", 1, call).await.unwrap_err();
    assert!(error.is_timeout());
    script.wait_for("notifications/cancelled", 1).await;
    assert!(resumed(&script).is_empty());
}
