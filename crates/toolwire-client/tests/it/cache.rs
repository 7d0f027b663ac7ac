//! The response cache of the modern era.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolwire_client::{Client, ClientLimits, Clock};
use toolwire_protocol::Version;

use crate::script::{Script, builder, connect, discovery, legacy, modern};

fn tools(name: &str, ttl: i64) -> Value {
    let tool = json!({"name": name, "inputSchema": {"type": "object"}});
    json!({"resultType": "complete", "tools": [tool], "ttlMs": ttl, "cacheScope": "private"})
}

/// Lists the tools while the server answers with `answer`, or is not asked at all.
async fn list(client: &Client, script: &mut Script, answer: Option<Value>) -> String {
    let (listed, ()) = tokio::join!(client.list_tools(), async {
        match answer {
            Some(answer) => {
                let request = script.expect("tools/list").await;
                script.reply(&request, answer).await;
            }
            None => script.expect_silence().await,
        }
    });
    listed.unwrap().tools.first().unwrap().name.clone()
}

#[derive(Clone, Debug)]
struct FakeClock(Arc<Mutex<Instant>>);

impl Clock for FakeClock {
    fn now(&self) -> Instant {
        *self.0.lock().unwrap()
    }
}

#[tokio::test]
async fn a_result_is_kept_for_as_long_as_the_server_says() {
    let now = Arc::new(Mutex::new(Instant::now()));
    let (client, mut script) = connect(builder().clock(FakeClock(Arc::clone(&now))), Version::LATEST).await;
    assert_eq!(list(&client, &mut script, Some(tools("one", 1000))).await, "one");
    *now.lock().unwrap() += Duration::from_millis(999);
    assert_eq!(list(&client, &mut script, None).await, "one");
    *now.lock().unwrap() += Duration::from_millis(1);
    assert_eq!(list(&client, &mut script, Some(tools("two", 0))).await, "two");
    assert_eq!(list(&client, &mut script, Some(tools("three", -5))).await, "three");
}

#[tokio::test]
async fn fresh_asks_again_and_what_it_gets_counts() {
    let (client, mut script) = modern().await;
    list(&client, &mut script, Some(tools("one", 60_000))).await;
    let (fresh, ()) = tokio::join!(client.list_tools().fresh(), async {
        let request = script.expect("tools/list").await;
        script.reply(&request, tools("two", 60_000)).await;
    });
    assert_eq!(fresh.unwrap().tools.first().unwrap().name, "two");
    assert_eq!(list(&client, &mut script, None).await, "two");
}

#[tokio::test]
async fn a_notification_makes_stored_results_void() {
    let (client, mut script) = modern().await;
    list(&client, &mut script, Some(tools("one", 60_000))).await;
    script.notify("notifications/prompts/list_changed", json!({})).await;
    assert_eq!(list(&client, &mut script, None).await, "one");
    script.notify("notifications/tools/list_changed", json!({})).await;
    script.expect_silence().await;
    assert_eq!(list(&client, &mut script, Some(tools("two", 60_000))).await, "two");
}

#[tokio::test]
async fn a_result_that_was_under_way_when_things_changed_is_not_kept() {
    let (client, mut script) = modern().await;
    let (listed, ()) = tokio::join!(client.list_tools(), async {
        let request = script.expect("tools/list").await;
        script.notify("notifications/tools/list_changed", json!({})).await;
        script.reply(&request, tools("old", 60_000)).await;
    });
    assert_eq!(listed.unwrap().tools.first().unwrap().name, "old");
    assert_eq!(list(&client, &mut script, Some(tools("new", 60_000))).await, "new");
}

#[tokio::test]
async fn resources_are_kept_one_by_one() {
    let (client, mut script) = modern().await;
    let read = async |script: &mut Script, uri: &str, asked: bool| {
        let (contents, ()) = tokio::join!(client.read(uri), async {
            if asked {
                let request = script.expect("resources/read").await;
                let contents = json!([{"uri": uri, "text": "x"}]);
                let result = json!({"contents": contents, "ttlMs": 60_000, "cacheScope": "public"});
                script.reply(&request, result).await;
            } else {
                script.expect_silence().await;
            }
        });
        contents.unwrap();
    };
    read(&mut script, "file:///a", true).await;
    read(&mut script, "file:///b", true).await;
    read(&mut script, "file:///a", false).await;
    script.notify("notifications/resources/updated", json!({"uri": "file:///a"})).await;
    script.expect_silence().await;
    read(&mut script, "file:///b", false).await;
    read(&mut script, "file:///a", true).await;
}

#[tokio::test]
async fn the_answer_to_the_first_message_is_kept_too() {
    let (client, mut script) = crate::script::attempt(builder(), async |script| {
        let probe = script.expect("server/discover").await;
        let mut found = discovery();
        found["ttlMs"] = 60_000.into();
        script.reply(&probe, found).await;
    })
    .await;
    let client = client.unwrap();
    assert_eq!(client.discover().await.unwrap().instructions.unwrap(), "be kind");
    script.expect_silence().await;
}

#[tokio::test]
async fn there_is_no_cache_in_the_legacy_era_nor_without_room() {
    let (client, mut script) = legacy().await;
    list(&client, &mut script, Some(tools("one", 60_000))).await;
    list(&client, &mut script, Some(tools("two", 60_000))).await;

    let (client, mut script) =
        connect(builder().limits(ClientLimits::default().cache_entries(0)), Version::LATEST).await;
    list(&client, &mut script, Some(tools("one", 60_000))).await;
    list(&client, &mut script, Some(tools("two", 60_000))).await;
}
