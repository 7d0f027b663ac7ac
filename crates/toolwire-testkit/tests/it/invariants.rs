//! The invariants of ARCHITECTURE.md that show at run time, in every revision and over every link. Its list names the
//! tests, and the check of the documents wants each of them to be there.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use tokio::sync::Semaphore;
use toolwire_server::{Args, Context, Json, Server, tool};
use toolwire_testkit::each;

use crate::text;

static DECODED: AtomicUsize = AtomicUsize::new(0);
static SERIALISED: AtomicUsize = AtomicUsize::new(0);

/// Counts how often it is decoded.
#[derive(JsonSchema)]
struct Counted {
    #[expect(dead_code, reason = "only the schema looks at it")]
    text: String,
}

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Members {
            text: String,
        }
        DECODED.fetch_add(1, Ordering::SeqCst);
        Members::deserialize(deserializer).map(|members| Self { text: members.text })
    }
}

/// Counts how often it is serialised.
#[derive(JsonSchema)]
struct Answered {
    #[expect(dead_code, reason = "only the schema looks at it")]
    number: u8,
}

impl Serialize for Answered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        SERIALISED.fetch_add(1, Ordering::SeqCst);
        let mut members = serializer.serialize_struct("Answered", 1)?;
        members.serialize_field("number", &7)?;
        members.end()
    }
}

#[tokio::test]
async fn parameters_are_not_decoded_before_an_extractor_asks_for_them_and_then_once() {
    let server = Server::builder("decoding", "1.0")
        .tool(tool("ignores", |_: Context| async { "nothing was read" }))
        .tool(tool("reads", |_: Args<Counted>| async { "read" }))
        .build()
        .unwrap();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        for (name, times) in [("ignores", 0), ("reads", 1)] {
            let before = DECODED.load(Ordering::SeqCst);
            let call = json!({ "name": name, "arguments": { "text": "x" } });
            assert!(!wire.request("tools/call", call).await.is_error());
            assert_eq!(DECODED.load(Ordering::SeqCst) - before, times, "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn results_are_serialised_once() {
    let server = Server::builder("encoding", "1.0")
        .tool(tool("seven", || async { Json(Answered { number: 7 }) }))
        .build()
        .unwrap();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        let before = SERIALISED.load(Ordering::SeqCst);
        let reply = wire.request("tools/call", json!({ "name": "seven" })).await;
        assert!(text(reply.result()).contains('7'), "{:?}", reply.message());
        assert_eq!(SERIALISED.load(Ordering::SeqCst) - before, 1);
    })
    .await;
}

#[tokio::test]
async fn nothing_is_sent_for_a_request_after_its_answer() {
    let (answered, told) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let server = Server::builder("late", "1.0")
        .tool(tool("leaves_work_behind", {
            let (answered, told) = (Arc::clone(&answered), Arc::clone(&told));
            move |cx: Context| {
                let (answered, told) = (Arc::clone(&answered), Arc::clone(&told));
                async move {
                    tokio::spawn(async move {
                        // The answer ends the request, whoever still holds on to it.
                        answered.acquire().await.unwrap().forget();
                        cx.progress().report(1.0, None);
                        cx.log().info("too late");
                        told.add_permits(1);
                    });
                    "answered"
                }
            }
        }))
        .build()
        .unwrap();
    each(async |setup| {
        let mut wire = setup.wire_with(&server, |wire| wire.log_level("debug")).await;
        let call = json!({ "name": "leaves_work_behind", "_meta": { "progressToken": "t" } });
        assert_eq!(text(wire.request("tools/call", call).await.result()), "answered");
        answered.add_permits(1);
        told.acquire().await.unwrap().forget();
        wire.expect_silence().await;
    })
    .await;
}

#[tokio::test]
async fn a_handler_that_panics_hangs_or_is_cancelled_disturbs_nobody_else() {
    let started = Arc::new(Semaphore::new(0));
    let server = Server::builder("handlers", "1.0")
        .tool(tool("panics", || async { if true { panic!("on purpose") } else { "never" } }))
        .tool(tool("hangs", {
            let started = Arc::clone(&started);
            move || {
                let started = Arc::clone(&started);
                async move {
                    started.add_permits(1);
                    std::future::pending::<&str>().await
                }
            }
        }))
        .tool(tool("works", || async { "works" }))
        .build()
        .unwrap();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        let _hanging = wire.start("tools/call", json!({ "name": "hangs" })).await;
        let cancelled = wire.start("tools/call", json!({ "name": "hangs" })).await;
        started.acquire_many(2).await.unwrap().forget();
        wire.cancel(cancelled).await;
        let panicked = wire.request("tools/call", json!({ "name": "panics" })).await;
        assert!(panicked.is_error() || panicked.result()["isError"] == true, "{:?}", panicked.message());
        assert_eq!(text(wire.request("tools/call", json!({ "name": "works" })).await.result()), "works");
    })
    .await;
}
