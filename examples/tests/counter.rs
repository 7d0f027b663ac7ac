//! The counter as its users meet it, in both eras.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "its `main` is not run here")]
#[path = "../counter.rs"]
mod counter;

use toolwire::{client::EraChoice, memory, prelude::*};

async fn connect(era: EraChoice) -> Client {
    let (ours, theirs) = memory::pair();
    let server = counter::server().unwrap();
    tokio::spawn(async move { server.serve(theirs).await });
    Client::builder("walker", "1.0").era(era).connect(ours).await.unwrap()
}

async fn call(client: &Client, name: &str, arguments: serde_json::Value) -> String {
    let result = client.call(name, arguments).await.unwrap();
    assert!(!result.is_error(), "{result:?}");
    result.content()[0].as_text().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn counts_talks_and_keeps() {
    for era in [EraChoice::Legacy, EraChoice::Modern] {
        let client = connect(era).await;
        assert_eq!(call(&client, "increment", json!({})).await, "1");
        assert_eq!(call(&client, "increment", json!({})).await, "2");
        assert_eq!(call(&client, "decrement", json!({})).await, "1");
        assert_eq!(call(&client, "get_value", json!({})).await, "1");
        assert_eq!(call(&client, "say_hello", json!({})).await, "hello, walker");
        assert_eq!(call(&client, "sum", json!({"a": 2, "b": 40})).await, "42");
        let echoed = call(&client, "echo", json!({"any": {"thing": [1]}})).await;
        assert_eq!(echoed, r#"{"any":{"thing":[1]}}"#);
        assert_eq!(call(&client, "long_task", json!({})).await, "done");

        let prompt = client.get_prompt("counter_analysis", json!({"goal": "5"})).await.unwrap();
        let text = prompt.messages[1].content.as_text().unwrap();
        assert_eq!(text, "The counter is at 1 and should be at 5: 4 steps up. Be careful.");
        let memo = client.read("memo://insights").await.unwrap();
        assert_eq!(memo.contents[0].as_text().unwrap(), "The counter is at 1.");
        assert_eq!(client.all_resources().await.unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_session_has_its_own_visits_and_a_lone_request_none() {
    let legacy = connect(EraChoice::Legacy).await;
    assert_eq!(call(&legacy, "visits", json!({})).await, "1");
    assert_eq!(call(&legacy, "visits", json!({})).await, "2");
    let error = connect(EraChoice::Modern).await.call("visits", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("return an id and take it as an argument"), "{error}");
}

/// What callers may send, and what they may not: whoever changes it sees it here.
#[test]
fn what_callers_may_send() {
    let signatures = counter::server().unwrap().signatures();
    let lines: Vec<String> = signatures.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "tool increment()",
            "tool decrement()",
            "tool get_value()",
            "tool long_task() takes Progress",
            "tool say_hello() takes Caller",
            "tool echo(…)",
            "tool sum(a, b)",
            "tool visits() takes Session<AtomicI64>",
            "prompt example_prompt(message)",
            "prompt counter_analysis(goal, strategy)",
            "resource counter://cwd()",
            "resource memo://insights()",
        ]
    );
}
