//! Calls that are made at the same time are written in one go.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use serde_json::json;
use toolwire_transport::{
    Duplex, Sink,
    memory::{Memory, MemorySink, MemorySource},
};

use crate::script::{Script, builder, text};

/// A connection that counts how often something is written to it.
struct Counted(Memory, Arc<AtomicUsize>);

struct CountedSink(MemorySink, Arc<AtomicUsize>);

impl Duplex for Counted {
    type Source = MemorySource;
    type Sink = CountedSink;

    fn split(self) -> (MemorySource, CountedSink) {
        let (source, sink) = self.0.split();
        (source, CountedSink(sink, self.1))
    }
}

impl Sink for CountedSink {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        self.0.send(message).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.flush().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.close().await
    }
}

const CALLERS: usize = 16;

/// With one worker, everything happens in an order that does not change.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn answers_that_come_together_are_followed_by_calls_that_go_together() {
    let test = tokio::spawn(async {
        let (end, mut script) = Script::pair();
        let written = Arc::new(AtomicUsize::new(0));
        let connecting = builder().connect(Counted(end, Arc::clone(&written)));
        let (client, ()) = tokio::join!(connecting, script.discovered());
        let client = client.unwrap();
        let mut callers = Vec::new();
        for _ in 0..CALLERS {
            let client = client.clone();
            callers.push(tokio::spawn(async move {
                client.call("first", json!({})).await.unwrap();
                client.call("second", json!({})).await.unwrap();
            }));
        }
        for round in ["first", "second"] {
            let mut requests = Vec::new();
            for _ in 0..CALLERS {
                let request = script.expect("tools/call").await;
                assert_eq!(request["params"]["name"], round);
                requests.push(request);
            }
            let times = written.swap(0, Ordering::Relaxed);
            // How the first ones get together depends on how tasks begin.
            assert!(round == "first" || times <= CALLERS / 4, "written {times} times");
            for request in &requests {
                script.reply(request, text("")).await;
            }
        }
        for caller in callers {
            caller.await.unwrap();
        }
    });
    test.await.unwrap();
}
