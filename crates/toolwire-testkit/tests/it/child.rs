//! The same server in this process and in one of its own.

use std::path::PathBuf;

use serde_json::{Value, json};
use toolwire_testkit::{Link, Matrix, Program, Setup};

use crate::{names, sample, text};

/// Where an example of this crate was built to.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is missing: build the examples first", path.display());
    path
}

fn program() -> Program {
    Program::new(example("stdio_server"))
}

#[tokio::test]
async fn a_server_answers_the_same_over_every_link() {
    let server = sample::server().unwrap();
    Matrix::new()
        .program(program())
        .run(async |setup: Setup| {
            let mut wire = setup.wire(&server).await;
            let reply = wire.request("tools/list", Value::Null).await;
            assert_eq!(names(&reply.result()["tools"], "name"), ["add", "count", "fail"]);
            let call = json!({ "name": "add", "arguments": { "a": 1, "b": 2 } });
            assert_eq!(text(wire.request("tools/call", call).await.result()), "{\"total\":3}");
            let hanging = wire.start("tools/call", json!({ "name": "hang" })).await;
            wire.cancel(hanging).await;
            wire.expect_silence().await;
            wire.send_raw("nonsense").await;
            assert_eq!(wire.next().await["error"]["code"], -32700);
            assert_eq!(wire.close().await, Vec::<Value>::new());
        })
        .await;
}

#[tokio::test]
async fn a_client_gets_the_same_over_every_link() {
    let server = sample::server().unwrap();
    Matrix::new()
        .program(program())
        .run(async |setup: Setup| {
            let client = setup.client(&server).await;
            assert_eq!(client.instructions(), Some("Try everything."));
            let sum = client.call("add", json!({ "a": 20, "b": 22 })).await.unwrap();
            assert_eq!(sum.json::<Value>().unwrap(), json!({ "total": 42 }));
            client.close().await.unwrap();
        })
        .await;
}

#[test]
fn a_program_is_one_more_link() {
    let matrix = Matrix::new().program(program());
    assert_eq!(matrix.setups().len(), 15);
    assert_eq!(matrix.setups().last().unwrap().link, Link::Child);
}

#[tokio::test]
#[should_panic(expected = "in 2026-07-28 over a pipe: two is not three")]
async fn a_failure_names_its_setup() {
    let body = async |setup: Setup| {
        let last = setup.version.is_modern() && setup.link == Link::Pipe;
        assert!(!last, "two is not three");
    };
    Matrix::new().run(body).await;
}
