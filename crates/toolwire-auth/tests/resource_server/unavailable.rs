//! Issuers that do not answer as they should: nobody is let in, and no token is called invalid.

use std::{net::SocketAddr, time::Duration};

use http::StatusCode;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
};
use toolwire_auth::{
    Secret,
    fetch::{FetchLimits, Guarded},
    server::{Introspection, Jwt, ResourceServer, Verify},
};

use crate::kit::*;

/// Something that calls itself an issuer.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Silence,
    Hangup,
    Html,
    Endless,
    Redirect,
    Broken,
}

async fn issuer(answer: Answer) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, answer, address));
        }
    });
    address
}

async fn serve(mut stream: TcpStream, answer: Answer, address: SocketAddr) {
    let mut head = [0; 4096];
    let _ = stream.read(&mut head).await;
    let head = |status: &str, more: String| format!("HTTP/1.1 {status}\r\n{more}\r\n").into_bytes();
    let bytes = match answer {
        Answer::Silence => return std::future::pending().await,
        Answer::Hangup => return,
        Answer::Html => head("200 OK", "Content-Type: text/html\r\nContent-Length: 13\r\n".into())
            .into_iter()
            .chain(*b"<html></html>")
            .collect(),
        Answer::Endless => {
            let _ = stream.write_all(&head("200 OK", "Content-Length: 1073741824\r\n".into())).await;
            while stream.write_all(&vec![b' '; 65_536]).await.is_ok() {}
            return;
        }
        Answer::Redirect => {
            head("307 Again", format!("Location: http://{address}/again\r\nContent-Length: 0\r\n"))
        }
        Answer::Broken => head("500 Oops", "Content-Length: 0\r\n".into()),
    };
    let _ = stream.write_all(&bytes).await;
}

async fn is_unavailable(verifier: impl Verify, what: &str) {
    let guard = ResourceServer::new(RESOURCE, ISSUER).verify(verifier).build().unwrap();
    let response = call(&service(&guard), "whoami", &token(&[])).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{what}");
    assert!(response.headers().contains_key("retry-after"), "{what}");
    assert!(!response.headers().contains_key("www-authenticate"), "{what}");
}

#[tokio::test]
async fn an_issuer_that_does_not_answer_as_it_should_makes_no_token_valid_or_invalid() {
    let fetch = || {
        Guarded::new().limits(FetchLimits { timeout: Duration::from_millis(500), ..FetchLimits::default() })
    };
    for answer in
        [Answer::Silence, Answer::Hangup, Answer::Html, Answer::Endless, Answer::Redirect, Answer::Broken]
    {
        let address = issuer(answer).await;
        let introspection =
            Introspection::at(format!("http://{address}/introspect"), "files", Secret::from("s"))
                .fetch(fetch());
        is_unavailable(introspection, &format!("introspection: {answer:?}")).await;
        let jwt = Jwt::at(format!("http://{address}/keys")).fetch(fetch());
        is_unavailable(jwt, &format!("keys: {answer:?}")).await;
    }
    // A socket that is bound and does not listen refuses every connection.
    let refusing = TcpSocket::new_v4().unwrap();
    refusing.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let keys = format!("http://{}/keys", refusing.local_addr().unwrap());
    is_unavailable(Jwt::at(keys).fetch(fetch()), "nobody").await;
}
