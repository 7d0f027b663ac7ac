//! What was recorded in one era can be asked again in the other.

use std::{path::Path, time::Duration};

use serde_json::json;
use toolwire::{
    Server, Version,
    client::{ElicitReply, EraChoice},
    memory,
    prelude::*,
    schemars,
    wire::{CreateMessageRequestParams, CreateMessageResult, Role, Root, SamplingMessage},
};

use super::*;
use crate::{target::Address, trace::Recorder};

#[derive(Deserialize, JsonSchema)]
struct Person {
    name: String,
}

/// A server with one tool that asks everything there is to ask.
fn server(greeting: &'static str) -> Server {
    let curious = move |cx: Context| async move {
        let person = cx.elicit::<Person>("Who are you?").key("who").accepted().await?;
        let roots = cx.roots().key("where").await?.len();
        let messages = vec![SamplingMessage::user(format!("Greet {}.", person.name))];
        let said = cx.sample(CreateMessageRequestParams::new(messages, 10_u64)).key("how").await?;
        let said = said.content.iter().find_map(Content::as_text).unwrap_or_default().to_owned();
        Ok::<_, toolwire::BoxError>(format!("{greeting}: {said} ({roots} roots)"))
    };
    Server::builder("curious", "1.0").tool(tool("curious", curious)).build().unwrap()
}

fn target(version: Version) -> Target {
    Target {
        name: "curious".into(),
        address: Address::parse("http://curious/").unwrap(),
        era: EraChoice::Version(version),
        timeout: Duration::from_secs(60),
        roots: Vec::new(),
        stderr: None,
        trace: None,
        lost: target::Lost::default(),
        max_message: target::MAX_MESSAGE_BYTES,
        roots_answered: Arc::default(),
    }
}

fn serve(greeting: &'static str) -> memory::Memory {
    let (near, far) = memory::pair();
    tokio::spawn(async move { server(greeting).serve(far).await });
    near
}

/// Records a call with somebody who answers.
async fn recorded(version: Version, file: &Path) -> Recorded {
    let target = target(version);
    let recorder = Recorder::create(file, &target.name, &target.address).unwrap();
    let client = target::builder(&target)
        .observe(recorder.listener(&target.name, &target.address))
        .on_elicit(|_| async { ElicitReply::accept(json!({ "name": "Ada" })) })
        .on_sample(|_| async { Ok(CreateMessageResult::new(Role::Assistant, Content::text("hi Ada"), "m")) })
        .roots([Root::new("file:///a"), Root::new("file:///b")])
        .connect(serve("hello"))
        .await
        .unwrap();
    assert_eq!(client.call("curious", json!({})).await.unwrap().text(), "hello: hi Ada (2 roots)");
    client.call("nobody", json!({})).await.unwrap_err();
    client.all_tools().await.unwrap();
    client.close().await.unwrap();
    crate::commands::trace::read(file, Terminal { json: true, verbose: 0 }).unwrap()
}

/// How many answers were the same, and how many not.
async fn replayed(recorded: &Recorded, version: Version, greeting: &'static str) -> (usize, usize) {
    let book = Arc::new(Mutex::new(Book::of(&recorded.conversation)));
    let target = target(version);
    let builder = handlers(target::builder(&target), &target, recorded, &book);
    let client = builder.connect(serve(greeting)).await.unwrap();
    let mut report = Report::new(Terminal { json: true, verbose: 0 });
    replay(&client, recorded, &book, &Volatile::new(&[]), &mut report).await.unwrap();
    (report.same, report.different)
}

#[tokio::test]
async fn questions_are_answered_from_the_trace_in_whatever_way_they_are_asked() {
    let versions = [Version::V2025_11_25, Version::V2026_07_28];
    for then in versions {
        let folder = tempfile::tempdir().unwrap();
        let recorded = recorded(then, &folder.path().join("trace")).await;
        for now in versions {
            assert_eq!(replayed(&recorded, now, "hello").await, (3, 0), "{then} again in {now}");
            assert_eq!(replayed(&recorded, now, "good day").await, (2, 1), "{then} again in {now}");
        }
    }
}
