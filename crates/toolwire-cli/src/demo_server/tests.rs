//! The server, called as any client would.

use serde_json::{Value, json};
use toolwire::{
    Client,
    client::{CallOutcome, ClientBuilder, ElicitReply, EraChoice, Started},
    memory,
    wire::{Content, CreateMessageResult, ResourceContents, Role, Root},
};

use super::{notes, server};

async fn client() -> Client {
    connected(Client::builder("test", "1.0")).await
}

async fn connected(builder: ClientBuilder) -> Client {
    let (near, far) = memory::pair();
    let server = server().unwrap();
    tokio::spawn(async move { server.serve(far).await });
    builder.connect(near).await.unwrap()
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
        .chain(["planets", "gallery", "wait"])
        .chain(["report", "deploy"]);
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

#[tokio::test]
async fn what_asks_back_takes_every_answer() {
    for era in [EraChoice::Modern, EraChoice::Legacy] {
        let builder = Client::builder("test", "1.0").era(era).elicit_url(true);
        let client = connected(
            builder
                .on_elicit(async |question| match question.url() {
                    Some(_) => ElicitReply::accept_defaults(),
                    None => {
                        ElicitReply::accept(json!({ "name": "Ada", "size": "small", "extras": ["lemon"] }))
                    }
                })
                .on_sample(async |request| {
                    assert_eq!(request.system_prompt.as_deref(), Some("Answer in one short sentence."));
                    Ok(CreateMessageResult::new(Role::Assistant, Content::text("yes"), "test"))
                })
                .roots(vec![Root::new("file:///home"), Root::new("file:///tmp").name("scratch")]),
        )
        .await;
        let receipt: Value = call(&client, "order", json!({})).await.json().unwrap();
        assert_eq!(receipt, json!({ "ordered": true, "summary": "1 × small tea for Ada, lemon" }), "{era:?}");
        assert_eq!(call(&client, "visit", json!({})).await.text(), "thank you for visiting");
        let said = call(&client, "ask_model", json!({ "question": "?" })).await;
        assert_eq!(said.text(), "the model says: yes");
        assert_eq!(
            call(&client, "show_roots", json!({})).await.text(),
            "file:///home\nfile:///tmp (scratch)"
        );
    }
}

#[tokio::test]
async fn a_form_has_a_field_of_every_kind() {
    let client = connected(Client::builder("test", "1.0").on_elicit(async |question| {
        let asked = serde_json::to_value(question.schema().unwrap()).unwrap();
        let kinds = |name: &str| asked["properties"][name]["type"].as_str().unwrap().to_owned();
        let names = ["name", "email", "size", "cups", "extras", "to_go"];
        assert_eq!(names.map(kinds), ["string", "string", "string", "integer", "array", "boolean"]);
        assert_eq!(asked["properties"]["email"]["format"], "email");
        assert_eq!(asked["properties"]["size"]["oneOf"].as_array().unwrap().len(), 3);
        assert_eq!(asked["required"], json!(["name"]));
        ElicitReply::decline()
    }))
    .await;
    let receipt: Value = call(&client, "order", json!({})).await.json().unwrap();
    assert_eq!(receipt["ordered"], false);
}

#[tokio::test]
async fn tables_pictures_and_sounds_are_what_they_say() {
    let client = client().await;
    let rows: Value = call(&client, "planets", json!({ "moons": 50 })).await.json().unwrap();
    let names: Vec<_> = rows["planets"].as_array().unwrap().iter().map(|row| row["name"].clone()).collect();
    assert_eq!(names, ["Jupiter", "Saturn"]);
    let gallery = call(&client, "gallery", json!({})).await;
    let kinds: Vec<_> = gallery.content().iter().map(Content::kind).collect();
    assert_eq!(kinds, ["text", "image", "audio", "resource", "resource_link"]);
}

#[tokio::test]
async fn long_work_goes_on_as_a_task_in_both_eras_and_asks_before_it_goes_live() {
    for era in [EraChoice::Modern, EraChoice::Legacy] {
        let builder = Client::builder("test", "1.0").era(era);
        let client =
            connected(builder.on_elicit(async |_| ElicitReply::accept(json!({ "live": true })))).await;
        let Started::Task(task) = client.call("report", json!({ "year": 2026 })).start().await.unwrap()
        else {
            panic!("it is a task");
        };
        assert_eq!(task.result().await.unwrap().text(), "the report of 2026: a good year");
        assert_eq!(call(&client, "deploy", json!({ "version": "1.2" })).await.text(), "1.2 is live");
    }
}
