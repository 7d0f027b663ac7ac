//! Prompts, whose arguments are strings on the wire and typed in the handler.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwire_protocol::{
    Version,
    wire::{Content, GetPromptResult, PromptMessage, Role},
};
use toolwire_server::{Args, Server, prompt};
use toolwire_testkit::each;

use crate::{assert_since, names};

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// In words.
    tone: Option<Tone>,
    lines: u32,
    strict: bool,
}

#[derive(Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "lowercase")]
enum Tone {
    Warm,
}

async fn review(Args(review): Args<Review>) -> String {
    format!("{} lines, strict: {}, tone: {:?}", review.lines, review.strict, review.tone)
}

async fn dialogue() -> GetPromptResult {
    let messages = vec![
        PromptMessage::new(Role::User, Content::text("Hello?")),
        PromptMessage::new(Role::Assistant, Content::text("Yes?")),
    ];
    GetPromptResult::new(messages).description("A conversation")
}

fn server() -> Server {
    Server::builder("prompts", "1.0")
        .prompt(prompt("review", review).title("Review").description("Reviews code."))
        .prompt(prompt("dialogue", dialogue))
        .prompt(prompt("broken", || async { Err::<String, _>("no model today") }))
        .build()
        .unwrap()
}

#[tokio::test]
async fn are_listed_with_their_arguments() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let reply = wire.request("prompts/list", Value::Null).await;
        let prompts = &reply.result()["prompts"];
        assert_eq!(names(prompts, "name"), ["review", "dialogue", "broken"]);
        let review = &prompts[0];
        assert_since(setup.version, Version::V2025_06_18, review, "title");
        let arguments = review["arguments"].as_array().unwrap();
        let required: Vec<_> = arguments.iter().map(|argument| argument["required"] == true).collect();
        assert_eq!(required, [false, true, true], "in the order of declaration: {review}");
        assert_eq!(arguments[0]["name"], "tone");
        assert_eq!(arguments[0]["description"], "In words.");
    })
    .await;
}

#[tokio::test]
async fn read_their_arguments_from_strings() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let arguments = json!({ "lines": "12", "strict": "true", "tone": "warm" });
        let reply = wire.request("prompts/get", json!({ "name": "review", "arguments": arguments })).await;
        let text = "12 lines, strict: true, tone: Some(Warm)";
        let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
        assert_eq!(reply.result()["messages"], json!([message]));
    })
    .await;
}

#[tokio::test]
async fn may_be_whole_conversations() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let reply = wire.request("prompts/get", json!({ "name": "dialogue" })).await;
        assert_eq!(reply.result()["description"], "A conversation");
        assert_eq!(names(&reply.result()["messages"], "role"), ["user", "assistant"]);
    })
    .await;
}

#[tokio::test]
async fn refuse_what_does_not_fit() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        for (arguments, part) in [
            (json!({ "strict": "true" }), "lines"),
            (json!({ "lines": "many", "strict": "true" }), "many"),
            (json!({ "lines": "1", "strict": "maybe" }), "maybe"),
            (json!({ "lines": "1", "strict": "true", "tone": "cold" }), "cold"),
        ] {
            let reply =
                wire.request("prompts/get", json!({ "name": "review", "arguments": arguments })).await;
            assert_eq!(reply.code(), -32602);
            assert!(reply.error_text().contains(part), "{}", reply.message());
        }
        for params in [json!({ "name": "preview" }), json!({}), json!({ "name": "review" })] {
            assert_eq!(wire.request("prompts/get", params).await.code(), -32602);
        }
        let reply = wire.request("prompts/get", json!({ "name": "broken" })).await;
        assert_eq!(reply.code(), -32603);
    })
    .await;
}
