use tokio::{net::TcpStream, task::JoinHandle};

use super::*;
use crate::{
    Endpoint, Issuer,
    client::{
        authorize::{Authorization, begin},
        scopes::Scopes,
    },
};

struct Waiting {
    port: u16,
    state: String,
    answer: JoinHandle<io::Result<Callback>>,
}

async fn waiting() -> Waiting {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let redirect = format!("http://127.0.0.1:{port}/callback");
    let url = page(&redirect);
    let state = url::Url::parse(url.as_str()).unwrap();
    let state = state.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    Waiting { port, state, answer: tokio::spawn(wait(vec![listener], url)) }
}

/// A page whose answer goes to a redirect.
pub(in super::super) fn page(redirect: &str) -> AuthorizationUrl {
    let issuer = Issuer::parse("https://login.example").unwrap();
    let endpoint = Endpoint::parse("https://login.example/authorize").unwrap();
    let request = Authorization {
        endpoint: &endpoint,
        issuer: &issuer,
        iss_parameter: false,
        client_id: "client",
        redirect,
        scopes: &Scopes::none(),
        resource: None,
        consent: false,
        dpop_thumbprint: None,
        more: &[],
        named_by: crate::fetch::NamedBy::Peer,
    };
    begin(&request, &[7; 64]).0
}

impl Waiting {
    /// Sends a request and reads the whole answer.
    async fn send(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        answer
    }

    async fn get(&self, target: &str) -> String {
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", self.port)).await
    }
}

#[tokio::test]
async fn what_is_not_our_answer_is_waited_on_and_the_login_still_works() {
    let waiting = waiting().await;
    let (port, good) = (waiting.port, format!("/callback?code=c&state={}", waiting.state));
    let strangers = [
        format!("GET /callback?code=c HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"),
        format!("GET /callback?code=c&state=old HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"),
        format!("GET {good}&state=x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"),
        format!("GET /other?state={} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n", waiting.state),
        format!("GET {good} HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
        format!("GET {good} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n\r\n"),
        format!("GET {good} HTTP/1.1\r\n\r\n"),
        format!("POST {good} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"),
        format!("GET {good}&x={} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n", "x".repeat(MAX_HEAD_BYTES)),
    ];
    for request in &strangers {
        let answer = waiting.send(request).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{request}: {answer}");
    }
    for number in 0..200 {
        waiting.get(&format!("/callback?code=c&state={number}")).await;
    }
    assert!(!waiting.answer.is_finished());
    // With the cookies of many others.
    let cookies = format!("Cookie: x={}\r\n", "x".repeat(MAX_HEAD_BYTES - 1_024));
    let answer =
        waiting.send(&format!("GET {good} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{cookies}\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!answer.contains("logged in"), "the login is not complete yet: {answer}");
    waiting.answer.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_page_repeats_nothing_and_leads_nowhere() {
    let waiting = waiting().await;
    let marked = format!(
        "/callback?state={}&error=access_denied&error_description=%3Cscript%3Emarked&next=https://evil.example/",
        waiting.state
    );
    let answer = waiting.get(&marked).await;
    let lower = answer.to_ascii_lowercase();
    assert!(!lower.contains("marked") && !lower.contains("evil") && !lower.contains("location:"), "{answer}");
    for header in [
        "content-security-policy: default-src 'none'",
        "cache-control: no-store",
        "referrer-policy: no-referrer",
    ] {
        assert!(lower.contains(header), "{answer}");
    }
    // It is our answer all the same, and what it says is for the flow to judge.
    waiting.answer.await.unwrap().unwrap();
}

#[tokio::test]
async fn those_who_say_nothing_do_not_keep_others_out() {
    let waiting = waiting().await;
    let mut silent = Vec::new();
    for _ in 0..MAX_CONNECTIONS / 2 {
        silent.push(TcpStream::connect(("127.0.0.1", waiting.port)).await.unwrap());
    }
    let answer = waiting.get(&format!("/callback?code=c&state={}", waiting.state)).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    waiting.answer.await.unwrap().unwrap();
}
