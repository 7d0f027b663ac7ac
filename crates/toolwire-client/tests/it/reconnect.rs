//! Connections that are lost and made again.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::time::{Instant, sleep};
use toolwire_client::{
    Change, Client, ClientBuilder, ConnectionState, Delivery, EraChoice, ErrorKind, Reconnect,
};
use toolwire_protocol::{Version, wire::LoggingLevel};
use toolwire_transport::memory::Memory;

use crate::script::{Script, builder, discovery, initialization, text};

/// A server that can be started several times, and what was heard of its connections.
struct Starts {
    ends: Arc<Mutex<VecDeque<Option<Memory>>>>,
    count: Arc<AtomicUsize>,
    heard: Arc<Mutex<Vec<ConnectionState>>>,
}

impl Starts {
    /// Each start gives a script, or fails.
    fn new(starts: &[bool]) -> (Self, Vec<Script>) {
        let mut scripts = Vec::new();
        let end = |works: &bool| {
            works.then(|| {
                let (end, script) = Script::pair();
                scripts.push(script);
                end
            })
        };
        let ends: VecDeque<_> = starts.iter().map(end).collect();
        let (ends, count, heard) = (Arc::new(Mutex::new(ends)), Arc::default(), Arc::default());
        (Self { ends, count, heard }, scripts)
    }

    fn start(&self) -> impl FnMut() -> std::future::Ready<io::Result<Memory>> + Send + use<> {
        let (ends, count) = (Arc::clone(&self.ends), Arc::clone(&self.count));
        move || {
            count.fetch_add(1, Ordering::Relaxed);
            let end = ends.lock().unwrap().pop_front().flatten();
            std::future::ready(end.ok_or_else(|| io::Error::other("no such program")))
        }
    }

    fn builder(&self) -> ClientBuilder {
        let heard = Arc::clone(&self.heard);
        builder().on_connection(move |state| heard.lock().unwrap().push(state))
    }

    async fn connect(&self, builder: ClientBuilder) -> Client {
        builder.reconnect(Reconnect::default()).connect(self.start()).await.unwrap()
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn heard(&self) -> Vec<ConnectionState> {
        std::mem::take(&mut *self.heard.lock().unwrap())
    }
}

fn lost() -> ConnectionState {
    ConnectionState::Lost("the server closed the connection".to_owned())
}

async fn call(client: &Client, script: &mut Script, answer: &str) {
    let (outcome, ()) = tokio::join!(client.call("x", ()), async {
        let request = script.expect("tools/call").await;
        script.reply(&request, text(answer)).await;
    });
    assert_eq!(outcome.unwrap().text(), answer);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_is_started_again_and_what_was_under_way_is_unknown() {
    let (starts, mut scripts) = Starts::new(&[true, true]);
    let (mut second, mut first) = (scripts.pop().unwrap(), scripts.pop().unwrap());
    let (client, ()) = tokio::join!(starts.connect(starts.builder()), first.discovered());
    call(&client, &mut first, "one").await;
    let (outcome, ()) = tokio::join!(client.call("x", ()), async {
        first.expect("tools/call").await;
        drop(first);
    });
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Closed, Delivery::Unknown));
    assert!(error.to_string().contains("the server closed the connection"), "{error}");

    // What is called meanwhile waits, and is sent once.
    let began = Instant::now();
    let (outcome, ()) = tokio::join!(client.call("y", ()), async {
        second.discovered().await;
        let request = second.expect("tools/call").await;
        assert_eq!(request["params"]["name"], "y");
        second.reply(&request, text("two")).await;
    });
    assert_eq!(outcome.unwrap().text(), "two");
    let took = began.elapsed();
    assert!((Duration::from_millis(500)..Duration::from_millis(700)).contains(&took), "{took:?}");
    call(&client, &mut second, "three").await;
    assert_eq!(starts.heard(), [lost(), ConnectionState::Restored]);
    client.close().await.unwrap();
    second.expect_end().await;
    let closed = ConnectionState::Closed("this client closed the connection".to_owned());
    assert_eq!(starts.heard(), [closed]);
    assert_eq!(starts.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_level_and_subscriptions_of_a_session_are_restored() {
    let (starts, mut scripts) = Starts::new(&[true, true]);
    let (mut second, mut first) = (scripts.pop().unwrap(), scripts.pop().unwrap());
    let legacy = starts.builder().era(EraChoice::Legacy).log_level(LoggingLevel::Warning);
    let (client, ()) = tokio::join!(starts.connect(legacy), async {
        first.initialized(Version::V2025_06_18).await;
        let level = first.expect("logging/setLevel").await;
        first.reply(&level, json!({})).await;
    });
    let (listener, ()) = tokio::join!(client.listen().tools().resource("file:///a"), async {
        let request = first.expect("resources/subscribe").await;
        first.reply(&request, json!({})).await;
    });
    let mut listener = listener.unwrap();
    drop(first);
    let (change, ()) = tokio::join!(listener.next(), async {
        let request = second.expect("initialize").await;
        assert_eq!(request["params"]["protocolVersion"], "2025-06-18");
        second.reply(&request, initialization("2025-06-18")).await;
        second.expect("notifications/initialized").await;
        let level = second.expect("logging/setLevel").await;
        assert_eq!(level["params"], json!({"level": "warning"}));
        second.reply(&level, json!({})).await;
        let request = second.expect("resources/subscribe").await;
        assert_eq!(request["params"], json!({"uri": "file:///a"}));
        second.reply(&request, json!({})).await;
    });
    assert_eq!(change, Some(Change::Resync));
    second.notify("notifications/resources/updated", json!({"uri": "file:///a"})).await;
    assert_eq!(listener.next().await, Some(Change::Updated("file:///a".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_asked_for_again_over_the_new_connection() {
    const TAG: &str = "io.modelcontextprotocol/subscriptionId";
    async fn acknowledge(script: &mut Script) {
        let request = script.expect("subscriptions/listen").await;
        let params =
            json!({"notifications": request["params"]["notifications"], "_meta": {TAG: request["id"]}});
        script.notify("notifications/subscriptions/acknowledged", params).await;
    }
    let (starts, mut scripts) = Starts::new(&[true, true]);
    let (mut second, mut first) = (scripts.pop().unwrap(), scripts.pop().unwrap());
    let (client, ()) = tokio::join!(starts.connect(starts.builder()), first.discovered());
    let (listener, ()) = tokio::join!(client.listen().tools(), acknowledge(&mut first));
    let mut listener = listener.unwrap();
    drop(first);
    let (change, ()) = tokio::join!(listener.next(), async {
        second.discovered().await;
        acknowledge(&mut second).await;
    });
    assert_eq!(change, Some(Change::Resync));
    drop(listener);
    second.expect("notifications/cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_started_is_tried_again_but_not_often() {
    let (starts, mut scripts) = Starts::new(&[true]);
    let mut first = scripts.pop().unwrap();
    let (client, ()) = tokio::join!(starts.connect(starts.builder()), first.discovered());
    drop(first);
    sleep(Duration::from_secs(59)).await;
    // 0.5 + 1 + 2 + 4 seconds, and then it has been five times within a minute.
    assert_eq!(starts.count(), 5);
    sleep(Duration::from_secs(9 * 60)).await;
    let later = starts.count();
    assert!((11..=15).contains(&later), "about once a minute from then on: {later}");
    assert_eq!(starts.heard(), [lost()], "it is lost once, however often it is tried");

    let error = client.call("x", ()).timeout(Duration::from_secs(1)).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Timeout, Delivery::NotSent), "{error}");
    let clone = client.clone();
    client.close().await.unwrap();
    let error = clone.call("x", ()).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Closed, Delivery::NotSent), "{error}");
    let later = starts.count();
    sleep(Duration::from_secs(600)).await;
    assert_eq!(starts.count(), later, "it is not started again for nobody");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_started_for_a_client_that_was_dropped() {
    let (starts, mut scripts) = Starts::new(&[true]);
    let mut first = scripts.pop().unwrap();
    let (client, ()) = tokio::join!(starts.connect(starts.builder()), first.discovered());
    drop(client);
    first.expect_end().await;
    sleep(Duration::from_secs(600)).await;
    assert_eq!(starts.count(), 1);
    let closed = ConnectionState::Closed("the client was dropped".to_owned());
    assert_eq!(starts.heard(), [closed]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_another_one_now_is_given_up() {
    let (starts, mut scripts) = Starts::new(&[true, true]);
    let (mut second, mut first) = (scripts.pop().unwrap(), scripts.pop().unwrap());
    let (client, ()) = tokio::join!(starts.connect(starts.builder()), first.discovered());
    drop(first);
    // Until it is noticed.
    sleep(Duration::from_millis(1)).await;
    let (outcome, ()) = tokio::join!(client.call("x", ()), async {
        let probe = second.expect("server/discover").await;
        let mut found = discovery();
        found["supportedVersions"] = json!(["2025-11-25"]);
        second.reply(&probe, found).await;
    });
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Closed, Delivery::NotSent), "{error}");
    assert!(error.to_string().contains("not what it was"), "{error}");
    let [first, ConnectionState::Closed(why)] = &*starts.heard() else { panic!("{:?}", starts.heard()) };
    assert_eq!(*first, lost());
    assert!(why.contains("not what it was") && why.contains("2026-07-28"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_cannot_be_made_again_is_over_when_it_is_lost() {
    let (end, mut script) = Script::pair();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&heard);
    let builder = builder().on_connection(move |state| note.lock().unwrap().push(state));
    let connecting = builder.reconnect(Reconnect::default()).connect(end);
    let (client, ()) = tokio::join!(connecting, script.discovered());
    let client = client.unwrap();
    drop(script);
    let error = client.call("x", ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    let closed = ConnectionState::Closed("the server closed the connection".to_owned());
    assert_eq!(*heard.lock().unwrap(), [closed]);
}
