//! Messages through every transport of the crate.

#![expect(clippy::unwrap_used, reason = "what does not hold here is a failed test")]

mod lines;
mod memory;
mod pump;

#[cfg(all(unix, feature = "child"))]
mod child;
#[cfg(all(unix, feature = "child"))]
mod child_end;
#[cfg(all(unix, feature = "child", feature = "stdio"))]
mod stdio;
#[cfg(all(unix, feature = "unix"))]
mod unix;

#[cfg(all(unix, feature = "child"))]
use std::time::Duration;

use bytes::Bytes;
use toolwire_transport::{Sink, Source};

/// The timeout for everything that a test expects to happen at once, even on a busy machine.
#[cfg(all(unix, feature = "child"))]
const PATIENCE: Duration = Duration::from_secs(60);

/// The n-th of many large messages, different from all others.
fn large(number: usize) -> Bytes {
    Bytes::from(format!("{{\"n\":{number},\"fill\":\"{}\"}}", "x".repeat(64 * 1024)))
}

const MANY: usize = 200;

async fn send_many(mut sink: impl Sink) -> std::io::Result<()> {
    for number in 0..MANY {
        sink.send(large(number)).await?;
    }
    sink.flush().await?;
    sink.close().await
}

async fn receive_many(mut source: impl Source) {
    for number in 0..MANY {
        let message = source.receive().await.unwrap().unwrap();
        assert!(message == large(number), "message {number} differs");
    }
    assert!(source.receive().await.unwrap().is_none());
}
