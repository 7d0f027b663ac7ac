//! Whoever observes a client over HTTP hears whole messages, as over any other transport.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwire_client::{EraChoice, Observed};
use toolwire_http::client::Http;
use toolwire_protocol::Version;

use crate::{client_script::builder, fixture::Fixture};

#[tokio::test]
async fn both_eras_are_heard_message_by_message() {
    for (version, opening) in [
        (Version::V2025_11_25, &["> initialize", "< result", "> notifications/initialized"][..]),
        (Version::V2026_07_28, &["> server/discover", "< result"]),
    ] {
        let fixture = Fixture::start().await;
        let notes = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&notes);
        let observed = builder().era(EraChoice::Version(version)).observe(move |observed| {
            let (arrow, message) = match &observed {
                Observed::Sent(message) => (">", message),
                Observed::Received(message) => ("<", message),
                other => return heard.lock().unwrap().push(format!("{other:?}")),
            };
            let message: Value = serde_json::from_slice(message).unwrap();
            let what = message["method"].as_str().unwrap_or("result");
            heard.lock().unwrap().push(format!("{arrow} {what}"));
        });
        let http = Http::new(format!("http://{}/mcp", fixture.address)).unwrap();
        let client = observed.connect(http).await.unwrap();
        client.call("quick_steps", json!({})).progress(|_| {}).await.unwrap();
        client.close().await.unwrap();
        let call = ["> tools/call", "< notifications/progress", "< notifications/progress", "< result"];
        let expected: Vec<_> = opening.iter().chain(&call).copied().collect();
        let notes = notes.lock().unwrap();
        assert_eq!(notes[..expected.len()], expected, "{version}");
        assert!(notes[expected.len()..].iter().all(|note| note.starts_with("Closed")), "{notes:?}");
    }
}
