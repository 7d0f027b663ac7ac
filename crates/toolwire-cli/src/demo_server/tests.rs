//! The server, called as any client would.

use serde_json::{Value, json};
use toolwire::{Client, client::CallOutcome, memory, wire::ResourceContents};

use super::{notes, server};

async fn client() -> Client {
    let (near, far) = memory::pair();
    let server = server().unwrap();
    tokio::spawn(async move { server.serve(far).await });
    Client::builder("test", "1.0").connect(near).await.unwrap()
}

async fn call(client: &Client, tool: &str, arguments: Value) -> CallOutcome {
    client.call(tool, arguments).await.unwrap()
}

#[tokio::test]
async fn every_tool_tells_people_and_models_what_it_does() {
    let client = client().await;
    let tools = client.all_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let expected = ["add", "echo", "fail", "count", "add_note"]
        .into_iter()
        .chain(["order", "visit", "ask_model", "show_roots"])
        .chain(["planets", "gallery", "wait"]);
    assert_eq!(names, expected.collect::<Vec<_>>());
    assert!(tools.iter().all(|tool| tool.title.is_some() && tool.description.is_some()));
    assert!(client.instructions().is_some_and(|text| names.iter().all(|name| text.contains(name))));
}

#[tokio::test]
async fn sums_that_do_not_fit_are_said_and_not_wrapped() {
    let client = client().await;
    let sum: Value = call(&client, "add", json!({ "a": i64::MAX, "b": -1 })).await.json().unwrap();
    assert_eq!(sum, json!({ "sum": i64::MAX - 1 }));
    let failed = call(&client, "add", json!({ "a": i64::MAX, "b": 1 })).await;
    assert!(failed.is_error());
    assert!(failed.text().contains("too large"), "{}", failed.text());
}

#[tokio::test]
async fn counting_beyond_a_hundred_is_refused() {
    let client = client().await;
    for to in [0, 101] {
        let refused = call(&client, "count", json!({ "to": to })).await;
        assert!(refused.is_error(), "{}", refused.text());
    }
}

#[tokio::test]
async fn notes_are_kept_as_resources_until_there_is_no_more_room() {
    let client = client().await;
    for number in 1..=notes::MAX_NOTES {
        let saved = call(&client, "add_note", json!({ "text": format!("note {number}") })).await;
        assert_eq!(saved.text(), format!("saved as demo://notes/{number}"));
    }
    let full = call(&client, "add_note", json!({ "text": "one too many" })).await;
    assert!(full.is_error());
    assert!(full.text().contains("no more room"), "{}", full.text());

    let listed = client.all_resources().await.unwrap();
    assert_eq!(listed.len(), 2 + notes::MAX_NOTES);
    let last = client.read(format!("demo://notes/{}", notes::MAX_NOTES)).await.unwrap();
    let [ResourceContents::Text(last)] = last.contents.as_slice() else { panic!("{last:?}") };
    assert_eq!(last.text, format!("note {}", notes::MAX_NOTES));
}

#[tokio::test]
async fn a_note_is_neither_empty_nor_endless() {
    let client = client().await;
    for text in [String::new(), "x".repeat(notes::MAX_NOTE_CHARS + 1)] {
        assert!(call(&client, "add_note", json!({ "text": text })).await.is_error());
    }
    let longest = "ü".repeat(notes::MAX_NOTE_CHARS);
    assert!(!call(&client, "add_note", json!({ "text": longest })).await.is_error());
}
