//! Single requests, with everything that bounds them.

use std::time::Duration;

use serde_json::json;
use toolwire_http::client::fetch::{Fetch, FetchErrorKind, Fetcher};

use crate::{
    client_script::{Reply, Script, Step},
    port::Port,
};

fn fetcher() -> Fetcher {
    Fetcher::new().no_proxy()
}

#[tokio::test]
async fn an_answer_comes_with_status_headers_and_body() {
    let script =
        Script::start(|seen| Reply::json(418, &json!({ "saw": seen.verb })).header("x-kind", "tea")).await;
    let request = Fetch::post(&script.url(), "application/json", "{}").header("accept", "application/json");
    let fetched = fetcher().fetch(request).await.unwrap();
    assert_eq!((fetched.status.as_u16(), &fetched.body[..]), (418, &br#"{"saw":"POST"}"#[..]));
    assert_eq!(fetched.headers["x-kind"], "tea");
    assert_eq!(fetched.url, script.url());
    let seen = script.seen().pop().unwrap();
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert!(seen.header("user-agent").unwrap().starts_with("toolwire/"));
    assert_eq!(seen.header("accept-encoding"), None);
}

#[tokio::test]
async fn redirects_are_followed_as_often_as_the_request_says_and_within_the_origin() {
    let script = Script::start(|seen| match seen.path.split('?').next().unwrap() {
        "/a" => Reply::status(302).header("location", "/b"),
        "/b" => Reply::status(308).header("location", "/c"),
        "/away" => Reply::status(302).header("location", "http://elsewhere.invalid/"),
        "/loop" => Reply::status(307).header("location", "/loop"),
        _ => Reply::json(200, &json!({})),
    })
    .await;
    let at = |path: &str| Fetch::get(&format!("http://user:secret@{}{path}?key=secret", script.address));
    let fetched = fetcher().fetch(at("/a").redirects(2)).await.unwrap();
    assert_eq!((fetched.status.as_u16(), fetched.url), (200, format!("http://{}/c", script.address)));
    // Without being asked to, it follows nothing.
    assert_eq!(fetcher().fetch(at("/a")).await.unwrap().status.as_u16(), 302);
    assert_eq!(fetcher().fetch(at("/away").redirects(9)).await.unwrap().status.as_u16(), 302);
    let error = fetcher().fetch(at("/loop").redirects(3)).await.unwrap_err();
    assert_eq!(error.kind(), FetchErrorKind::Redirect);
    assert!(error.to_string().contains("more than 3 redirects"), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(!format!("{:?}", at("/a").header("x-key", "secret")).contains("secret"));
}

#[tokio::test]
async fn an_answer_is_bounded_or_its_beginning_is_taken() {
    let script = Script::start(|seen| match seen.path.as_str() {
        "/stream" => Reply::stream([Step::Send("data: 1\n\n".to_owned()), Step::UntilGone]),
        "/silent" => Reply::stream([Step::UntilGone]),
        "/chunks" => Reply::stream(vec![Step::Send("x".repeat(100)); 20]).header("x-kind", "none"),
        "/cut" => Reply::stream([Step::Send("x".repeat(100)), Step::Cut]),
        _ => Reply::json(200, &json!("x".repeat(2000))),
    })
    .await;
    let at = |path: &str| Fetch::get(&format!("http://{}{path}", script.address));
    for path in ["/", "/chunks"] {
        let error = fetcher().fetch(at(path).max_bytes(1999)).await.unwrap_err();
        assert_eq!(error.kind(), FetchErrorKind::TooLarge, "{path}");
        assert!(error.to_string().contains("limit of 1999 bytes"), "{error}");
    }
    assert_eq!(fetcher().fetch(at("/").max_bytes(2002)).await.unwrap().body.len(), 2002);
    assert_eq!(fetcher().fetch(at("/").first_bytes(10)).await.unwrap().body.len(), 10);
    assert_eq!(fetcher().fetch(at("/stream").first_bytes(4096)).await.unwrap().body, "data: 1\n\n");
    assert_eq!(fetcher().fetch(at("/silent").first_bytes(0)).await.unwrap().body, "");
    assert_eq!(fetcher().fetch(at("/cut")).await.unwrap_err().kind(), FetchErrorKind::Closed);
}

#[tokio::test]
async fn what_went_wrong_is_told_by_its_kind() {
    let port = Port::reserve();
    let gone = format!("http://user:secret@{}/x?key=secret", port.address());
    let hanging = Script::start(|_| Reply::hang()).await;
    let impatient = Fetch::get(&hanging.url()).timeout(Duration::from_millis(50));
    let forbidden = format!("http://{}/forbidden", hanging.address);
    let local = Fetch::get(&forbidden).only_to(|address| !address.is_loopback());
    for (request, kind) in [
        (Fetch::get(&gone), FetchErrorKind::Refused),
        (impatient, FetchErrorKind::Timeout),
        (local, FetchErrorKind::Forbidden),
        (Fetch::get("no url with a secret"), FetchErrorKind::Invalid),
        (Fetch::get("ftp://host/"), FetchErrorKind::Invalid),
        (Fetch::get(&gone).header("a b", "secret"), FetchErrorKind::Invalid),
    ] {
        let error = fetcher().fetch(request).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    // The request that timed out may have arrived, the forbidden one must not have.
    assert!(hanging.seen().iter().all(|seen| seen.path != "/forbidden"), "{:?}", hanging.seen());
}
