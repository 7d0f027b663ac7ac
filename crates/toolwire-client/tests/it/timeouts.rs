//! Times, with a clock that the test moves.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};
use toolwire_client::{Delivery, ElicitReply, ErrorKind};
use toolwire_protocol::Version;

use crate::script::{builder, connect, legacy, modern, text};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn silence_ends_a_call_and_cancels_it() {
    let (client, mut script) = modern().await;
    let started = Instant::now();
    let (outcome, ()) = tokio::join!(client.call("slow", ()), async {
        let request = script.expect("tools/call").await;
        let cancelled = script.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], request["id"]);
    });
    let error = outcome.unwrap_err();
    assert!(error.is_timeout());
    assert_eq!(error.delivery(), Delivery::Unknown);
    assert_eq!(error.to_string(), "no answer to tools/call within 60s");
    assert_eq!(started.elapsed(), 60 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn progress_gives_a_call_its_time_again() {
    let (client, mut script) = modern().await;
    let call = client.call("slow", ()).timeout(10 * SECOND).progress(|_| ());
    let (outcome, ()) = tokio::join!(call, async {
        let request = script.expect("tools/call").await;
        for step in 1..=5 {
            sleep(9 * SECOND).await;
            script.progress(&request, f64::from(step)).await;
        }
        sleep(9 * SECOND).await;
        script.reply(&request, text("done")).await;
    });
    assert_eq!(outcome.unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn progress_that_goes_nowhere_gives_no_time() {
    let (client, mut script) = modern().await;
    let call = client.call("slow", ()).timeout(10 * SECOND).progress(|_| ());
    let started = Instant::now();
    let (outcome, ()) = tokio::join!(call, async {
        let request = script.expect("tools/call").await;
        for _ in 0..3 {
            sleep(4 * SECOND).await;
            script.progress(&request, 1.0).await;
        }
    });
    assert!(outcome.unwrap_err().is_timeout());
    assert_eq!(started.elapsed(), 14 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn the_total_time_is_a_cap() {
    let (client, mut script) = modern().await;
    let call = client.call("slow", ()).timeout(10 * SECOND).total_timeout(25 * SECOND).progress(|_| ());
    let started = Instant::now();
    let (outcome, ()) = tokio::join!(call, async {
        let request = script.expect("tools/call").await;
        for step in 1..=3 {
            sleep(8 * SECOND).await;
            script.progress(&request, f64::from(step)).await;
        }
        script.expect("notifications/cancelled").await;
    });
    let error = outcome.unwrap_err();
    assert_eq!(error.to_string(), "no answer to tools/call within 25s");
    assert_eq!(started.elapsed(), 25 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn endless_times_are_allowed() {
    let (client, mut script) = modern().await;
    let call = client.call("slow", ()).timeout(Duration::MAX).total_timeout(Duration::MAX);
    let (outcome, ()) = tokio::join!(call, async {
        let request = script.expect("tools/call").await;
        sleep(3000 * SECOND).await;
        script.reply(&request, text("done")).await;
    });
    assert!(outcome.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_person_is_not_the_servers() {
    let slow_person =
        builder().request_timeout(10 * SECOND).total_timeout(15 * SECOND).on_elicit(async |_| {
            sleep(100 * SECOND).await;
            ElicitReply::decline()
        });
    let (client, mut script) = connect(slow_person, Version::LATEST_LEGACY).await;
    let started = Instant::now();
    let (outcome, ()) = tokio::join!(client.call("ask", ()), async {
        let request = script.expect("tools/call").await;
        sleep(6 * SECOND).await;
        let schema = json!({"type": "object", "properties": {}});
        let params = json!({"message": "?", "requestedSchema": schema});
        script
            .send(json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}))
            .await;
        let answer = script.receive().await.unwrap();
        assert_eq!(answer["result"], json!({"action": "decline"}));
        sleep(3 * SECOND).await;
        script.reply(&request, text("done")).await;
    });
    assert_eq!(outcome.unwrap().text(), "done");
    assert_eq!(started.elapsed(), 109 * SECOND);

    // And yet the server's own time is counted.
    let started = Instant::now();
    let (outcome, ()) = tokio::join!(client.call("ask", ()), async {
        script.expect("tools/call").await;
        script.expect("notifications/cancelled").await;
    });
    assert!(outcome.unwrap_err().is_timeout());
    assert_eq!(started.elapsed(), 10 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn the_probe_has_a_time_of_its_own() {
    let started = Instant::now();
    let (client, _script) = crate::script::attempt(builder().probe_timeout(2 * SECOND), async |script| {
        script.expect("server/discover").await;
        script.initialized(Version::V2024_11_05).await;
    })
    .await;
    client.unwrap();
    assert_eq!(started.elapsed(), 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_reads_nothing_is_told_apart() {
    let (client, script) = legacy().await;
    let big = "x".repeat(1024 * 1024);
    // The pipe takes one or two, the queue eight or nine; the rest must wait, and waits in vain.
    let calls: Vec<_> =
        (0..16).map(|_| tokio::spawn(client.call("big", json!({"text": big})).into_future())).collect();
    let mut deliveries = Vec::new();
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        deliveries.push(error.delivery());
    }
    assert!(deliveries.contains(&Delivery::Unknown));
    assert!(deliveries.contains(&Delivery::NotSent));
    drop(script);
}
