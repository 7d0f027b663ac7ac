//! Servers that are child processes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::time::timeout;
use toolwire_client::{ClientBuilder, Delivery, EraCache, EraChoice, ErrorKind, Reconnect};
use toolwire_transport::ChildProcess;

use crate::script::{PATIENCE, builder};

/// A server that answers the first message, reads the second, complains and dies.
const DIES: &str = r#"
read -r line
echo '{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}'
read -r line
echo 'cannot open /dev/full' >&2
echo 'giving up' >&2
exit 3
"#;

/// A server that does not survive what it does not know.
const OLD: &str = r#"
read -r line
case "$line" in
    *initialize*) ;;
    *) exit 1 ;;
esac
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"old","version":"0"}}}'
read -r line
read -r line
"#;

/// What servers on the SDK for Python 1.0 to 1.8 do: a request that they do not know is left unanswered and breaks the
/// conversation, so that whatever comes next ends the process.
const PYTHON: &str = r#"
asked=''
while read -r line; do
    case "$line" in
        *'"server/discover"'*) asked=yes; echo 'Failed to validate request' >&2 ;;
        *'"initialize"'*)
            if [ -n "$asked" ]; then echo 'Received request before initialization was complete' >&2; exit 1; fi
            echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"py","version":"1.8"}}}'
            ;;
    esac
done
"#;

fn shell(script: &str) -> ChildProcess {
    ChildProcess::command("sh").args(["-c", script]).exit_patience(PATIENCE)
}

/// A client that gives a server the time to start.
fn patient() -> ClientBuilder {
    builder().probe_timeout(PATIENCE)
}

#[tokio::test]
async fn a_server_that_dies_in_the_middle_of_a_call_leaves_its_last_words() {
    let client = patient().connect(|| std::future::ready(shell(DIES).spawn())).await.unwrap();
    let error = client.call("x", json!({})).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Closed, Delivery::Unknown));
    let text = format!("{error:?}");
    for part in ["exit code 3", "cannot open /dev/full", "giving up"] {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
}

#[tokio::test]
async fn a_server_that_dies_of_the_probe_is_started_again() {
    let again = || std::future::ready(shell(OLD).spawn());
    for client in [patient().connect(again).await.unwrap(), patient().connect(shell(OLD)).await.unwrap()] {
        assert_eq!(client.version().as_str(), "2024-11-05");
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_dies_after_an_unanswered_probe_is_started_again_and_remembered() {
    let eras = Arc::new(EraCache::new());
    let builder = || builder().probe_timeout(Duration::from_millis(200)).era_cache(Arc::clone(&eras));
    let client = builder().connect(shell(PYTHON)).await.unwrap();
    assert_eq!(client.server_info().unwrap().name, "py");
    assert!(client.dies_on_discover());
    client.close().await.unwrap();

    // The next start is quick: nothing is asked that would be waited for.
    let connecting = builder().probe_timeout(2 * PATIENCE).connect(shell(PYTHON));
    let client = timeout(PATIENCE, connecting).await.expect("it was asked").unwrap();
    assert!(client.dies_on_discover(), "and it is still known");
    client.close().await.unwrap();

    let client = builder().connect(shell(OLD)).await.unwrap();
    assert!(client.dies_on_discover());
    client.close().await.unwrap();
    let client = patient().era(EraChoice::Legacy).connect(shell(OLD)).await.unwrap();
    assert!(!client.dies_on_discover(), "it was not asked");
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_server_that_dies_of_everything_is_started_twice_and_not_more() {
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&starts);
    let start = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        std::future::ready(shell("read -r line; echo 'out of order' >&2; exit 1").spawn())
    };
    let error = patient().connect(start).await.unwrap_err();
    assert!(error.to_string().contains("out of order"), "{error}");
    assert!(!error.to_string().contains("starts it again"), "that has been tried: {error}");
    assert_eq!(starts.load(Ordering::Relaxed), 2);
}

/// A server that answers everything, and dies when it is told to.
const MORTAL: &str = r#"
while read -r line; do
    id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
    case "$line" in
        *'"die"'*) exit 7 ;;
        *'"server/discover"'*) result='{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}' ;;
        *) result='{"content":[{"type":"text","text":"alive"}]}' ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

#[tokio::test]
async fn a_child_that_dies_is_started_again_if_that_is_wanted() {
    let quick = Reconnect::default().first_pause(Duration::from_millis(5));
    let client = patient().reconnect(quick).connect(shell(MORTAL)).await.unwrap();
    for _ in 0..2 {
        assert_eq!(client.call("x", json!({})).await.unwrap().text(), "alive");
        let error = client.call("die", json!({})).await.unwrap_err();
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::Closed, Delivery::Unknown));
        assert!(error.to_string().contains("exit code 7"), "{error}");
    }
    assert_eq!(client.call("x", json!({})).await.unwrap().text(), "alive");
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_command_that_does_not_exist_says_so() {
    let spawn = || std::future::ready(ChildProcess::command("no-such-program-anywhere").spawn());
    let error = patient().connect(spawn).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(format!("{error:?}").contains("no-such-program-anywhere"), "{error:?}");
}

#[cfg(feature = "child")]
#[tokio::test]
async fn a_command_is_all_that_is_needed() {
    let client = patient().connect(shell(DIES)).await.unwrap();
    assert!(client.capabilities().tools.is_some());
    client.close().await.unwrap();
}
