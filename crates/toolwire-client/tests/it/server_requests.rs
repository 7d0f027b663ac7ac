//! What a legacy server asks, and a modern one must not.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use toolwire_client::{ClientLimits, ElicitReply};
use toolwire_protocol::{
    ErrorCode, RawJson, RpcError, Version,
    wire::{ClientCapabilities, Content, CreateMessageResult, ElicitationCapability, Role, Root},
};

use crate::script::{Script, builder, connect, legacy, modern, text};

async fn request(script: &mut Script, id: Value, method: &str, params: Value) {
    script.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
}

async fn ask(script: &mut Script, method: &str, params: Value) -> Value {
    request(script, "q".into(), method, params).await;
    let answer = script.receive().await.unwrap();
    assert_eq!(answer["id"], "q");
    answer
}

fn form(message: &str) -> Value {
    let properties = json!({"name": {"type": "string", "default": "Ada"}});
    json!({"message": message, "requestedSchema": {"type": "object", "properties": properties}})
}

#[tokio::test]
async fn the_same_handlers_answer_a_legacy_server() {
    let builder = builder()
        .on_elicit(async |question| match question.url() {
            Some(url) => ElicitReply::accept(json!({"ignored": url})),
            None if question.message() == "no" => ElicitReply::decline(),
            None => ElicitReply::accept_defaults(),
        })
        .elicit_url(true)
        .on_sample(async |request| match request.max_tokens {
            0 => Err(RpcError::new(ErrorCode::SAMPLING_REJECTED, "User rejected sampling request")),
            _ => Ok(CreateMessageResult::new(Role::Assistant, Content::text("hm"), "model")),
        })
        .roots([Root::new("file:///home")]);
    let (_client, mut script) = connect(builder, Version::LATEST_LEGACY).await;

    let answer = ask(&mut script, "ping", json!({})).await;
    assert_eq!(answer["result"], json!({}));
    let answer = ask(&mut script, "elicitation/create", form("yes")).await;
    assert_eq!(answer["result"], json!({"action": "accept", "content": {"name": "Ada"}}));
    let answer = ask(&mut script, "elicitation/create", form("no")).await;
    assert_eq!(answer["result"], json!({"action": "decline"}));
    let url = json!({"mode": "url", "message": "m", "url": "https://x", "elicitationId": "e"});
    let answer = ask(&mut script, "elicitation/create", url).await;
    assert_eq!(answer["result"], json!({"action": "accept"}));
    let answer = ask(&mut script, "sampling/createMessage", json!({"messages": [], "maxTokens": 9})).await;
    assert_eq!(answer["result"]["model"], "model");
    let answer = ask(&mut script, "sampling/createMessage", json!({"messages": [], "maxTokens": 0})).await;
    assert_eq!(answer["error"]["code"], -1);
    let answer = ask(&mut script, "roots/list", json!({})).await;
    assert_eq!(answer["result"], json!({"roots": [{"uri": "file:///home"}]}));
}

#[tokio::test]
async fn what_is_passed_on_is_not_touched() {
    let (told, mut asked) = mpsc::unbounded_channel();
    let can = ClientCapabilities::new().elicitation(ElicitationCapability::new());
    let builder = builder().on_request(can, move |request| {
        told.send((request.method().to_string(), request.params().text().to_owned())).unwrap();
        async move {
            match request.method().as_str() {
                "acme/odd" => Ok(RawJson::parse(r#"{"b":1.50,"a":[ ]}"#).unwrap()),
                _ => Err(RpcError::new(ErrorCode(-7), "not today")),
            }
        }
    });
    let (_client, mut script) = connect(builder, Version::LATEST_LEGACY).await;
    script
        .send_text(r#"{"jsonrpc":"2.0","id":1,"method":"acme/odd","params":{"z":1.0,"a":{"y":2e0}}}"#)
        .await;
    let answer = script.receive().await.unwrap();
    assert_eq!(answer["result"], json!({"b": 1.5, "a": []}));
    let (method, params) = asked.recv().await.unwrap();
    assert_eq!((&*method, &*params), ("acme/odd", r#"{"z":1.0,"a":{"y":2e0}}"#));
    let answer = ask(&mut script, "elicitation/create", json!({"not": "even valid"})).await;
    assert_eq!(answer["error"], json!({"code": -7, "message": "not today"}));
    assert_eq!(ask(&mut script, "ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn questions_of_a_modern_server_are_passed_on_too() {
    let can = ClientCapabilities::new().elicitation(ElicitationCapability::new());
    let builder = builder().on_request(can, |request| async move {
        assert_eq!((request.method().as_str(), request.during()), ("elicitation/create", None));
        let params: Value = request.params().decode().unwrap();
        Ok(RawJson::from(&json!({"action": "accept", "content": {"name": params["message"]}})))
    });
    let (client, mut script) = connect(builder, Version::LATEST).await;
    let (outcome, ()) = tokio::join!(client.call("x", ()), async {
        let first = script.expect("tools/call").await;
        let declared = &first["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(*declared, json!({"elicitation": {}}));
        let question = json!({"method": "elicitation/create", "params": form("who?")});
        let asked = json!({"resultType": "input_required", "inputRequests": {"k": question}});
        script.reply(&first, asked).await;
        let second = script.expect("tools/call").await;
        assert_eq!(second["params"]["inputResponses"]["k"]["content"]["name"], "who?");
        script.reply(&second, text("done")).await;
    });
    assert_eq!(outcome.unwrap().text(), "done");
}

#[tokio::test]
async fn what_has_no_handler_is_not_found_and_what_is_not_valid_is_refused() {
    let (_client, mut script) = legacy().await;
    for (method, params) in [
        ("elicitation/create", form("?")),
        ("sampling/createMessage", json!({"messages": [], "maxTokens": 9})),
        ("roots/list", json!({})),
        ("tasks/list", json!({})),
        ("tools/list", json!({})),
        ("com.example/x", json!({})),
    ] {
        let answer = ask(&mut script, method, params).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}");
    }
    let answer = ask(&mut script, "elicitation/create", json!({"message": 3})).await;
    assert_eq!(answer["error"]["code"], -32602);
    let answer = ask(&mut script, "ping", json!([1])).await;
    assert_eq!(answer["error"]["code"], -32600);

    let (_client, mut script) =
        connect(builder().on_elicit(async |_| panic!("oh")), Version::V2025_06_18).await;
    let answer = ask(&mut script, "elicitation/create", form("?")).await;
    assert_eq!(answer["error"]["code"], -32603);
    let answer = ask(&mut script, "ping", json!({})).await;
    assert_eq!(answer["result"], json!({}), "and nothing else is disturbed");
}

#[tokio::test]
async fn a_modern_server_gets_no_answers_to_what_it_must_not_ask() {
    let builder = builder().on_elicit(async |_| ElicitReply::accept_defaults());
    let (_client, mut script) = connect(builder, Version::LATEST).await;
    for method in ["ping", "elicitation/create", "roots/list"] {
        let answer = ask(&mut script, method, form("?")).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test]
async fn requests_run_side_by_side_up_to_a_limit_and_then_wait_and_then_are_refused() {
    let gate = Arc::new(Semaphore::new(0));
    let running = Arc::new(AtomicUsize::new(0));
    let (open, count) = (Arc::clone(&gate), Arc::clone(&running));
    let limits = ClientLimits::default().concurrent_handlers(2).queued_server_requests(3);
    let builder = builder().limits(limits).on_elicit(move |question| {
        let (gate, running) = (Arc::clone(&open), Arc::clone(&count));
        async move {
            running.fetch_add(1, Ordering::Relaxed);
            gate.acquire().await.unwrap().forget();
            running.fetch_sub(1, Ordering::Relaxed);
            ElicitReply::accept(json!({"name": question.message()}))
        }
    });
    let (_client, mut script) = connect(builder, Version::LATEST_LEGACY).await;
    for id in 0..5 {
        request(&mut script, id.into(), "elicitation/create", form("?")).await;
    }
    script.expect_silence().await;
    assert_eq!(running.load(Ordering::Relaxed), 2);
    // One more is too many, and the same id twice is a mistake.
    request(&mut script, 5.into(), "elicitation/create", form("?")).await;
    let refused = script.receive().await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(5), &json!(-32603)));
    request(&mut script, 1.into(), "elicitation/create", form("?")).await;
    let refused = script.receive().await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(1), &json!(-32600)));
    // Small things are answered meanwhile.
    assert_eq!(ask(&mut script, "ping", json!({})).await["result"], json!({}));
    // Cancelled requests are not answered, whether they run or wait.
    for id in [0, 4] {
        script.notify("notifications/cancelled", json!({"requestId": id})).await;
    }
    script.expect_silence().await;
    gate.add_permits(10);
    let mut answered = Vec::new();
    for _ in 0..3 {
        answered.push(script.receive().await.unwrap()["id"].as_i64().unwrap());
    }
    answered.sort_unstable();
    assert_eq!(answered, [1, 2, 3]);
    script.expect_silence().await;
}

#[tokio::test]
async fn a_server_may_ping_before_anything_is_agreed_on() {
    let (client, _script) = crate::script::attempt(builder(), async |script| {
        let probe = script.expect("server/discover").await;
        assert_eq!(ask(script, "ping", json!({})).await["result"], json!({}));
        script.fail(&probe, -32601, "what?").await;
        script.initialized(Version::LATEST_LEGACY).await;
    })
    .await;
    client.unwrap();
    let (_client, _script) = modern().await;
}
