//! The end of a connection.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;
use toolwire_client::{Change, Delivery, ElicitReply, EndReason, ErrorKind};
use toolwire_protocol::Version;

use crate::script::{builder, connect, legacy, modern};

#[tokio::test]
async fn closing_sends_what_is_waiting_and_fails_what_is_open() {
    let (client, mut script) = legacy().await;
    let call = tokio::spawn(client.call("slow", ()).into_future());
    script.expect("tools/call").await;
    let mut listener = client.listen().tools().await.unwrap();
    client.roots_changed().await.unwrap();
    let other = client.clone();
    client.close().await.unwrap();
    script.expect("notifications/roots/list_changed").await;
    script.expect_end().await;
    let error = call.await.unwrap().unwrap_err();
    assert!(error.is_cancelled() && error.is_closed());
    assert_eq!(error.delivery(), Delivery::Unknown);
    assert!(matches!(listener.next().await, Some(Change::Ended(EndReason::Closed(_)))));
    let error = other.ping().await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Closed, Delivery::NotSent));
    other.close().await.unwrap();
}

#[tokio::test]
async fn dropping_the_last_clone_ends_the_connection() {
    let (client, mut script) = modern().await;
    let clone = client.clone();
    drop(client);
    script.expect_silence().await;
    drop(clone);
    script.expect_end().await;
}

#[tokio::test]
async fn a_handler_does_not_outlive_the_connection() {
    struct OnDrop(Arc<Notify>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }

    let dropped = Arc::new(Notify::new());
    let signal = Arc::clone(&dropped);
    let builder = builder().on_elicit(move |_| {
        let guard = OnDrop(Arc::clone(&signal));
        async move {
            let _guard = guard;
            std::future::pending::<ElicitReply>().await
        }
    });
    let (client, mut script) = connect(builder, Version::LATEST_LEGACY).await;
    let params = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    script.send(json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params})).await;
    script.expect_silence().await;
    drop(client);
    dropped.notified().await;
}

#[tokio::test]
async fn a_call_keeps_the_connection_while_it_is_under_way() {
    let (client, mut script) = modern().await;
    let call = tokio::spawn(client.call("x", ()).into_future());
    drop(client);
    let request = script.expect("tools/call").await;
    script.reply(&request, crate::script::text("ok")).await;
    assert_eq!(call.await.unwrap().unwrap().text(), "ok");
    script.expect_end().await;
}
