//! A session that was lost and replaced by the link.

use std::{
    io,
    sync::{Arc, OnceLock},
};

use serde_json::{Value, json};
use toolwire_client::{
    Change, Client, ClientBuilder, Connection, Connector, EraChoice, Listener, link::Inbox,
};
use toolwire_protocol::{Version, wire::LoggingLevel};
use toolwire_transport::memory::Memory;

use crate::script::{Script, builder};

/// A connection whose inbox the test can reach, as a link would.
struct Watched(Memory, Arc<OnceLock<Inbox>>);

enum Custom {}

impl Connector<Custom> for Watched {
    async fn connect(self, inbox: Inbox) -> io::Result<Connection<Self>> {
        self.1.set(inbox.clone()).unwrap();
        Ok(Connection::over(self.0, inbox))
    }
}

async fn answer(script: &mut Script, method: &str) -> Value {
    let request = script.expect(method).await;
    script.reply(&request, json!({})).await;
    request["params"].clone()
}

/// A legacy client that listens to `file:///a`, with `builder` as it is.
async fn listening(builder: ClientBuilder) -> (Client, Listener, Inbox, Script) {
    let (end, mut script) = Script::pair();
    let inbox = Arc::new(OnceLock::new());
    let connecting = builder.era(EraChoice::Legacy).connect(Watched(end, Arc::clone(&inbox)));
    let (client, ()) = tokio::join!(connecting, script.initialized(Version::LATEST_LEGACY));
    let client = client.unwrap();
    let (listener, _) =
        tokio::join!(client.listen().resource("file:///a"), answer(&mut script, "resources/subscribe"));
    (client, listener.unwrap(), inbox.get().unwrap().clone(), script)
}

#[tokio::test]
async fn a_new_session_is_told_what_the_lost_one_knew() {
    let (client, mut listener, inbox, mut script) = listening(builder()).await;
    let (set, _) =
        tokio::join!(client.set_log_level(LoggingLevel::Warning), answer(&mut script, "logging/setLevel"));
    set.unwrap();
    inbox.session_renewed();
    assert_eq!(answer(&mut script, "logging/setLevel").await, json!({"level": "warning"}));
    let request = script.expect("resources/subscribe").await;
    assert_eq!(request["params"], json!({"uri": "file:///a"}));
    let early = tokio::time::timeout(std::time::Duration::ZERO, listener.next()).await;
    assert!(early.is_err(), "it must not look before the server watches");
    script.reply(&request, json!({})).await;
    assert_eq!(listener.next().await, Some(Change::Resync));
    script.notify("notifications/resources/updated", json!({"uri": "file:///a"})).await;
    assert_eq!(listener.next().await, Some(Change::Updated("file:///a".into())));
    script.expect_silence().await;
}

#[tokio::test]
async fn what_nobody_asked_for_is_not_asked_for_again() {
    let (_client, listener, inbox, mut script) = listening(builder()).await;
    drop(listener);
    answer(&mut script, "resources/unsubscribe").await;
    inbox.session_renewed();
    script.expect_silence().await;
}

#[tokio::test]
async fn a_listener_that_leaves_meanwhile_leaves_nothing_behind() {
    let (_client, listener, inbox, mut script) = listening(builder()).await;
    inbox.session_renewed();
    let request = script.expect("resources/subscribe").await;
    drop(listener);
    answer(&mut script, "resources/unsubscribe").await;
    script.reply(&request, json!({})).await;
    answer(&mut script, "resources/unsubscribe").await;
    script.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_not_argued_with() {
    let (_client, mut listener, inbox, mut script) = listening(builder()).await;
    for _ in 0..2 {
        inbox.session_renewed();
        let request = script.expect("resources/subscribe").await;
        script.fail(&request, -32002, "no such resource").await;
        assert_eq!(listener.next().await, Some(Change::Resync));
        script.expect_silence().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_loses_every_session_does_not_keep_the_client_busy() {
    let (client, mut listener, inbox, mut script) = listening(builder()).await;
    inbox.session_renewed();
    for _ in 0..8 {
        let request = script.expect("resources/subscribe").await;
        // The link has made another session to send this request in.
        inbox.session_renewed();
        inbox.session_renewed();
        script.reply(&request, json!({})).await;
        assert_eq!(listener.next().await, Some(Change::Resync));
    }
    let (pong, _) = tokio::join!(client.ping(), answer(&mut script, "ping"));
    pong.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    script.expect_silence().await;
    // Another loss later is another matter.
    inbox.session_renewed();
    answer(&mut script, "resources/subscribe").await;
    assert_eq!(listener.next().await, Some(Change::Resync));
}

#[tokio::test(start_paused = true)]
async fn silence_is_answered_with_another_try() {
    let (_client, mut listener, inbox, mut script) = listening(builder()).await;
    inbox.session_renewed();
    script.expect("resources/subscribe").await;
    script.expect("notifications/cancelled").await;
    assert_eq!(listener.next().await, Some(Change::Resync), "it may have missed something all the same");
    answer(&mut script, "resources/subscribe").await;
    assert_eq!(listener.next().await, Some(Change::Resync));
    script.expect_silence().await;
}

#[tokio::test]
async fn a_new_session_does_not_keep_the_client_alive() {
    let (client, listener, inbox, mut script) = listening(builder()).await;
    drop(listener);
    answer(&mut script, "resources/unsubscribe").await;
    drop(client);
    inbox.session_renewed();
    script.expect_end().await;
}
