//! Finding out what a server speaks, and telling apart what says nothing about it.

use serde_json::json;
use toolwire_client::{Client, Delivery, Error, ErrorKind};
use toolwire_http::client::{Http, HttpLimits};
use toolwire_protocol::Version;

use crate::{
    client_script::{Reply, Script, Seen, builder, discovered, legacy},
    port::Port,
};

async fn fail(script: &Script) -> Error {
    builder().connect(script.http()).await.unwrap_err()
}

#[tokio::test]
async fn a_modern_server_is_found_by_the_first_request() {
    let script = Script::start(discovered).await;
    let client = script.connect().await;
    assert_eq!(client.version(), Version::V2026_07_28);
    let seen = script.seen().pop().unwrap();
    assert_eq!((seen.verb.as_str(), seen.path.as_str(), seen.method()), ("POST", "/mcp", "server/discover"));
    assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(seen.header("mcp-method"), Some("server/discover"));
    assert_eq!(seen.header("mcp-name"), None);
    assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("accept-encoding"), None);
    client.close().await.unwrap();
    assert_eq!(script.story(), ["server/discover"]);
}

#[tokio::test]
async fn whatever_a_legacy_server_makes_of_it_initialize_follows() {
    let answers: [fn(&Seen) -> Reply; 6] = [
        |seen| Reply::json(200, &seen.error(-32601, "what?")),
        |seen| Reply::json(400, &seen.error(-32000, "no session")),
        |_| Reply::status(404),
        |_| Reply::status(405),
        |_| Reply::status(202),
        |_| Reply::status(200).header("content-type", "text/html"),
    ];
    for answer in answers {
        let script = Script::start(move |seen| match seen.what() {
            "server/discover" => answer(seen),
            _ => legacy(seen, "2025-11-25", "s"),
        })
        .await;
        let client = script.connect().await;
        assert_eq!(client.version(), Version::V2025_11_25);
        assert_eq!(
            script.story().get(..3).unwrap(),
            ["server/discover", "initialize", "notifications/initialized"]
        );
    }
}

#[tokio::test]
async fn what_says_nothing_about_the_era_is_told_as_it_is() {
    for status in [401, 403, 407, 408, 425, 429, 500, 502, 503] {
        let script = Script::start(move |_| Reply::status(status)).await;
        let error = fail(&script).await;
        assert_eq!(error.kind(), ErrorKind::Connect, "{status}: {error}");
        assert!(error.to_string().contains(&status.to_string()), "{error}");
        assert_eq!(script.story(), ["server/discover"], "{status}");
    }
}

#[tokio::test]
async fn missing_credentials_are_told_with_the_challenge() {
    let challenge = r#"Bearer resource_metadata="https://host/.well-known/oauth-protected-resource""#;
    let script = Script::start(move |seen| {
        Reply::json(401, &seen.error(-32000, "go away")).header("www-authenticate", challenge)
    })
    .await;
    let error = fail(&script).await;
    assert!(error.to_string().contains(challenge), "{error}");
    assert!(error.to_string().contains("go away"), "{error}");
    assert_eq!(error.delivery(), Delivery::Rejected);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_without_its_password() {
    let port = Port::reserve();
    let address = port.address();
    let http = Http::new(format!("http://user:secret@{address}/mcp?key=secret")).unwrap();
    let error = builder().connect(http).await.unwrap_err();
    let text = format!("{error:?}");
    assert!(text.contains(&format!("http://{address}/mcp cannot be reached")), "{text}");
    assert!(text.contains("is the server running") && !text.contains("secret"), "{text}");
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Connect, Delivery::NotSent));
}

#[tokio::test]
async fn redirects_are_followed_within_the_origin_only() {
    for status in [301, 302, 307, 308] {
        let script = Script::start(move |seen| match seen.path.as_str() {
            "/mcp" => Reply::status(status).header("location", "/mcp/"),
            _ => discovered(seen),
        })
        .await;
        let http = Http::builder(script.url()).bearer("token").build().unwrap();
        let client = Client::builder("test", "1").connect(http).await.unwrap();
        assert!(client.version().is_modern());
        let seen = script.seen().pop().unwrap();
        assert_eq!((seen.verb.as_str(), seen.path.as_str()), ("POST", "/mcp/"), "{status}");
        assert_eq!(seen.header("authorization"), Some("Bearer token"));
        assert_eq!(seen.method(), "server/discover", "the body is sent again as well");
    }
    let elsewhere = Script::start(discovered).await;
    let location = elsewhere.url();
    let script = Script::start(move |_| Reply::status(307).header("location", location.clone())).await;
    let error = fail(&script).await;
    assert!(error.to_string().contains("redirect that is not followed"), "{error}");
    assert!(error.to_string().contains("which is not the same origin"), "{error}");
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn redirects_in_a_circle_come_to_an_end() {
    let script = Script::start(|_| Reply::status(307).header("location", "/mcp")).await;
    let limits = HttpLimits { redirects: 3, ..HttpLimits::default() };
    let http = Http::builder(script.url()).limits(limits).build().unwrap();
    let error = builder().era(toolwire_client::EraChoice::Modern).connect(http).await.unwrap_err();
    assert!(format!("{error:?}").contains("more than 3 times"), "{error:?}");
    assert_eq!(script.seen().len(), 4);
}

#[tokio::test]
async fn custom_headers_and_credentials_are_sent_with_everything() {
    let script = Script::start(|seen| legacy(seen, "2025-06-18", "s")).await;
    let http = Http::builder(script.url().replace("http://", "http://user:pass@"))
        .header("X-Team", "blue")
        .build()
        .unwrap();
    let client = builder().connect(http).await.unwrap();
    script.wait_for("GET", 1).await;
    client.close().await.unwrap();
    // The client does not wait long for its answer.
    script.wait_for("DELETE", 1).await;
    assert_eq!(script.story().last().unwrap(), "DELETE");
    for seen in script.seen() {
        assert_eq!(seen.header("x-team"), Some("blue"), "{seen:?}");
        assert_eq!(seen.header("authorization"), Some("Basic dXNlcjpwYXNz"), "{seen:?}");
        assert!(seen.header("user-agent").unwrap().starts_with("toolwire/"));
    }
}

#[tokio::test]
async fn a_server_may_be_asked_again_in_another_version() {
    let script = Script::start(|seen| {
        if seen.header("mcp-protocol-version").is_none() {
            return legacy(seen, "2025-11-25", "");
        }
        let mut error = seen.error(-32022, "not this one");
        error["error"]["data"] = json!({ "supported": ["2025-11-25"], "requested": "2026-07-28" });
        Reply::json(400, &error)
    })
    .await;
    let http = script.http();
    let error = builder().era(toolwire_client::EraChoice::Modern).connect(http).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoCommonVersion);
}
