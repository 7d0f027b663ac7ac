//! Modern clients over HTTP: each request stands alone.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::Value;
use tokio::{task::JoinSet, time::sleep};
use toolwire_protocol::Version;
use toolwire_testkit::simulation::Random;

use crate::{
    http::{Connection, End, PATIENCE, Peer},
    judge::Judge,
    speaker::{Saying, Speaker},
    world::lock,
};

pub(crate) async fn run(peer: Peer, mut random: Random) {
    let speaker = Arc::new(Mutex::new(Speaker::new(Version::LATEST, random.fork(), peer.world.is_crowded)));
    let mut shared = None;
    let mut exchanges = JoinSet::new();
    for _ in 0..random.between(1, 7) {
        let connection = match &shared {
            Some(connection) if random.percent(85) => Clone::clone(connection),
            _ => match peer.connect(&mut random).await {
                Some(connection) => connection,
                None => continue,
            },
        };
        if peer.shares_connections() {
            shared = Some(connection.clone());
        }
        let saying = lock(&speaker).anything();
        exchanges.spawn(exchange(peer.clone(), connection, random.fork(), Arc::clone(&speaker), saying));
        if random.percent(60) {
            sleep(Duration::from_millis(random.below(1500))).await;
        }
    }
    while exchanges.join_next().await.is_some() {}
    peer.note("is gone");
}

/// Sends something, and goes on with the next rounds of it.
async fn exchange(
    peer: Peer,
    connection: Connection,
    mut random: Random,
    speaker: Arc<Mutex<Speaker>>,
    saying: Saying,
) {
    let mut message = match saying {
        Saying::Message(message) | Saying::TooLong(message) => message,
        Saying::Garbage(text) => {
            peer.note(&format!("> {text:?}"));
            let (end, _) =
                peer.exchange(&connection, post(&Value::Null, text), &mut random, |_, _| {}, PATIENCE).await;
            if matches!(end, End::Whole(200)) {
                peer.fault("garbage was taken");
            }
            return;
        }
    };
    for _ in 0..3 {
        let Some(result) = request(&peer, &connection, &mut random, &message).await else { return };
        if !result["requestState"].is_string() || random.percent(20) {
            return;
        }
        sleep(Duration::from_millis(random.below(1200))).await;
        message = lock(&speaker).retry(&message, &result);
    }
}

/// One request; its result, if there is one.
async fn request(
    peer: &Peer,
    connection: &Connection,
    random: &mut Random,
    message: &Value,
) -> Option<Value> {
    let mut judge = Judge::default();
    judge.sends(message);
    // What is refused by its size or its form is refused without an id.
    judge.sends_garbage();
    peer.world.note_message(&peer.name, ">", message);
    let impatient = random.percent(25).then(|| Duration::from_millis(random.below(4000)));
    let (mut result, mut is_over) = (None, false);
    let take = |_: Option<&str>, received: Value| {
        peer.world.note_message(&peer.name, "<", &received);
        if is_over {
            peer.fault("a message after the answer");
        }
        if let Err(why) = judge.receives(&received) {
            peer.fault(&why);
        }
        if received["method"].is_null() {
            is_over = true;
            result = received.get("result").cloned();
        }
    };
    let patience = impatient.unwrap_or(PATIENCE);
    let request = post(message, message.to_string());
    let (end, _) = peer.exchange(connection, request, random, take, patience).await;
    let is_request = message.get("id").is_some();
    match end {
        End::Whole(202) if !is_request => {}
        End::Whole(status) if !is_over => peer.fault(&format!("status {status} and no answer to {message}")),
        End::GaveUp if impatient.is_none() && connection.reliable && !is_listen(message) => {
            peer.fault(&format!("no answer to {message}"));
        }
        _ => {}
    }
    result
}

fn is_listen(message: &Value) -> bool {
    message["method"] == "subscriptions/listen"
}

fn post(message: &Value, body: String) -> Request<Full<Bytes>> {
    let mut request = Request::post("http://localhost/")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", Version::LATEST.as_str());
    if let Some(method) = message["method"].as_str() {
        request = request.header("mcp-method", method);
    }
    let name = message["params"]["name"].as_str().or_else(|| message["params"]["uri"].as_str());
    if let Some(name) = name {
        request = request.header("mcp-name", name);
    }
    request.body(Full::new(body.into())).expect("the headers are good")
}
