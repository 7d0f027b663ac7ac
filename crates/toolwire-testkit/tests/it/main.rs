//! Every feature of the server, in every revision that has it, over every link.

#![expect(clippy::unwrap_used, reason = "what does not hold here is a failed test")]

mod asking;
mod cancellation;
mod changes;
mod child;
mod client;
mod completion;
mod extractors;
#[cfg(feature = "http")]
mod guard;
mod hostile;
mod invariants;
mod layers;
mod lifecycle;
mod limits;
mod listen;
mod load;
mod logging;
mod pagination;
mod progress;
mod prompts;
mod replicas;
mod resources;
mod runtime;
mod schemas;
mod shutdown;
mod tasks;
mod tools;
mod transcripts;
#[cfg(all(unix, feature = "unix"))]
mod unix;

#[path = "../../examples/stdio_server/sample.rs"]
mod sample;

use std::{panic::Location, time::Duration};

use serde_json::Value;
use toolwire_protocol::Version;
use toolwire_server::Server;

/// The timeout for everything that a test expects to happen at once, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something that happens in another task, where no message tells of it.
#[track_caller]
fn until(condition: impl Fn() -> bool) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let happened = async {
            while !condition() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, happened).await;
        assert!(waited.is_ok(), "what was waited for at {caller} did not happen");
    }
}

/// The names (or URIs) of a list.
fn names(list: &Value, member: &str) -> Vec<String> {
    let items = list.as_array().unwrap_or_else(|| panic!("not a list: {list}"));
    items.iter().map(|item| item[member].as_str().unwrap_or_default().to_owned()).collect()
}

/// The text of a tool's result.
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {result}"))
}

/// Asserts that a member is there exactly from a version on.
#[track_caller]
fn assert_since(version: Version, since: Version, object: &Value, member: &str) {
    assert_eq!(object.get(member).is_some(), version >= since, "{member} in {version}: {object}");
}

/// A server without anything.
fn bare() -> Server {
    Server::builder("bare", "1.0").build().unwrap()
}
