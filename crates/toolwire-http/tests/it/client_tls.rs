//! This client and this server with TLS between them.

use serde_json::json;
use tokio::net::TcpListener;
use toolwire_client::{EraChoice, ErrorKind};
use toolwire_http::{
    client::Http,
    server::{HttpService, Tls},
};
use toolwire_protocol::Version;
use toolwire_server::{Server, tool};

use crate::client_script::builder;

const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.pem");
const KEY: &[u8] = include_bytes!("tls/key.pem");

/// Serves, and says where.
async fn serve() -> String {
    let server = Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let service = HttpService::new(server).serve(listener).tls(Tls::from_pem(CERTIFICATE, KEY).unwrap());
    tokio::spawn(service.into_future());
    format!("https://localhost:{port}/mcp")
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
async fn a_certificate_that_nobody_trusts_is_refused() {
    let url = serve().await;
    let error = builder().connect(Http::new(&url).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[test]
fn what_is_no_certificate_is_refused() {
    let error = Http::builder("https://localhost").root_certificates(b"nothing").build().unwrap_err();
    assert!(error.to_string().contains("PEM"), "{error}");
}
