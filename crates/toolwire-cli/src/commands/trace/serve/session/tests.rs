//! A client in front of a trace.

use std::path::Path;

use serde_json::{Value, json};
use toolwire::{
    Client, Server, Version,
    client::{Change, ClientBuilder, ElicitReply, EraChoice},
    memory,
    prelude::*,
    schemars,
};

use crate::{
    commands::trace::{Recorded, serve::recording::Recording},
    target::Address,
    terminal::Terminal,
    trace::Recorder,
};

#[derive(Deserialize, JsonSchema)]
struct Choice {
    colour: String,
}

fn server() -> Server {
    let choose = async |cx: Context| -> Result<String> {
        Ok(match cx.elicit::<Choice>("Which colour?").await? {
            Answer::Accept(choice) => format!("{} it is", choice.colour),
            _ => "none, then".to_owned(),
        })
    };
    let count = async |progress: Progress| {
        progress.report(1.0, 2.0);
        progress.report(2.0, 2.0);
        "counted"
    };
    let next = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(1));
    let number = move || {
        let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async move { number.to_string() }
    };
    let tools = Server::builder("real", "1.0");
    tools
        .tool(tool("choose", choose))
        .tool(tool("count", count))
        .tool(tool("number", number))
        .build()
        .unwrap()
}

fn builder(version: Version, colour: &'static str) -> ClientBuilder {
    Client::builder("test", "1.0")
        .era(EraChoice::Version(version))
        .on_elicit(move |_| async move { ElicitReply::accept(json!({ "colour": colour })) })
}

async fn texts(client: &Client) -> Vec<String> {
    let mut texts = Vec::new();
    for tool in ["number", "choose", "number", "count"] {
        texts.push(client.call(tool, json!({})).progress(|_| {}).await.unwrap().text());
    }
    texts
}

/// Records a conversation with the real server, and gives the trace.
async fn recorded(version: Version, file: &Path) -> Recorded {
    let address = Address::parse("http://real/").unwrap();
    let recorder = Recorder::create(file, "real", &address).unwrap();
    let (near, far) = memory::pair();
    tokio::spawn(async move { server().serve(far).await });
    let client =
        builder(version, "red").observe(recorder.listener("real", &address)).connect(near).await.unwrap();
    assert_eq!(texts(&client).await, ["1", "red it is", "2", "counted"]);
    client.close().await.unwrap();
    crate::commands::trace::read(file, Terminal { json: false, verbose: 0 }).unwrap()
}

#[tokio::test]
async fn a_client_cannot_tell_the_trace_from_the_server() {
    for version in [Version::V2025_06_18, Version::V2026_07_28] {
        let folder = tempfile::tempdir().unwrap();
        let recording = Recording::of(recorded(version, &folder.path().join("trace")).await);
        let (near, far) = memory::pair();
        let serving = tokio::spawn(super::serve(far, recording));
        let client = builder(version, "red").connect(near).await.unwrap();
        assert_eq!(client.server_info().unwrap().name, "real");
        assert_eq!(texts(&client).await, ["1", "red it is", "2", "counted"], "{version}");
        // The trace has two numbers; the last one is given again.
        assert_eq!(client.call("number", json!({})).await.unwrap().text(), "2");

        let steps = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = std::sync::Arc::clone(&steps);
        let counting = client.call("count", json!({}));
        counting.progress(move |step| seen.lock().unwrap().push(step.progress.as_f64())).await.unwrap();
        assert_eq!(*steps.lock().unwrap(), [1.0, 2.0]);

        let error = client.call("numbr", json!({})).await.unwrap_err();
        let rpc = error.rpc().unwrap();
        assert!(rpc.message.contains("tools/call number"), "{rpc:?}");
        let data: Value = rpc.data.as_ref().unwrap().decode().unwrap();
        assert_eq!(data["closest"][0], json!({ "name": "number" }));
        let error = client.raw().request("tasks/list", json!({})).await.unwrap_err();
        assert_eq!(error.rpc().unwrap().code, toolwire::ErrorCode::METHOD_NOT_FOUND);
        client.close().await.unwrap();
        serving.await.unwrap();
    }
}

#[tokio::test]
async fn another_answer_of_the_person_gets_the_recorded_end() {
    for version in [Version::V2025_11_25, Version::V2026_07_28] {
        let folder = tempfile::tempdir().unwrap();
        let recording = Recording::of(recorded(version, &folder.path().join("trace")).await);
        let (near, far) = memory::pair();
        tokio::spawn(super::serve(far, recording));
        let client = builder(version, "blue").connect(near).await.unwrap();
        assert_eq!(client.call("choose", json!({})).await.unwrap().text(), "red it is");
    }
}

#[tokio::test]
async fn a_subscription_is_told_what_was_told_then() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    let address = Address::parse("http://real/").unwrap();
    let recorder = Recorder::create(&file, "real", &address).unwrap();
    let (near, far) = memory::pair();
    let server = server();
    let host = server.clone();
    tokio::spawn(async move { host.serve(far).await });
    let observed = builder(Version::LATEST, "red").observe(recorder.listener("real", &address));
    let client = observed.connect(near).await.unwrap();
    let mut listener = client.listen().tools().await.unwrap();
    server.add_tool(tool("fresh", || async { "" })).unwrap();
    assert_eq!(listener.next().await, Some(Change::Tools));
    drop(listener);
    client.close().await.unwrap();

    let trace = crate::commands::trace::read(&file, Terminal { json: false, verbose: 0 }).unwrap();
    let (near, far) = memory::pair();
    tokio::spawn(super::serve(far, Recording::of(trace)));
    let client = builder(Version::LATEST, "red").connect(near).await.unwrap();
    // Another id than in the trace, so that marks which are not changed would not be recognised.
    client.raw().request("ping", json!({})).await.unwrap();
    let mut listener = client.listen().tools().await.unwrap();
    assert_eq!(listener.next().await, Some(Change::Tools));
}
