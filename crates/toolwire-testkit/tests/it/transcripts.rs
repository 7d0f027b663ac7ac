//! The conversations in `tests/transcripts`: one file for each rule, or for each bug there was.

use std::{fs, path::Path};

use schemars::JsonSchema;
use serde::Deserialize;
use toolwire_server::{Args, Server, tool};
use toolwire_testkit::replay;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

/// What every transcript talks to.
fn server() -> Server {
    Server::builder("transcripts", "1.0")
        .tool(tool("echo", |Args(echo): Args<Echo>| async move { echo.text }))
        .tool(tool("hang", || async {
            std::future::pending::<()>().await;
            "never"
        }))
        .build()
        .unwrap()
}

#[tokio::test]
async fn all_are_followed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 20, "transcripts are missing: {paths:?}");
    for path in paths {
        println!("{}", path.file_name().unwrap_or_default().display());
        replay(&server(), &fs::read_to_string(&path).unwrap()).await;
    }
}

#[tokio::test]
#[should_panic(expected = "line 3: /result: \"extra\" is missing")]
async fn a_different_answer_is_noticed() {
    let transcript = "\
        # comment\n\
        -> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\
        <- {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"extra\":1}}\n";
    replay(&server(), transcript).await;
}

#[tokio::test]
#[should_panic(expected = "the server says more than the transcript has")]
async fn an_answer_too_many_is_noticed() {
    replay(&server(), "-> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}").await;
}
