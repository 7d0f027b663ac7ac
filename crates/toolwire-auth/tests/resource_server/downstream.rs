//! Tokens for other servers, in the name of those who are served.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use toolwire_auth::{
    Secret,
    server::{
        Audience, Downstream, DownstreamError, Expiry, Invalid, Jwt, PresentedToken, ResourceGuard,
        StaticKeys, Verified,
    },
};
use toolwire_http::server::HttpService;
use toolwire_server::{Principal, Server, State, ToolError, tool};

use crate::kit::*;

const CALENDAR: &str = "https://calendar.example";

/// A token endpoint, and what it was asked.
#[derive(Clone, Default)]
struct Exchange(Arc<Mutex<Vec<Asked>>>);

/// The credentials of a request and its form.
type Asked = (String, HashMap<String, String>);

impl Exchange {
    async fn listen(&self, answer: Value, status: u16) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::clone(&self.0);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (head, body) = read(&mut stream).await;
                let form = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
                asked.lock().unwrap().push((head, form));
                let body = answer.to_string();
                let head = format!(
                    "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            }
        });
        address
    }

    fn asked(&self) -> Vec<(String, HashMap<String, String>)> {
        self.0.lock().unwrap().clone()
    }
}

async fn read(stream: &mut tokio::net::TcpStream) -> (String, String) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_lowercase().lines().find_map(|line| {
                line.strip_prefix("content-length:").map(|value| value.trim().parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return (head.to_owned(), body.to_owned());
            }
        }
        bytes.push(stream.read_u8().await.unwrap());
    }
}

fn granted() -> Value {
    json!({
        "access_token": "downstream-token", "token_type": "Bearer", "expires_in": 300,
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
    })
}

fn exchanging(guard: &ResourceGuard, address: SocketAddr) -> Arc<Downstream> {
    Arc::new(exchanging_at(guard, ISSUER, address).unwrap())
}

fn exchanging_at(
    guard: &ResourceGuard,
    issuer: &str,
    address: SocketAddr,
) -> Result<Downstream, DownstreamError> {
    Downstream::new(guard, issuer, &format!("http://{address}/token"), "files", Secret::from("s3cret"))
}

/// A server whose tool asks for a token in the name of its caller.
fn service_with(guard: &ResourceGuard, downstream: &Arc<Downstream>, resource: &'static str) -> HttpService {
    let ask = move |who: Principal, State(downstream): State<Arc<Downstream>>| async move {
        match downstream.token_for(&who, resource, ["events:read"]).await {
            Ok(token) => Ok::<_, ToolError>(token.expose().to_owned()),
            Err(error) => Ok(format!("{error:?}")),
        }
    };
    let server =
        Server::builder("files", "1.0").state(Arc::clone(downstream)).tool(tool("ask", ask)).build().unwrap();
    HttpService::builder(server).guard(guard.clone()).build().unwrap()
}

#[tokio::test]
async fn a_token_is_exchanged_for_one_of_another_server_and_remembered_for_its_caller() {
    let exchange = Exchange::default();
    let address = exchange.listen(granted(), 200).await;
    let guard = described().build().unwrap();
    let service = service_with(&guard, &exchanging(&guard, address), CALENDAR);
    let (alice, bob) = (token(&[]), token(&[("sub", json!("bob"))]));
    for _ in 0..3 {
        assert_eq!(text(call(&service, "ask", &alice).await).await, "downstream-token");
    }
    let asked = exchange.asked();
    assert_eq!(asked.len(), 1, "remembered");
    let (head, form) = &asked[0];
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:token-exchange");
    assert_eq!(form["subject_token"], alice);
    assert_eq!((form["resource"].as_str(), form["scope"].as_str()), (CALENDAR, "events:read"));
    // The token is what is exchanged, and proves nothing here.
    assert!(!head.contains(&alice) && !head.to_lowercase().contains("bearer"), "{head}");
    assert!(head.to_lowercase().contains("authorization: basic"), "{head}");
    // Somebody else gets nothing of it.
    assert_eq!(text(call(&service, "ask", &bob).await).await, "downstream-token");
    assert_eq!(exchange.asked()[1].1["subject_token"], bob);
}

#[tokio::test]
async fn nobody_can_be_mistaken_for_a_caller_of_this_very_server() {
    let exchange = Exchange::default();
    let address = exchange.listen(granted(), 200).await;
    let guard = described().build().unwrap();
    for own in [
        RESOURCE,
        "https://files.example/mcp/",
        "https://FILES.example:443/mcp",
        "https://files.example/mcp?x=1",
    ] {
        let service = service_with(&guard, &exchanging(&guard, address), own);
        assert_eq!(text(call(&service, "ask", &token(&[])).await).await, "OwnResource", "{own}");
    }
    assert!(exchange.asked().is_empty());
}

#[tokio::test]
async fn another_name_of_this_very_server_is_no_way_round_that() {
    let exchange = Exchange::default();
    let address = exchange.listen(granted(), 200).await;
    let named = Jwt::keys(jwks(&KEY)).audience("api://files").audience("0000-not-a-url");
    let other = Jwt::keys(jwks(&key("k2"))).audience("https://alias.example/mcp");
    let guard = described().verify(named).issuer(PARTNER, other).build().unwrap();
    for own in
        ["api://files", "API://files/", "https://alias.example:443/mcp?x=1", "https://alias.example./mcp"]
    {
        let service = service_with(&guard, &exchanging(&guard, address), own);
        assert_eq!(text(call(&service, "ask", &token(&[])).await).await, "OwnResource", "{own}");
    }
    assert!(exchange.asked().is_empty());
    for other in ["api://calendar", "https://alias.example/", "https://alias.example:444/mcp"] {
        let service = service_with(&guard, &exchanging(&guard, address), other);
        assert_eq!(text(call(&service, "ask", &token(&[])).await).await, "downstream-token", "{other}");
    }
}

const PARTNER: &str = "https://partner.example";

#[tokio::test]
async fn a_token_is_exchanged_at_the_issuer_that_made_it_and_shown_to_no_other() {
    let (ours, partners) = (Exchange::default(), Exchange::default());
    let (at_ours, at_partners) = (ours.listen(granted(), 200).await, partners.listen(granted(), 200).await);
    let two = key("k2");
    let guard = described().issuer(PARTNER, Jwt::keys(jwks(&two))).build().unwrap();
    let service = service_with(&guard, &exchanging(&guard, at_ours), CALENDAR);
    let theirs = token_by(&two, &[("iss", json!(PARTNER))]);
    assert_eq!(text(call(&service, "ask", &theirs).await).await, "NoToken");
    assert!(ours.asked().is_empty());
    // With one for each of them, each sees its own.
    let downstream = Arc::new(exchanging_at(&guard, PARTNER, at_partners).unwrap());
    let both = service_with(&guard, &downstream, CALENDAR);
    assert_eq!(text(call(&both, "ask", &theirs).await).await, "downstream-token");
    assert_eq!(text(call(&both, "ask", &token(&[])).await).await, "NoToken");
    assert_eq!(text(call(&service, "ask", &theirs).await).await, "NoToken");
    assert_eq!(partners.asked().len(), 1);
    assert_eq!(partners.asked()[0].1["subject_token"], theirs);
    assert!(ours.asked().is_empty());
}

#[tokio::test]
async fn what_no_authorization_server_gave_out_is_never_exchanged() {
    const STATIC: &str = "T1p0q8ZkX3mVYw7bJrK5";
    let exchange = Exchange::default();
    let address = exchange.listen(granted(), 200).await;
    let function = |token: PresentedToken| async move {
        let known = token.expose() == "swordfish";
        known
            .then(|| Verified::new("bob", Audience::Vouched, Expiry::Unknown).scopes(["files:read"]))
            .ok_or_else(|| Invalid::new("not mine"))
    };
    let keys = StaticKeys::parse(&format!("alice files:read {STATIC}")).unwrap();
    let described = described().issuer("https://keys.example", keys);
    let guard = described.issuer("https://function.example", function).build().unwrap();
    let service = service_with(&guard, &exchanging(&guard, address), CALENDAR);
    for secret in [STATIC, "swordfish"] {
        assert_eq!(text(call(&service, "ask", secret).await).await, "NoToken");
    }
    assert!(exchange.asked().is_empty());
    for issuer in ["https://keys.example", "https://function.example", "https://third.example"] {
        let refused = exchanging_at(&guard, issuer, address).unwrap_err();
        assert!(matches!(&refused, DownstreamError::Setting(why) if why.contains(issuer)), "{refused:?}");
    }
}

#[tokio::test]
async fn who_was_not_let_in_with_a_token_has_none_to_exchange() {
    let exchange = Exchange::default();
    let address = exchange.listen(granted(), 200).await;
    let guard = described().build().unwrap();
    let downstream = exchanging(&guard, address);
    let forged = Principal::builder("alice").issuer(ISSUER).client_id("notes").build();
    let refused = downstream.token_for(&forged, CALENDAR, ["events:read"]).await;
    assert_eq!(refused.unwrap_err(), DownstreamError::NoToken);
    assert!(exchange.asked().is_empty());
}

#[tokio::test]
async fn a_caller_from_a_record_has_no_token_though_a_newer_request_has_one() {
    let exchange = Exchange::default();
    let address = exchange.listen(granted(), 200).await;
    let guard = described().build().unwrap();
    let downstream = exchanging(&guard, address);
    let service = service_with(&guard, &downstream, CALENDAR);
    assert_eq!(text(call(&service, "ask", &token(&[])).await).await, "downstream-token");
    let alice = Principal::builder("alice").issuer(ISSUER).client_id("notes");
    let alice = alice.scopes("files:read".parse().unwrap()).build();
    assert!(downstream.token_for(&alice, CALENDAR, ["events:read"]).await.is_ok());
    let restored = Principal::from_record(&alice.record()).unwrap();
    assert_eq!(restored.key(), alice.key());
    let refused = downstream.token_for(&restored, CALENDAR, ["events:read"]).await;
    assert_eq!(refused.unwrap_err(), DownstreamError::NoToken);
}

#[tokio::test]
async fn what_an_issuer_refuses_or_answers_wrongly_is_told_apart_from_one_that_is_away() {
    for (status, answer, expected) in [
        (400, json!({ "error": "invalid_target" }), "Refused(\"invalid_target\")"),
        (200, json!({ "error": "access_denied" }), "Refused(\"access_denied\")"),
        (200, json!({ "access_token": "x", "token_type": "N_A" }), "Refused"),
        (200, json!({ "access_token": "a\nb", "token_type": "Bearer" }), "Refused"),
        (200, json!({ "access_token": "", "token_type": "Bearer" }), "Refused"),
        (200, json!("<html>"), "Unavailable"),
        (503, json!({ "error": "x" }), "Unavailable"),
        (302, json!({}), "Unavailable"),
    ] {
        let exchange = Exchange::default();
        let address = exchange.listen(answer.clone(), status).await;
        let guard = described().build().unwrap();
        let service = service_with(&guard, &exchanging(&guard, address), CALENDAR);
        let said = text(call(&service, "ask", &token(&[])).await).await;
        assert!(said.starts_with(expected), "{status} {answer}: {said}");
    }
}
