//! Whoever observes hears the whole conversation, in order.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwire_client::{ClientBuilder, ElicitReply, Observed};
use toolwire_protocol::Version;

use crate::script::{attempt, builder, connect, text};

/// What was heard, one line each.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn on(&self, builder: ClientBuilder) -> ClientBuilder {
        let notes = self.clone();
        builder.observe(move |observed| {
            let note = match &observed {
                Observed::Sent(message) => format!("> {}", gist(message)),
                Observed::Received(message) => format!("< {}", gist(message)),
                Observed::Failed(why) => format!("! {why}"),
                Observed::Closed(why) => format!(". {why}"),
                other => panic!("{other:?}"),
            };
            notes.0.lock().unwrap().push(note);
        })
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Method or outcome, and the id.
fn gist(message: &[u8]) -> String {
    let message: Value = serde_json::from_slice(message).unwrap();
    assert_eq!(message["jsonrpc"], "2.0");
    let id = message.get("id").map_or_else(String::new, |id| format!(" {id}"));
    match (message["method"].as_str(), message.get("result"), message.get("error")) {
        (Some(method), None, None) => format!("{method}{id}"),
        (None, Some(result), None) => format!("result{id} {}", result["content"][0]["text"]),
        (None, None, Some(error)) => format!("error{id} {}", error["code"]),
        _ => panic!("{message}"),
    }
}

#[tokio::test]
async fn a_modern_conversation_with_progress_and_an_error() {
    let notes = Notes::default();
    let (client, mut script) = connect(notes.on(builder()), Version::LATEST).await;
    assert_eq!(notes.take(), ["> server/discover 1", "< result 1 null"]);

    let server = async {
        let request = script.expect("tools/call").await;
        script.progress(&request, 1.0).await;
        script.notify("notifications/message", json!({"level": "info", "data": "x"})).await;
        script.progress(&request, 2.0).await;
        script.reply(&request, text("done")).await;
        let request = script.expect("tools/call").await;
        script.fail(&request, -32602, "no").await;
        script
    };
    let calls = async {
        client.call("a", json!({})).progress(|_| {}).await.unwrap();
        client.call("b", json!({})).await.unwrap_err();
    };
    let (mut script, ()) = tokio::join!(server, calls);
    let expected = [
        "> tools/call 2",
        "< notifications/progress",
        "< notifications/message",
        "< notifications/progress",
        "< result 2 \"done\"",
        "> tools/call 3",
        "< error 3 -32602",
    ];
    assert_eq!(notes.take(), expected);

    // Nobody waits any more: the server is told, and that is no failure.
    let call = tokio::spawn(client.call("c", json!({})).into_future());
    script.expect("tools/call").await;
    call.abort();
    script.expect("notifications/cancelled").await;
    assert_eq!(notes.take(), ["> tools/call 4", "> notifications/cancelled"]);

    script.send_text("{").await;
    drop(script);
    client.call("d", json!({})).await.unwrap_err();
    let heard = notes.take().join("\n");
    assert!(heard.contains("! the server sent something that is not a message"), "{heard}");
    assert!(heard.contains(". the server closed the connection"), "{heard}");
}

#[tokio::test]
async fn a_legacy_server_asks_and_is_answered() {
    let notes = Notes::default();
    let builder = notes.on(builder().on_elicit(async |_| ElicitReply::decline()));
    let (client, mut script) = connect(builder, Version::LATEST_LEGACY).await;
    let expected = [
        "> server/discover 1",
        "< error 1 -32601",
        "> initialize 2",
        "< result 2 null",
        "> notifications/initialized",
    ];
    assert_eq!(notes.take(), expected);

    let server = async {
        let request = script.expect("tools/call").await;
        let params = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
        let question = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params});
        script.send(question).await;
        assert_eq!(script.receive().await.unwrap()["result"]["action"], "decline");
        script.reply(&request, text("as you like")).await;
    };
    let (outcome, ()) = tokio::join!(client.call("ask", json!({})), server);
    outcome.unwrap();
    let expected =
        ["> tools/call 3", "< elicitation/create \"q\"", "> result \"q\" null", "< result 3 \"as you like\""];
    assert_eq!(notes.take(), expected);
    client.close().await.unwrap();
    assert_eq!(notes.take(), [". this client closed the connection"]);
}

#[tokio::test]
async fn an_observer_that_panics_disturbs_nobody() {
    let builder = builder().observe(|_| panic!("I have seen enough"));
    let (client, _script) = attempt(builder, async |script| script.discovered().await).await;
    client.unwrap();
}
