//! An orderly end, from either side.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwire_server::{Limits, Server, tool};
use toolwire_testkit::each;

use crate::text;

/// A server whose tool waits for a permit.
fn server() -> (Server, Arc<Semaphore>) {
    let permits = Arc::new(Semaphore::new(0));
    let wait = {
        let permits = Arc::clone(&permits);
        move || {
            let permits = Arc::clone(&permits);
            async move {
                permits.acquire().await.unwrap().forget();
                "waited"
            }
        }
    };
    let limits = Limits { drain_timeout: Duration::from_secs(3), ..Limits::default() };
    (Server::builder("shutdown", "1.0").tool(tool("wait", wait)).limits(limits).build().unwrap(), permits)
}

#[tokio::test]
async fn lets_running_requests_finish() {
    each(async |setup| {
        let (server, permits) = server();
        let mut wire = setup.wire(&server).await;
        let id = wire.start("tools/call", json!({ "name": "wait" })).await;
        wire.settle().await;
        server.shutdown();
        permits.add_permits(1);
        assert_eq!(text(wire.reply(id).await.result()), "waited");
        assert_eq!(wire.close().await, Vec::<Value>::new());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn does_not_wait_for_ever() {
    each(async |setup| {
        let (server, _permits) = server();
        let mut wire = setup.wire(&server).await;
        wire.start("tools/call", json!({ "name": "wait" })).await;
        wire.settle().await;
        let before = tokio::time::Instant::now();
        server.shutdown();
        // The connection ends at the same moment, so the last word may or may not be read.
        let last = wire.close().await;
        let is_told = |answer: &Value| answer.to_string().contains("drain_timeout");
        assert!(last.len() <= 1 && last.iter().all(is_told), "{last:?}");
        assert_eq!(before.elapsed().as_secs(), 3);
    })
    .await;
}

#[tokio::test]
async fn ends_every_connection_and_takes_no_new_one() {
    each(async |setup| {
        let (server, _permits) = server();
        let (one, two) = (setup.wire(&server).await, setup.wire(&server).await);
        server.shutdown();
        assert_eq!(one.close().await, Vec::<Value>::new());
        assert_eq!(two.close().await, Vec::<Value>::new());
        let late = setup.wire_with(&server, toolwire_testkit::WireBuilder::without_handshake).await;
        assert_eq!(late.close().await, Vec::<Value>::new());
    })
    .await;
}

#[tokio::test]
async fn of_one_client_does_not_concern_the_others() {
    each(async |setup| {
        let (server, permits) = server();
        let (one, mut two) = (setup.wire(&server).await, setup.wire(&server).await);
        let id = two.start("tools/call", json!({ "name": "wait" })).await;
        assert_eq!(one.close().await, Vec::<Value>::new());
        permits.add_permits(1);
        assert_eq!(text(two.reply(id).await.result()), "waited");
    })
    .await;
}
