//! Hearing of changes.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use toolwire_client::{Change, Client, EndReason, ErrorKind, Listener};
use toolwire_protocol::Version;

use crate::script::{PATIENCE, Script, builder, connect, legacy, modern};

const TAG: &str = "io.modelcontextprotocol/subscriptionId";

async fn acknowledge(script: &mut Script) -> Value {
    let request = script.expect("subscriptions/listen").await;
    let filter = request["params"]["notifications"].clone();
    let meta = json!({TAG: request["id"]});
    script
        .notify("notifications/subscriptions/acknowledged", json!({"notifications": filter, "_meta": meta}))
        .await;
    request["id"].clone()
}

async fn changed(script: &mut Script, what: &str, id: &Value) {
    script.notify(&format!("notifications/{what}"), json!({"uri": "file:///a", "_meta": {TAG: id}})).await;
}

async fn listening(client: &Client, script: &mut Script) -> (Listener, Value) {
    let (listener, id) = tokio::join!(client.listen().tools().resource("file:///a"), acknowledge(script));
    (listener.unwrap(), id)
}

#[tokio::test]
async fn a_modern_listener_hears_its_own_subscription() {
    let (client, mut script) = modern().await;
    let (listener, id) = tokio::join!(client.listen().tools().prompts().resource("file:///a"), async {
        let request = script.expect("subscriptions/listen").await;
        let filter = &request["params"]["notifications"];
        let expected = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["file:///a"],
        });
        assert_eq!(*filter, expected);
        let params = json!({"notifications": {"toolsListChanged": true}, "_meta": {TAG: request["id"]}});
        script.notify("notifications/subscriptions/acknowledged", params).await;
        request["id"].clone()
    });
    let mut listener = listener.unwrap();
    assert_eq!(listener.honoured().tools_list_changed, Some(true));
    assert_eq!(listener.honoured().prompts_list_changed, None);

    changed(&mut script, "tools/list_changed", &json!("another")).await;
    changed(&mut script, "prompts/list_changed", &Value::Null).await;
    changed(&mut script, "resources/updated", &id).await;
    assert_eq!(listener.next().await, Some(Change::Updated("file:///a".into())));
    changed(&mut script, "tools/list_changed", &id).await;
    assert_eq!(listener.next().await, Some(Change::Tools));

    drop(listener);
    let cancelled = script.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], id);
}

/// Ends a subscription as a server does that is shut down in order.
async fn end_in_order(script: &mut Script, id: &Value) {
    script.reply(&json!({"id": id}), json!({"resultType": "complete", "_meta": {TAG: id}})).await;
}

#[tokio::test]
async fn a_graceful_end_is_told_and_not_cancelled() {
    let (client, mut script) = modern().await;
    let (listener, id) = tokio::join!(client.listen().tools().relisten(false), acknowledge(&mut script));
    let mut listener = listener.unwrap();
    changed(&mut script, "tools/list_changed", &id).await;
    end_in_order(&mut script, &id).await;
    assert_eq!(listener.next().await, Some(Change::Tools), "what came before is told before");
    assert_eq!(listener.next().await, Some(Change::Ended(EndReason::Graceful)));
    assert_eq!(listener.next().await, None);
    drop(listener);
    script.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn a_listener_survives_a_server_that_is_restarted_in_order() {
    let (client, mut script) = modern().await;
    let (mut listener, first) = listening(&client, &mut script).await;
    changed(&mut script, "tools/list_changed", &first).await;
    end_in_order(&mut script, &first).await;
    assert_eq!(listener.next().await, Some(Change::Tools), "what came before is told before");
    let (change, second) = tokio::join!(listener.next(), async {
        // A restart takes longer than a few attempts.
        for _ in 0..20 {
            let refused = script.expect("subscriptions/listen").await;
            script.fail(&refused, -32603, "not yet").await;
        }
        acknowledge(&mut script).await
    });
    assert_eq!(change, Some(Change::Resync));
    changed(&mut script, "tools/list_changed", &second).await;
    assert_eq!(listener.next().await, Some(Change::Tools));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_every_subscription_at_once_is_asked_ever_more_seldom() {
    let (client, mut script) = modern().await;
    let (mut listener, mut id) = listening(&client, &mut script).await;
    let began = tokio::time::Instant::now();
    for _ in 0..15 {
        end_in_order(&mut script, &id).await;
        let (change, next) = tokio::join!(listener.next(), acknowledge(&mut script));
        assert_eq!(change, Some(Change::Resync));
        id = next;
    }
    // 0.1 + 0.2 + … + 51.2 seconds, and from then on a minute each.
    assert!(began.elapsed() >= Duration::from_secs(102 + 5 * 60), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_graceful_end_before_the_end_of_the_connection_is_still_told() {
    let (client, mut script) = modern().await;
    let (mut listener, id) = listening(&client, &mut script).await;
    end_in_order(&mut script, &id).await;
    drop(script);
    assert_eq!(listener.next().await, Some(Change::Ended(EndReason::Graceful)));
    assert_eq!(listener.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_lost_subscription_is_renewed_and_nothing_stored_is_trusted() {
    let (client, mut script) = modern().await;
    let read = async |script: &mut Script| {
        let (read, ()) = tokio::join!(client.read("file:///b"), async {
            let request = script.expect("resources/read").await;
            script.reply(&request, json!({"contents": [], "ttlMs": 60_000, "cacheScope": "public"})).await;
        });
        read.unwrap();
    };
    read(&mut script).await;
    let (mut listener, id) = listening(&client, &mut script).await;
    script.notify("notifications/cancelled", json!({"requestId": id})).await;
    let (change, second) = tokio::join!(listener.next(), async {
        let refused = script.expect("subscriptions/listen").await;
        script.fail(&refused, -32603, "not yet").await;
        acknowledge(&mut script).await
    });
    assert_eq!(change, Some(Change::Resync));
    assert_ne!(second, id);
    read(&mut script).await;
    changed(&mut script, "tools/list_changed", &id).await;
    changed(&mut script, "resources/updated", &second).await;
    assert_eq!(listener.next().await, Some(Change::Updated("file:///a".into())));
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_can_never_be_renewed_ends() {
    let (client, mut script) = modern().await;
    let (mut listener, id) = listening(&client, &mut script).await;
    script.fail(&json!({"id": id}), -32603, "out of order").await;
    let (change, ()) = tokio::join!(listener.next(), async {
        let request = script.expect("subscriptions/listen").await;
        script.fail(&request, -32601, "there are no subscriptions any more").await;
    });
    let Some(Change::Ended(EndReason::Lost(why))) = change else { panic!("{change:?}") };
    assert!(why.contains("no subscriptions any more"), "{why}");

    let (listener, id) = tokio::join!(client.listen().tools().relisten(false), acknowledge(&mut script));
    script.notify("notifications/cancelled", json!({"requestId": id})).await;
    let change = listener.unwrap().next().await;
    assert!(matches!(change, Some(Change::Ended(EndReason::Lost(_)))), "{change:?}");
    script.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_refused_or_ignored_is_an_error() {
    let (client, mut script) = modern().await;
    let (listener, ()) = tokio::join!(client.listen().tools(), async {
        let request = script.expect("subscriptions/listen").await;
        script.fail(&request, -32601, "no").await;
    });
    assert_eq!(listener.unwrap_err().kind(), ErrorKind::Rpc);
    let (listener, ()) = tokio::join!(client.listen().tools(), async {
        let request = script.expect("subscriptions/listen").await;
        script.reply(&request, json!({})).await;
    });
    assert_eq!(listener.unwrap_err().kind(), ErrorKind::InvalidResponse);
    let (listener, ()) = tokio::join!(client.listen().tools(), async {
        script.expect("subscriptions/listen").await;
        script.expect("notifications/cancelled").await;
    });
    assert!(listener.unwrap_err().is_timeout());
}

#[tokio::test]
async fn a_legacy_listener_hears_what_it_asked_for() {
    let (client, mut script) = legacy().await;
    let (listener, ()) = tokio::join!(client.listen().tools().prompts().resource("file:///a"), async {
        let request = script.expect("resources/subscribe").await;
        assert_eq!(request["params"], json!({"uri": "file:///a"}));
        script.reply(&request, json!({})).await;
    });
    let mut listener = listener.unwrap();
    assert_eq!(listener.honoured().tools_list_changed, Some(true));
    assert_eq!(listener.honoured().prompts_list_changed, None, "the server does not tell of prompts");

    script.notify("notifications/resources/list_changed", json!({})).await;
    script.notify("notifications/resources/updated", json!({"uri": "file:///other"})).await;
    script.notify("notifications/resources/updated", json!({"uri": "file:///a"})).await;
    assert_eq!(listener.next().await, Some(Change::Updated("file:///a".into())));
    script.notify("notifications/tools/list_changed", json!({})).await;
    assert_eq!(listener.next().await, Some(Change::Tools));

    // A second one for the same resource shares the subscription, which ends with the last of them.
    let second = client.listen().resource("file:///a").await.unwrap();
    script.expect_silence().await;
    drop(listener);
    script.expect_silence().await;
    drop(second);
    let request = script.expect("resources/unsubscribe").await;
    assert_eq!(request["params"], json!({"uri": "file:///a"}));
    script.reply(&request, json!({})).await;
    script.expect_silence().await;
}

#[tokio::test]
async fn a_legacy_subscription_that_is_refused_leaves_nothing_behind() {
    let (client, mut script) = legacy().await;
    let (listener, ()) = tokio::join!(client.listen().resource("file:///a").resource("file:///b"), async {
        let first = script.expect("resources/subscribe").await;
        script.reply(&first, json!({})).await;
        let second = script.expect("resources/subscribe").await;
        script.fail(&second, -32002, "no such resource").await;
    });
    assert_eq!(listener.unwrap_err().rpc().unwrap().code.0, -32002);
    let mut ended =
        [script.expect("resources/unsubscribe").await, script.expect("resources/unsubscribe").await];
    ended.sort_by_key(|request| request["params"]["uri"].to_string());
    assert_eq!(ended[0]["params"]["uri"], "file:///a");
    script.expect_silence().await;
}

#[tokio::test]
async fn the_end_of_the_connection_is_the_end_of_every_listener() {
    for version in [Version::LATEST, Version::LATEST_LEGACY] {
        let (client, mut script) = connect(builder(), version).await;
        let mut listener = if version.is_modern() {
            let (listener, _) = tokio::join!(client.listen().tools(), acknowledge(&mut script));
            listener.unwrap()
        } else {
            client.listen().tools().await.unwrap()
        };
        drop(script);
        let change = tokio::time::timeout(PATIENCE, listener.next()).await.unwrap();
        let Some(Change::Ended(EndReason::Closed(why) | EndReason::Lost(why))) = change else {
            panic!("{change:?}")
        };
        assert!(why.contains("the server closed the connection"), "{why}");
        assert_eq!(listener.next().await, None);
    }
}

#[tokio::test]
async fn listeners_of_the_client_hear_logs_changes_and_everything() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let note = |heard: &Arc<Mutex<Vec<String>>>| {
        let heard = Arc::clone(heard);
        move |what: String| heard.lock().unwrap().push(what)
    };
    let (log, change, all) = (note(&heard), note(&heard), note(&heard));
    let builder = builder()
        .on_log(move |message| log(format!("log {}", message.data.text())))
        .on_change(move |what| {
            change(format!("change {what:?}"));
            panic!("and it does not matter");
        })
        .on_notification(move |notification| all(format!("all {}", notification.method)));
    let (client, mut script) = crate::script::attempt(builder, async |script| {
        let probe = script.expect("server/discover").await;
        script.fail(&probe, -32601, "what?").await;
        script.initialized(Version::LATEST_LEGACY).await;
        let level = script.expect("logging/setLevel").await;
        script.reply(&level, json!({})).await;
    })
    .await;
    let client = client.unwrap();
    script.notify("notifications/message", json!({"level": "info", "data": "hello"})).await;
    script.notify("notifications/tools/list_changed", json!({})).await;
    script.notify("notifications/com.example", json!({})).await;
    let (pong, ()) = tokio::join!(client.ping(), async {
        let ping = script.expect("ping").await;
        script.reply(&ping, json!({})).await;
    });
    pong.unwrap();
    assert_eq!(
        *heard.lock().unwrap(),
        [
            "log \"hello\"",
            "all notifications/message",
            "change Tools",
            "all notifications/tools/list_changed",
            "all notifications/com.example",
        ]
    );
}
