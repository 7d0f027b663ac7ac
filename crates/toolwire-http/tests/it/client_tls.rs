//! This client and this server with TLS between them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::json;
use tokio::{
    io::{AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::Barrier,
    task::JoinSet,
};
use toolwire_client::{EraChoice, ErrorKind};
use toolwire_http::{
    client::Http,
    server::{HttpService, Tls},
};
use toolwire_protocol::Version;
use toolwire_server::{Server, tool};

use crate::client_script::builder;

pub(crate) const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.pem");
const EXPIRED: &[u8] = include_bytes!("tls/expired.pem");
const KEY: &[u8] = include_bytes!("tls/key.pem");

/// Serves, and says where.
pub(crate) async fn serve() -> String {
    let server = Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build().unwrap();
    serve_at("127.0.0.1:0", CERTIFICATE, server).await
}

async fn serve_at(address: &str, certificate: &[u8], server: Server) -> String {
    let listener = TcpListener::bind(address).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let service = HttpService::new(server).serve(listener).tls(Tls::from_pem(certificate, KEY).unwrap());
    tokio::spawn(service.into_future());
    format!("https://localhost:{port}/mcp")
}

/// Passes everything on to the server at this URL, and counts connections.
async fn counting(url: &str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::<AtomicUsize>::default();
    let (counted, behind) = (Arc::clone(&count), url.split(['/', ':']).nth(4).unwrap().to_owned());
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut far = TcpStream::connect(format!("127.0.0.1:{behind}")).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut near, &mut far).await });
        }
    });
    (format!("https://localhost:{port}/mcp"), count)
}

#[tokio::test]
async fn both_eras_are_spoken_under_a_certificate_that_is_trusted() {
    let url = serve().await;
    for version in [Version::V2025_11_25, Version::V2026_07_28] {
        let http = Http::builder(&url).root_certificates(CERTIFICATE).build().unwrap();
        let client = builder().era(EraChoice::Version(version)).connect(http).await.unwrap();
        assert_eq!(client.call("now", json!({})).await.unwrap().text(), "noon");
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn many_calls_are_under_way_at_once_on_one_connection() {
    const CALLS: usize = 64;
    let together = Arc::new(Barrier::new(CALLS));
    let meet = tool("meet", move || {
        let together = Arc::clone(&together);
        async move {
            // Nobody is answered before all have come.
            together.wait().await;
            "met"
        }
    });
    let server = Server::builder("meeting", "1.0").tool(meet).build().unwrap();
    let (url, connections) = counting(&serve_at("127.0.0.1:0", CERTIFICATE, server).await).await;
    for version in [Version::V2026_07_28, Version::V2025_11_25] {
        connections.store(0, Ordering::SeqCst);
        let http = Http::builder(&url).root_certificates(CERTIFICATE).build().unwrap();
        let client = builder().era(EraChoice::Version(version)).connect(http).await.unwrap();
        let mut calls = JoinSet::new();
        for _ in 0..CALLS {
            let client = client.clone();
            calls.spawn(async move { client.call("meet", json!({})).await.unwrap().text() });
        }
        assert!(calls.join_all().await.iter().all(|text| text == "met"));
        assert_eq!(connections.load(Ordering::SeqCst), 1, "{version}");
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_ends_is_replaced_for_the_next_call() {
    let (url, connections) = counting(&serve().await).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = listener.local_addr().unwrap().port();
    let behind = url.split(['/', ':']).nth(4).unwrap().to_owned();
    // Cuts the first connection when it is told to, and leaves the others alone.
    let (cut, mut told) = tokio::sync::watch::channel(());
    let cutting = tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = TcpStream::connect(format!("127.0.0.1:{behind}")).await.unwrap();
        tokio::select! {
            _ = copy_bidirectional(&mut near, &mut far) => {}
            _ = told.changed() => {}
        }
        drop(near);
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = TcpStream::connect(format!("127.0.0.1:{behind}")).await.unwrap();
        let _ = copy_bidirectional(&mut near, &mut far).await;
    });
    let http = Http::builder(format!("https://localhost:{here}/mcp"));
    let http = http.root_certificates(CERTIFICATE).build().unwrap();
    let client = builder().era(EraChoice::Modern).connect(http).await.unwrap();
    assert_eq!(client.call("now", json!({})).await.unwrap().text(), "noon");
    cut.send(()).unwrap();
    // Whether the first one after it is told apart from one that was sent is for the network to decide.
    let mut called = client.call("now", json!({})).await;
    if called.is_err() {
        called = client.call("now", json!({})).await;
    }
    assert_eq!(called.unwrap().text(), "noon");
    assert_eq!(connections.load(Ordering::SeqCst), 2);
    cutting.abort();
}

async fn refused(url: &str) -> String {
    let error = builder().connect(Http::builder(url).build().unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    error.to_string()
}

#[tokio::test]
async fn a_certificate_that_nobody_trusts_is_refused() {
    let text = refused(&serve().await).await;
    // Why not depends a little on what else this machine trusts.
    assert!(text.contains("the certificate of the server is not trusted: its "), "{text}");
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_refused() {
    let server = Server::builder("old", "1.0").build().unwrap();
    let url = serve_at("127.0.0.1:0", EXPIRED, server).await;
    let http = Http::builder(&url).root_certificates(EXPIRED).build().unwrap();
    let error = builder().connect(http).await.unwrap_err().to_string();
    assert!(error.contains("the certificate of the server has expired"), "{error}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let server = Server::builder("other", "1.0").build().unwrap();
    let url = serve_at("127.0.0.2:0", CERTIFICATE, server).await.replace("localhost", "127.0.0.2");
    let http = Http::builder(&url).root_certificates(CERTIFICATE).build().unwrap();
    let error = builder().connect(http).await.unwrap_err().to_string();
    assert!(error.contains("the certificate of the server is for another name than 127.0.0.2"), "{error}");
}

#[tokio::test]
async fn a_server_without_tls_is_told_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let text = refused(&format!("https://{address}/mcp")).await;
    assert!(text.contains("does not speak TLS; is it http:// and not https://?"), "{text}");
}

#[test]
fn what_is_no_certificate_is_refused() {
    let error = Http::builder("https://localhost").root_certificates(b"nothing").build().unwrap_err();
    assert!(error.to_string().contains("PEM"), "{error}");
}
