//! Requests that take several rounds.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::Barrier, time::Instant};
use toolwire_client::{ClientLimits, Delivery, ElicitReply, ErrorKind};
use toolwire_protocol::{
    RawJson, RpcError, Version,
    wire::{Content, CreateMessageResult, Role, Root},
};

use crate::script::{Script, builder, connect, modern, text};

fn form(properties: &Value) -> Value {
    let schema = json!({"type": "object", "properties": properties});
    json!({"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": schema}})
}

async fn ask(script: &mut Script, request: &Value, questions: Value, state: Option<&str>) {
    let mut result = json!({"resultType": "input_required", "inputRequests": questions});
    if let Some(state) = state {
        result["requestState"] = state.into();
    }
    script.reply(request, result).await;
}

#[tokio::test]
async fn all_kinds_of_questions_are_answered_at_once_and_the_state_is_echoed() {
    // All three handlers wait for each other, so they must run at the same time.
    let barrier = Arc::new(Barrier::new(3));
    let [one, two, three] = [(); 3].map(|()| Arc::clone(&barrier));
    let builder = builder()
        .on_elicit(move |question| {
            assert_eq!(question.message(), "who?");
            let barrier = Arc::clone(&one);
            async move {
                barrier.wait().await;
                ElicitReply::accept_defaults()
            }
        })
        .on_sample(move |request| {
            assert_eq!(request.max_tokens, 5);
            let barrier = Arc::clone(&two);
            async move {
                barrier.wait().await;
                Ok(CreateMessageResult::new(Role::Assistant, Content::text("hm"), "model"))
            }
        })
        .on_roots(move || {
            let barrier = Arc::clone(&three);
            async move {
                barrier.wait().await;
                vec![Root::new("file:///home")]
            }
        });
    let (client, mut script) = connect(builder, Version::LATEST).await;
    let state = "st\u{e9}\"te\n\u{1}=";
    let (outcome, ()) = tokio::join!(client.call("book", json!({"a": 1})), async {
        let first = script.expect("tools/call").await;
        assert!(first["params"].get("requestState").is_none());
        let sample = json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}});
        let questions = json!({
            "person": form(&json!({"name": {"type": "string", "default": "Ada"}})),
            "model": sample, "disk": {"method": "roots/list"},
        });
        ask(&mut script, &first, questions, Some(state)).await;
        let second = script.expect("tools/call").await;
        assert_ne!(second["id"], first["id"]);
        assert_eq!(second["params"]["arguments"], json!({"a": 1}));
        assert_eq!(second["params"]["requestState"], state);
        assert_eq!(
            second["params"]["inputResponses"],
            json!({
                "person": {"action": "accept", "content": {"name": "Ada"}},
                "model": {"role": "assistant", "content": {"type": "text", "text": "hm"}, "model": "model"},
                "disk": {"roots": [{"uri": "file:///home"}]},
            })
        );
        script.reply(&second, text("booked")).await;
    });
    assert_eq!(outcome.unwrap().text(), "booked");
}

#[tokio::test]
async fn nothing_of_a_round_is_kept_for_the_next() {
    let builder = builder().on_elicit(async |_| ElicitReply::decline());
    let (client, mut script) = connect(builder, Version::LATEST).await;
    let (outcome, ()) = tokio::join!(client.get_prompt("p", ()), async {
        let request = script.expect("prompts/get").await;
        ask(&mut script, &request, json!({"a": form(&json!({}))}), Some("s1")).await;
        let request = script.expect("prompts/get").await;
        ask(&mut script, &request, json!({"b": form(&json!({}))}), None).await;
        let request = script.expect("prompts/get").await;
        assert_eq!(request["params"]["inputResponses"], json!({"b": {"action": "decline"}}));
        assert!(request["params"].get("requestState").is_none(), "none was given, so none is sent");
        script.reply(&request, json!({"messages": []})).await;
    });
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn state_alone_means_later_and_later() {
    let (client, mut script) = modern().await;
    let started = Instant::now();
    let (outcome, ()) = tokio::join!(client.read("file:///a"), async {
        for round in 0..4 {
            let request = script.expect("resources/read").await;
            assert!(request["params"].get("inputResponses").is_none());
            script
                .reply(&request, json!({"resultType": "input_required", "requestState": round.to_string()}))
                .await;
        }
        let request = script.expect("resources/read").await;
        assert_eq!(request["params"]["requestState"], "3");
        let result =
            json!({"resultType": "complete", "contents": [], "ttlMs": 60000, "cacheScope": "public"});
        script.reply(&request, result).await;
    });
    outcome.unwrap();
    assert_eq!(started.elapsed(), Duration::from_millis(100 + 200 + 400 + 800));

    // The result of a retry is never stored.
    let (outcome, ()) = tokio::join!(client.read("file:///a"), async {
        let request = script.expect("resources/read").await;
        script.reply(&request, json!({"contents": []})).await;
    });
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn rounds_have_an_end() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let builder = builder().on_elicit(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async { ElicitReply::decline() }
    });
    let (client, mut script) = connect(builder, Version::LATEST).await;
    let (outcome, ()) = tokio::join!(client.call("x", ()), async {
        for _ in 0..=ClientLimits::default().rounds {
            let request = script.expect("tools/call").await;
            ask(&mut script, &request, json!({"again": form(&json!({}))}), None).await;
        }
    });
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::TooManyRounds, Delivery::Rejected));
    assert!(asked.load(Ordering::Relaxed) <= ClientLimits::default().rounds + 1);
    script.expect_silence().await;

    let (outcome, ()) = tokio::join!(client.call("x", ()).total_timeout(Duration::from_secs(1)), async {
        for _ in 0..4 {
            let request = script.expect("tools/call").await;
            script.reply(&request, json!({"resultType": "input_required", "requestState": "s"})).await;
        }
    });
    assert!(outcome.unwrap_err().is_timeout(), "pauses count against the total time");
}

#[tokio::test(start_paused = true)]
async fn thinking_between_rounds_costs_no_time() {
    let builder = builder().on_elicit(async |_| {
        tokio::time::sleep(Duration::from_secs(100)).await;
        ElicitReply::cancel()
    });
    let (client, mut script) = connect(builder, Version::LATEST).await;
    let ten = Duration::from_secs(10);
    let (outcome, ()) = tokio::join!(client.call("x", ()).timeout(ten).total_timeout(ten), async {
        let request = script.expect("tools/call").await;
        ask(&mut script, &request, json!({"k": form(&json!({}))}), None).await;
        let request = script.expect("tools/call").await;
        script.reply(&request, text("done")).await;
    });
    outcome.unwrap();
}

#[tokio::test]
async fn what_nobody_can_answer_is_an_error() {
    let builder = builder()
        .on_elicit(async |_| -> ElicitReply { panic!("the user interface is on fire") })
        .on_sample(async |_| Err(RpcError::internal("the model is asleep")));
    let (client, mut script) = connect(builder, Version::LATEST).await;
    let url = json!({"method": "elicitation/create", "params": {"mode": "url", "message": "m", "url": "https://x"}});
    let sample = json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}});
    for (question, expected) in [
        (json!({"method": "roots/list"}), "method not found"),
        (url, "does not send people to URLs"),
        (form(&json!({})), "failed to answer"),
        (sample, "the model is asleep"),
    ] {
        let (outcome, ()) = tokio::join!(client.call("x", ()), async {
            let request = script.expect("tools/call").await;
            ask(&mut script, &request, json!({"the key": question}), None).await;
        });
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::Unanswerable, Delivery::Rejected));
        assert!(error.to_string().contains(expected) && error.to_string().contains("the key"), "{error}");
    }
    let many: serde_json::Map<_, _> = (0..=64).map(|n| (n.to_string(), form(&json!({})))).collect();
    for result in [
        json!({"resultType": "input_required"}),
        json!({"resultType": "input_required", "inputRequests": {"k": {"method": "what/ever"}}}),
        json!({"resultType": "input_required", "inputRequests": []}),
        json!({"resultType": "input_required", "inputRequests": many}),
    ] {
        let (outcome, ()) = tokio::join!(client.call("x", ()), async {
            let request = script.expect("tools/call").await;
            script.reply(&request, result.clone()).await;
        });
        outcome.unwrap_err();
    }
    script.expect_silence().await;
}

#[tokio::test]
async fn raw_requests_show_single_rounds() {
    let (client, mut script) = modern().await;
    let raw = client.raw();
    let (result, ()) = tokio::join!(raw.request("tools/call", json!({"name": "x"})), async {
        let request = script.expect("tools/call").await;
        script.reply(&request, json!({"resultType": "input_required", "requestState": "s"})).await;
    });
    assert_eq!(result.unwrap().text(), r#"{"requestState":"s","resultType":"input_required"}"#);
}

#[tokio::test(start_paused = true)]
async fn raw_requests_go_out_as_they_are_and_have_their_own_time() {
    let (client, mut script) = modern().await;
    let raw = client.raw();
    let params = RawJson::parse(r#"{"z":1.50,"a":{ "y" : 2e0 }}"#).unwrap();
    let (told, id) = tokio::sync::oneshot::channel();
    let call = raw
        .request("acme/x", params)
        .timeout(Duration::from_secs(5))
        .on_id(move |id| told.send(id.clone()).unwrap())
        .into_future();
    let began = Instant::now();
    let (outcome, ()) = tokio::join!(call, async {
        let message = script.receive_text().await;
        assert!(message.contains(r#""params":{"z":1.50,"a":{ "y" : 2e0 },"_meta":{"#), "{message}");
        let message: Value = serde_json::from_str(&message).unwrap();
        assert_eq!(message["id"], json!(id.await.unwrap()));
    });
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), began.elapsed()), (ErrorKind::Timeout, Duration::from_secs(5)));

    let params = RawJson::parse("[1]").unwrap();
    let error = raw.request("acme/x", params).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::InvalidParams, Delivery::NotSent));
}
