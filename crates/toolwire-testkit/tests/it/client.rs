//! The features of the server through Toolwire's own client, in every revision.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwire_client::{Change, Client, Delivery, EndReason, ErrorKind};
use toolwire_protocol::{
    ErrorCode, Version,
    wire::{
        CacheHint, CacheScope, CompletionReference, LoggingLevel, PromptReference, ResourceTemplateReference,
    },
};
use toolwire_server::{Json, Server, prompt, resource, tool};
use toolwire_testkit::{FakeClock, Matrix, Setup, each_client};

use crate::{PATIENCE, bare, sample};

fn server() -> Server {
    sample::server().unwrap()
}

#[tokio::test]
async fn learns_who_the_server_is() {
    each_client(async |setup| {
        let client = setup.client(&server()).await;
        assert_eq!(client.version(), setup.version);
        assert_eq!(client.server_info().unwrap().name, "sample");
        assert_eq!(client.instructions(), Some("Try everything."));
        assert!(client.capabilities().tools.is_some() && client.capabilities().logging.is_some());
    })
    .await;
}

#[tokio::test]
async fn typed_results_are_the_same_in_every_revision() {
    let object = || BTreeMap::from([("result", 7)]);
    let server = Server::builder("typed", "1.0")
        .tool(tool("list", || async { Json(vec![1, 2]) }))
        .tool(tool("number", || async { Json(7) }))
        .tool(tool("object", move || async move { Json(object()) }));
    let server = server.build().unwrap();
    each_client(async |setup| {
        let client = setup.client(&server).await;
        let call = async |name: &str| client.call(name, json!({})).await.unwrap();
        assert_eq!(call("list").await.json::<Vec<i64>>().unwrap(), [1, 2]);
        assert_eq!(call("number").await.json::<i64>().unwrap(), 7);
        // A type that fits the wrapper as well needs the mark in the output schema.
        client.all_tools().await.unwrap();
        assert_eq!(call("list").await.json::<Value>().unwrap(), json!([1, 2]));
        assert_eq!(call("number").await.json::<Value>().unwrap(), json!(7));
        assert_eq!(call("object").await.json::<Value>().unwrap(), json!({"result": 7}));
    })
    .await;
}

#[tokio::test]
async fn finds_the_newest_version_by_itself() {
    each_client(async |setup| {
        let server =
            Server::builder("one", "1.0").versions([setup.version]).tool(tool("a", || async { "b" }));
        let server = server.build().unwrap();
        let client = setup.connect(&server, Client::builder("test", "1")).await.unwrap();
        assert_eq!(client.version(), setup.version);
        assert_eq!(client.call("a", json!({})).await.unwrap().text(), "b");
    })
    .await;
    let latest = Matrix::clients().since(Version::LATEST);
    latest
        .run(async |setup| {
            let client = setup.connect(&bare(), Client::builder("test", "1")).await.unwrap();
            assert_eq!(client.version(), Version::LATEST);
        })
        .await;
}

#[tokio::test]
async fn without_a_common_version_says_so() {
    each_client(async |setup| {
        let others = Version::ALL.into_iter().filter(|version| *version != setup.version);
        let server = Server::builder("others", "1.0").versions(others).build().unwrap();
        let builder = Client::builder("test", "1").era(toolwire_client::EraChoice::Version(setup.version));
        let error = setup.connect(&server, builder).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoCommonVersion, "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn calls_tools() {
    each_client(async |setup| {
        let client = setup.client(&server()).await;
        let names: Vec<_> = client.all_tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["add", "count", "fail", "hang"]);
        let sum = client.call("add", json!({ "a": 1, "b": 2 })).await.unwrap();
        assert_eq!(sum.json::<Value>().unwrap(), json!({ "total": 3 }));
        assert_eq!(sum.structured().is_some(), setup.version >= Version::V2025_06_18);
        let failed = client.call("fail", json!({})).await.unwrap();
        assert_eq!((failed.is_error(), failed.text().as_str()), (true, "it did not work"));
        let wrong = client.call("add", json!({ "a": "one", "b": 2 })).await.unwrap();
        assert!(wrong.is_error() && wrong.text().contains("/a"), "{}", wrong.text());
        let error = client.call("unknown", json!({})).await.unwrap_err();
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::Rpc, Delivery::Rejected));
        assert_eq!(error.rpc().unwrap().code, ErrorCode::INVALID_PARAMS);
    })
    .await;
}

#[tokio::test]
async fn reads_resources_and_gets_prompts() {
    each_client(async |setup| {
        let client = setup.client(&server()).await;
        assert_eq!(client.all_resources().await.unwrap().len(), 1);
        assert_eq!(client.all_resource_templates().await.unwrap().len(), 1);
        let page = client.read("book://7").await.unwrap();
        assert_eq!(page.contents.len(), 1);
        assert_eq!(page.contents[0].uri(), "book://7");
        let error = client.read("book://300").await.unwrap_err();
        let code = if setup.version.is_modern() { -32602 } else { -32002 };
        assert_eq!(error.rpc().unwrap().code, ErrorCode(code));

        let prompts = client.all_prompts().await.unwrap();
        assert_eq!(prompts[0].name, "review");
        let arguments = json!({ "language": "rust", "lines": "3" });
        let review = client.get_prompt("review", arguments).await.unwrap();
        assert_eq!(review.messages[0].content.as_text(), Some("Review 3 lines of rust."));
        let error = client.get_prompt("review", json!({})).await.unwrap_err();
        assert_eq!(error.rpc().unwrap().code, ErrorCode::INVALID_PARAMS);
    })
    .await;
}

#[tokio::test]
async fn completes() {
    each_client(async |setup| {
        let client = setup.client(&server()).await;
        let review = CompletionReference::Prompt(PromptReference::new("review"));
        let completed = client.complete(review, "language", "ru").await.unwrap();
        assert_eq!(completed.completion.values, ["rust", "ruby"]);
        let page = CompletionReference::Resource(ResourceTemplateReference::new("book://{number}"));
        let completed = client.complete(page, "number", "1").await.unwrap();
        assert_eq!(completed.completion.values, ["1", "10"]);
    })
    .await;
}

#[tokio::test]
async fn hears_progress_and_logs() {
    each_client(async |setup| {
        let (steps, logs) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let heard = Arc::clone(&logs);
        let client = setup
            .client_with(&server(), |builder| {
                builder.log_level(LoggingLevel::Info).on_log(move |_| *heard.lock().unwrap() += 1)
            })
            .await;
        let seen = Arc::clone(&steps);
        let call = client.call("count", json!({})).progress(move |step| {
            seen.lock().unwrap().push(step.progress.as_f64());
        });
        assert_eq!(call.await.unwrap().text(), "counted");
        let steps = steps.lock().unwrap().clone();
        assert!(steps.is_sorted_by(|a, b| a < b) && steps.last() == Some(&3.0), "{steps:?}");
        assert_eq!(*logs.lock().unwrap(), 3);
    })
    .await;
}

/// Tells when the handler it belongs to is dropped.
struct Guard(Arc<Semaphore>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

fn hanging() -> (Server, Arc<Semaphore>, Arc<Semaphore>) {
    let (started, dropped) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (start, drops) = (Arc::clone(&started), Arc::clone(&dropped));
    let hang = move || {
        let (start, guard) = (Arc::clone(&start), Guard(Arc::clone(&drops)));
        async move {
            start.add_permits(1);
            std::future::pending::<()>().await;
            drop(guard);
        }
    };
    (Server::builder("hanging", "1.0").tool(tool("hang", hang)).build().unwrap(), started, dropped)
}

#[tokio::test]
async fn cancels_a_call_that_is_dropped() {
    each_client(async |setup| {
        let (server, started, dropped) = hanging();
        let client = setup.client(&server).await;
        let call = client.call("hang", json!({})).into_future();
        tokio::select! {
            outcome = call => panic!("{outcome:?}"),
            permit = started.acquire() => permit.unwrap().forget(),
        }
        let gone = tokio::time::timeout(PATIENCE, dropped.acquire());
        gone.await.expect("the handler still runs").unwrap().forget();
    })
    .await;
}

#[tokio::test]
async fn gives_up_and_cancels_when_the_server_takes_too_long() {
    each_client(async |setup| {
        let (server, started, dropped) = hanging();
        let client = setup.client(&server).await;
        let before = tokio::time::Instant::now();
        let call = client.call("hang", json!({})).timeout(Duration::from_secs(7)).into_future();
        let call = tokio::spawn(call);
        started.acquire().await.unwrap().forget();
        // Not before, because a socket takes its time.
        tokio::time::pause();
        let error = call.await.unwrap().unwrap_err();
        let took = before.elapsed();
        tokio::time::resume();
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::Timeout, Delivery::Unknown));
        // The part before the pause may have taken longer than usual.
        assert!((7..25).contains(&took.as_secs()), "{took:?}");
        dropped.acquire().await.unwrap().forget();
    })
    .await;
}

#[tokio::test]
async fn refuses_what_the_version_or_the_server_does_not_have() {
    each_client(async |setup| {
        let client = setup.client(&bare()).await;
        let error = client.list_tools().await.unwrap_err();
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::NotAdvertised, Delivery::NotSent));
        let modern = setup.version.is_modern();
        assert_eq!(client.ping().await.is_ok(), !modern);
        assert_eq!(client.roots_changed().await.is_ok(), !modern);
        assert_eq!(client.discover().await.is_ok(), modern);
        let foreign = if modern { client.ping().await.err() } else { client.discover().await.err() };
        assert_eq!(foreign.unwrap().kind(), ErrorKind::NotInThisVersion);
        let client = setup.client(&server()).await;
        assert_eq!(client.set_log_level(LoggingLevel::Debug).await.is_ok(), !modern);
    })
    .await;
}

#[tokio::test]
async fn listens_to_changes_in_both_eras() {
    each_client(async |setup| {
        let server = Server::builder("changes", "1.0")
            .tool(tool("a", || async { "" }))
            .prompt(prompt("a", || async { "" }))
            .resource(resource("r://a", || async { "" }))
            .build()
            .unwrap();
        let client = setup.client(&server).await;
        let mut changes = client.listen().tools().resource("r://a").relisten(false).await.unwrap();
        server.notify().prompts_changed();
        server.notify().resource_updated("r://b");
        server.notify().resource_updated("r://a");
        assert_eq!(changes.next().await, Some(Change::Updated("r://a".to_owned())));
        server.add_tool(tool("b", || async { "" })).unwrap();
        assert_eq!(changes.next().await, Some(Change::Tools));
        // A session over Streamable HTTP has no connection that could end: the client waits long for another server.
        let sessions = Version::V2025_03_26..=Version::V2025_11_25;
        if sessions.contains(&setup.version) && !setup.link.is_duplex() {
            return;
        }
        server.shutdown();
        let end = changes.next().await;
        if setup.version.is_modern() {
            assert_eq!(end, Some(Change::Ended(EndReason::Graceful)));
        } else {
            assert!(matches!(end, Some(Change::Ended(_))), "{end:?}");
        }
        assert_eq!(changes.next().await, None);
    })
    .await;
}

#[tokio::test]
async fn hears_of_parts_of_what_it_listens_to() {
    each_client(async |setup| {
        let server =
            Server::builder("parts", "1.0").resource(resource("r://a", || async { "" })).build().unwrap();
        let client = setup.client(&server).await;
        let mut changes = client.listen().resource("r://a").await.unwrap();
        for part in ["r://a/b", "r://a#b"] {
            server.notify().resource_updated("r://ab");
            server.notify().resource_updated(part);
            let change = tokio::time::timeout(PATIENCE, changes.next()).await;
            assert_eq!(change.expect("nothing was heard"), Some(Change::Updated(part.to_owned())));
        }
    })
    .await;
}

#[tokio::test]
async fn keeps_answers_as_long_as_the_server_allows() {
    Matrix::clients()
        .run(async |setup: Setup| {
            let reads = Arc::new(AtomicUsize::new(0));
            let calls = Arc::clone(&reads);
            let counted = move || {
                let number = calls.fetch_add(1, Ordering::SeqCst);
                async move {
                    let contents =
                        toolwire_protocol::wire::ResourceContents::text("r://a", number.to_string());
                    toolwire_protocol::wire::ReadResourceResult::new(vec![contents])
                        .cached(CacheHint { ttl_ms: 60_000, scope: CacheScope::Private })
                }
            };
            let server =
                Server::builder("cached", "1.0").resource(resource("r://a", counted)).build().unwrap();
            let clock = FakeClock::new();
            let time = clock.clone();
            let client = setup.client_with(&server, |builder| builder.clock(time)).await;
            let modern = setup.version.is_modern();
            for _ in 0..3 {
                client.read("r://a").await.unwrap();
            }
            assert_eq!(reads.load(Ordering::SeqCst), if modern { 1 } else { 3 });
            if modern {
                clock.advance(Duration::from_secs(61));
                client.read("r://a").await.unwrap();
                assert_eq!(reads.load(Ordering::SeqCst), 2);
                client.read("r://a").fresh().await.unwrap();
                assert_eq!(reads.load(Ordering::SeqCst), 3);
            }
        })
        .await;
}

#[tokio::test]
async fn speaks_methods_of_its_own() {
    let method =
        |cx: toolwire_server::Context| async move { cx.decode::<Value>().map(|_| json!({ "up": true })) };
    let server = Server::builder("own", "1.0").method("com.example/status", method).build().unwrap();
    each_client(async |setup| {
        let client = setup.client(&server).await;
        let status = client.raw().request("com.example/status", json!({})).await.unwrap();
        assert_eq!(status.decode::<Value>().unwrap()["up"], true);
        let error = client.raw().request("com.example/other", json!({})).await.unwrap_err();
        assert_eq!(error.rpc().unwrap().code, ErrorCode::METHOD_NOT_FOUND);
    })
    .await;
}

#[tokio::test]
async fn makes_many_calls_at_once() {
    let server = server();
    each_client(async |setup| {
        let client = setup.client(&server).await;
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..500_i64 {
            let call = client.call("add", json!({ "a": number, "b": 1 }));
            calls.spawn(async move { (number, call.await.unwrap().json::<Value>().unwrap()) });
        }
        while let Some(done) = calls.join_next().await {
            let (number, total) = done.unwrap();
            assert_eq!(total, json!({ "total": number + 1 }));
        }
    })
    .await;
}

#[tokio::test]
async fn says_that_the_connection_is_gone() {
    each_client(async |setup| {
        let client = setup.client(&server()).await;
        client.clone().close().await.unwrap();
        let error = client.call("add", json!({ "a": 1, "b": 2 })).await.unwrap_err();
        assert!(error.is_closed(), "{error:?}");
        assert_eq!(error.delivery(), Delivery::NotSent);
    })
    .await;
}
