//! How much of an error reaches the caller.

use std::{error::Error, fmt};

use serde_json::json;
use toolwire::{Result, Server, ToolError, prompt, resource, routes, server::ServerBuilder, tool};

use crate::session::Session;

/// An error whose source nobody outside should read.
#[derive(Debug)]
struct Failed(std::num::ParseIntError);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the search failed")
    }
}

impl Error for Failed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

fn fails() -> Result<&'static str> {
    let error = "secret".parse::<u8>().map_err(Failed);
    Ok(error.map(|_| "found")?)
}

#[tool]
async fn find() -> Result<&'static str> {
    fails()
}

#[tool]
async fn choose() -> Result<&'static str> {
    Err(ToolError::message("no such book").into())
}

#[prompt]
async fn ask() -> Result<&'static str> {
    fails()
}

#[resource("x://y")]
async fn read() -> Result<&'static str> {
    fails()
}

/// What is said by the tools, the prompt and the resource.
async fn said(builder: ServerBuilder) -> [String; 4] {
    let mut session = Session::start(builder.routes(routes![find, choose, ask, read]).build().unwrap()).await;
    let find = session.result("tools/call", &json!({ "name": "find" })).await;
    let choose = session.result("tools/call", &json!({ "name": "choose" })).await;
    assert_eq!((&find["isError"], &choose["isError"]), (&true.into(), &true.into()));
    let text = |result: &serde_json::Value| result["content"][0]["text"].as_str().unwrap().to_owned();
    let [ask, read] = [
        session.ask("prompts/get", &json!({ "name": "ask" })).await,
        session.ask("resources/read", &json!({ "uri": "x://y" })).await,
    ]
    .map(|answer| {
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        answer["error"]["message"].as_str().unwrap().to_owned()
    });
    [text(&find), text(&choose), ask, read]
}

fn builder() -> ServerBuilder {
    Server::builder("demo", "1.0")
}

#[tokio::test(flavor = "current_thread")]
async fn the_message_is_told_and_what_stands_behind_it_is_not() {
    let failed = "the search failed";
    assert_eq!(said(builder()).await, [failed, "no such book", failed, failed]);
}

#[tokio::test(flavor = "current_thread")]
async fn sources_are_told_to_those_who_may_know() {
    let failed = "the search failed: invalid digit found in string";
    assert_eq!(said(builder().expose_sources()).await, [failed, "no such book", failed, failed]);
}

#[tokio::test(flavor = "current_thread")]
async fn masked_errors_are_told_by_their_reference() {
    let [find, choose, ask, read] = said(builder().mask_errors(true)).await;
    assert!(find.starts_with("tool \"find\" failed (reference ") && find.ends_with(')'), "{find}");
    assert_eq!(choose, "no such book");
    assert!(ask.starts_with("prompt \"ask\" failed (reference "), "{ask}");
    assert!(read.starts_with("resource \"x://y\" failed (reference "), "{read}");
}
