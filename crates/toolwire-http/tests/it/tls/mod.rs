//! TLS, with a certificate for `localhost` that only these tests trust.

use std::{sync::Arc, time::Duration};

use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::Bytes,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use toolwire_http::server::{HttpLimits, HttpService, Tls};
use toolwire_server::{Server, tool};

use crate::{
    PATIENCE,
    bare::{Connection, MODERN, enveloped},
};

const CERTIFICATE: &[u8] = include_bytes!("certificate.pem");
const KEY: &[u8] = include_bytes!("key.pem");

async fn serve(limits: HttpLimits) -> (std::net::SocketAddr, JoinHandle<std::io::Result<()>>) {
    let server = Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = HttpService::builder(server).limits(limits).build().unwrap();
    let serve = service.serve(listener).tls(Tls::from_pem(CERTIFICATE, KEY).unwrap());
    (address, tokio::spawn(serve.into_future()))
}

async fn connect(address: std::net::SocketAddr, protocol: &[u8]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CERTIFICATE).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
    stream
}

fn call(uri: &str) -> http::Request<Full<Bytes>> {
    let message = enveloped("tools/call", json!({ "name": "now" }));
    http::Request::post(uri)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", "tools/call")
        .header("mcp-name", "now")
        .body(Full::new(message.to_string().into()))
        .unwrap()
}

async fn answer(response: http::Response<hyper::body::Incoming>) -> Value {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice::<Value>(&body).unwrap()["result"]["content"][0]["text"].take()
}

#[tokio::test]
async fn both_versions_of_http_are_spoken() {
    let (address, serving) = serve(HttpLimits::default()).await;
    let io = TokioIo::new(connect(address, b"http/1.1").await);
    let (mut sender, connection) = http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(answer(sender.send_request(call("/mcp")).await.unwrap()).await, "noon");
    let io = TokioIo::new(connect(address, b"h2").await);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(answer(sender.send_request(call("https://localhost/mcp")).await.unwrap()).await, "noon");
    serving.abort();
}

#[tokio::test]
async fn a_handshake_that_stalls_is_given_up() {
    let limits = HttpLimits { header_timeout: Duration::from_millis(50), ..HttpLimits::default() };
    let (address, serving) = serve(limits).await;
    assert!(Connection::open(address).await.is_closed().await);
    serving.abort();
}

#[tokio::test]
async fn what_was_agreed_on_is_spoken_and_nothing_else() {
    let limits = HttpLimits::default();
    let longest = limits.header_timeout;
    let (address, serving) = serve(limits).await;
    for (protocol, said) in [
        (&b"h2"[..], &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..]),
        (b"http/1.1", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        // One that says nothing is left in time.
        (b"h2", b"PRI * HTTP/2.0"),
    ] {
        let mut stream = connect(address, protocol).await;
        stream.write_all(said).await.unwrap();
        // Skips the timeout. The socket is read on the running clock.
        tokio::time::pause();
        tokio::time::sleep(longest).await;
        tokio::time::resume();
        let mut heard = Vec::new();
        // It ends without a goodbye, which may count as an error.
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut heard)).await.unwrap();
        assert_eq!(heard, b"", "{}", String::from_utf8_lossy(said));
    }
    serving.abort();
}

#[test]
fn what_cannot_be_used_is_refused() {
    for (chain, key, why) in [
        (&b"nothing"[..], KEY, "the certificate and the key cannot be used"),
        (CERTIFICATE, &b"nothing"[..], "the private key cannot be read"),
        (CERTIFICATE, CERTIFICATE, "the private key cannot be read"),
        (
            &b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"[..],
            KEY,
            "the certificate chain cannot be read",
        ),
    ] {
        assert_eq!(Tls::from_pem(chain, key).unwrap_err().to_string(), why);
    }
}
