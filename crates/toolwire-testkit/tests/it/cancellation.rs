//! Cancellation drops the handler, and nothing is said about the request any more.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};
use toolwire_server::{Context, Limits, Server, tool};
use toolwire_testkit::{Setup, each};

use crate::{PATIENCE, text};

/// Counts its drops.
struct Guard(Arc<Semaphore>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

struct Stage {
    server: Server,
    started: Arc<Semaphore>,
    dropped: Arc<Semaphore>,
    /// Work that a handler has handed on and that has noticed the cancellation.
    noticed: Arc<Semaphore>,
    open: Arc<Notify>,
}

fn stage(limits: Limits) -> Stage {
    let (started, dropped) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (noticed, open) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
    let hang = {
        let (started, dropped, noticed) = (started.clone(), dropped.clone(), noticed.clone());
        move |cx: Context| {
            let (started, guard, noticed) = (started.clone(), Guard(dropped.clone()), noticed.clone());
            async move {
                let cancelled = cx.cancelled();
                tokio::spawn(async move {
                    cancelled.await;
                    noticed.add_permits(1);
                });
                started.add_permits(1);
                std::future::pending::<()>().await;
                drop(guard);
                "never"
            }
        }
    };
    let wait = {
        let open = open.clone();
        move || {
            let open = open.clone();
            async move {
                open.notified().await;
                "waited"
            }
        }
    };
    let server = Server::builder("cancellation", "1.0")
        .limits(limits)
        .tool(tool("hang", hang))
        .tool(tool("wait", wait))
        .build()
        .unwrap();
    Stage { server, started, dropped, noticed, open }
}

async fn once(semaphore: &Semaphore) {
    let acquired = tokio::time::timeout(PATIENCE, semaphore.acquire()).await;
    acquired.expect("it did not happen").unwrap().forget();
}

#[tokio::test]
async fn drops_the_handler_and_answers_nothing() {
    each(async |setup: Setup| {
        let stage = stage(Limits::default());
        let mut wire = setup.wire(&stage.server).await;
        let other = wire.start("tools/call", json!({ "name": "wait" })).await;
        let id = wire.start("tools/call", json!({ "name": "hang" })).await;
        once(&stage.started).await;
        assert_eq!(stage.dropped.available_permits(), 0);
        wire.cancel(id).await;
        once(&stage.dropped).await;
        once(&stage.noticed).await;
        wire.expect_silence().await;
        stage.open.notify_one();
        assert_eq!(text(wire.reply(other).await.result()), "waited");
        assert_eq!(wire.close().await, Vec::<Value>::new());
    })
    .await;
}

#[tokio::test]
async fn tells_ids_of_different_types_apart() {
    each(async |setup: Setup| {
        let stage = stage(Limits::default());
        let mut wire = setup.wire(&stage.server).await;
        wire.start_as(json!("77"), "tools/call", json!({ "name": "hang" })).await;
        wire.start_as(json!(77), "tools/call", json!({ "name": "wait" })).await;
        once(&stage.started).await;
        wire.cancel("77").await;
        once(&stage.dropped).await;
        stage.open.notify_one();
        assert_eq!(text(wire.reply(77).await.result()), "waited");
        wire.expect_silence().await;
    })
    .await;
}

#[tokio::test]
async fn of_what_is_unknown_done_or_nonsense_changes_nothing() {
    each(async |setup: Setup| {
        let stage = stage(Limits::default());
        let mut wire = setup.wire(&stage.server).await;
        let running = wire.start("tools/call", json!({ "name": "wait" })).await;
        wire.cancel(4711).await;
        wire.notify("notifications/cancelled", json!({})).await;
        wire.notify("notifications/cancelled", json!({ "requestId": null })).await;
        wire.notify("notifications/cancelled", json!({ "requestId": 1.5 })).await;
        wire.notify("notifications/cancelled", Value::Null).await;
        wire.expect_silence().await;
        stage.open.notify_one();
        assert_eq!(text(wire.reply(running).await.result()), "waited");
        wire.cancel(running).await;
        wire.expect_silence().await;
    })
    .await;
}

#[tokio::test]
async fn reaches_a_request_that_still_waits_for_its_turn() {
    each(async |setup: Setup| {
        let stage = stage(Limits { requests_in_flight: 1, ..Limits::default() });
        let mut wire = setup.wire(&stage.server).await;
        let running = wire.start("tools/call", json!({ "name": "wait" })).await;
        let queued = wire.start("tools/call", json!({ "name": "hang" })).await;
        wire.cancel(queued).await;
        wire.settle().await;
        stage.open.notify_one();
        assert_eq!(text(wire.reply(running).await.result()), "waited");
        wire.expect_silence().await;
        assert_eq!(stage.started.available_permits(), 0, "a cancelled request has started");
    })
    .await;
}

#[tokio::test]
async fn happens_when_the_client_leaves() {
    each(async |setup: Setup| {
        let limits = Limits { drain_timeout: std::time::Duration::from_millis(1), ..Limits::default() };
        let stage = stage(limits);
        let mut wire = setup.wire(&stage.server).await;
        wire.start("tools/call", json!({ "name": "hang" })).await;
        once(&stage.started).await;
        assert_eq!(wire.close().await, Vec::<Value>::new());
        once(&stage.dropped).await;
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_is_worked_for_when_the_client_closes_still_arrives() {
    each(async |setup: Setup| {
        let stage = stage(Limits::default());
        let mut wire = setup.wire(&stage.server).await;
        let id = wire.start("tools/call", json!({ "name": "wait" })).await;
        wire.expect_silence().await;
        stage.open.notify_one();
        let said = wire.close().await;
        assert_eq!(said.len(), 1, "{said:?}");
        assert_eq!(said[0]["id"], id);
    })
    .await;
}
