use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use url::Url;

use super::*;
use crate::Endpoint;
use crate::fetch::Zone;

/// Answers everything with the same bytes, and counts connections.
async fn server(answer: impl Into<Vec<u8>>) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (connections, answer) = (Arc::new(AtomicUsize::new(0)), Arc::new(answer.into()));
    let counter = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            let answer: Arc<Vec<u8>> = Arc::clone(&answer);
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while !seen.windows(4).any(|end| end == b"\r\n\r\n") {
                    if stream.read_buf(&mut seen).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                let _ = stream.write_all(&answer).await;
                // The client closes it.
                while stream.read_buf(&mut seen).await.unwrap_or(0) > 0 {}
            });
        }
    });
    (port, connections)
}

fn url(text: &str) -> Endpoint {
    Endpoint::parse(text).unwrap()
}

fn reach(text: &str) -> Reach {
    Reach::of(&Url::parse(text).unwrap())
}

const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";

#[tokio::test]
async fn what_a_public_server_names_inside_is_never_connected_to() {
    let (port, connections) = server(FINE).await;
    let guarded = Guarded::new();
    let hosts = [
        "127.0.0.1",
        "localhost",
        "a.localhost",
        "0177.0.0.1",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "10.0.0.1",
    ];
    for host in hosts {
        for scheme in ["http", "https"] {
            // Some of them are not even endpoints.
            let Ok(target) = Endpoint::parse(&format!("{scheme}://{host}:{port}/latest")) else {
                assert_eq!(scheme, "http");
                continue;
            };
            let reach = reach("https://mcp.example/mcp");
            let request = Request::get(target.clone(), NamedBy::Peer);
            let error = guarded.fetch(request, &reach).await.unwrap_err();
            assert_eq!(error.kind, FetchErrorKind::Forbidden, "{target}: {error}");
        }
    }
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

/// The name is not one that is known to be this machine's: only the look-up says so.
#[tokio::test]
async fn a_name_that_leads_inside_is_dropped_when_it_was_looked_up() {
    let (port, connections) = server(FINE).await;
    let reach = reach("https://mcp.example/mcp");
    // The same filter as for a name of which nothing is known: what it is asked about is what is connected to.
    let looked_up = fetch::Fetch::get(&format!("http://localhost:{port}/"));
    let looked_up = looked_up.only_to(move |address| reach.allows(address));
    let error = Fetcher::new().fetch(looked_up).await.unwrap_err();
    assert_eq!(error.kind(), fetch::FetchErrorKind::Forbidden);
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_server_on_this_machine_may_name_others_there_and_so_may_the_application() {
    let (port, connections) = server(FINE).await;
    let guarded = Guarded::new();
    let target = url(&format!("http://127.0.0.1:{port}/x"));
    let local = reach("http://localhost:1/mcp");
    let response = guarded.fetch(Request::get(target.clone(), NamedBy::Peer), &local).await.unwrap();
    assert_eq!((response.status.as_u16(), &response.body[..]), (200, &b"{}"[..]));
    let public = Reach::within(Zone::Public);
    guarded.fetch(Request::get(target.clone(), NamedBy::Application), &public).await.unwrap();
    let origin = format!("http://127.0.0.1:{port}");
    let trusting = guarded.trust(Origins::parse([origin.as_str()]).unwrap());
    trusting.fetch(Request::get(target, NamedBy::Peer), &public).await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn where_the_server_was_met_says_how_far_it_may_lead() {
    let (port, _) = server(FINE).await;
    let (own, other) = (url(&format!("http://127.0.0.1:{port}/x")), url("http://127.0.0.1:1/"));
    let reach = Reach::of_name(own.url());
    let forbidden =
        Guarded::new().fetch(Request::get(other.clone(), NamedBy::Peer), &reach).await.unwrap_err();
    assert_eq!(forbidden.kind, FetchErrorKind::Forbidden);
    Guarded::new().fetch(Request::get(own, NamedBy::Peer), &reach).await.unwrap();
    let refused = Guarded::new().fetch(Request::get(other, NamedBy::Peer), &reach).await.unwrap_err();
    assert_eq!(refused.kind, FetchErrorKind::Network);
}

#[tokio::test]
async fn nothing_is_fetched_without_tls_from_other_machines() {
    let reach = Reach::within(Zone::Loopback);
    for target in ["http://10.0.0.1/", "http://mcp.example/"] {
        let origins = Origins::parse([target]).unwrap();
        let endpoint = Endpoint::parse_trusting(target, &origins).unwrap();
        let request = Request::get(endpoint, NamedBy::Application);
        let error = Guarded::new().fetch(request, &reach).await.unwrap_err();
        assert_eq!(error.kind, FetchErrorKind::Forbidden, "{target}: {error}");
    }
}

#[tokio::test]
async fn a_redirect_of_a_post_or_to_another_origin_is_not_followed() {
    let (elsewhere, connections) = server(FINE).await;
    let location = format!("http://127.0.0.1:{elsewhere}/");
    let head =
        format!("HTTP/1.1 307 x\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let (port, _) = server(head).await;
    let target = url(&format!("http://127.0.0.1:{port}/token"));
    let reach = Reach::within(Zone::Loopback);
    for request in
        [Request::get(target.clone(), NamedBy::Peer), Request::form(target, NamedBy::Peer, [("secret", "1")])]
    {
        let response = Guarded::new().fetch(request, &reach).await.unwrap();
        assert_eq!(response.status.as_u16(), 307);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 0);

    let again = "HTTP/1.1 307 x\r\nlocation: /again\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let (port, connections) = server(again).await;
    let target = url(&format!("http://127.0.0.1:{port}/token"));
    let request = Request::form(target.clone(), NamedBy::Peer, [("secret", "1")]);
    assert_eq!(Guarded::new().fetch(request, &reach).await.unwrap().status.as_u16(), 307);
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    let error = Guarded::new().fetch(Request::get(target, NamedBy::Peer), &reach).await.unwrap_err();
    assert_eq!(error.kind, FetchErrorKind::TooLarge);
    assert_eq!(connections.load(Ordering::SeqCst), 1 + 4);
}

#[tokio::test]
async fn an_answer_that_is_too_large_or_too_slow_is_given_up() {
    let large = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}", " ".repeat(300 * 1024));
    let (port, _) = server(large).await;
    let reach = Reach::within(Zone::Loopback);
    let target = url(&format!("http://127.0.0.1:{port}/"));
    let error = Guarded::new().fetch(Request::get(target, NamedBy::Peer), &reach).await.unwrap_err();
    assert_eq!(error.kind, FetchErrorKind::TooLarge, "{error}");

    let (port, _) = server("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n").await;
    let target = url(&format!("http://127.0.0.1:{port}/"));
    let limits = FetchLimits { timeout: Duration::from_millis(50), ..FetchLimits::default() };
    let guarded = Guarded::new().limits(limits);
    let error = guarded.fetch(Request::get(target, NamedBy::Peer), &reach).await.unwrap_err();
    assert_eq!(error.kind, FetchErrorKind::Timeout, "{error}");
}
