//! A server behind a guard with tokens, in every revision and over every link of HTTP.

use std::{
    error::Error as _,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use toolwire_auth::{
    jose::{Algorithm, PrivateKey},
    server::{Jwt, ResourceGuard, ResourceServer},
};
use toolwire_client::{Client, EraChoice, Error};
use toolwire_protocol::Version;
use toolwire_server::{Principal, Server, tool};
use toolwire_testkit::{Link, Matrix, Setup};

const ISSUER: &str = "https://login.example";

/// The links that have a guard.
const LINKS: [Link; 2] = [Link::Http, Link::WebSocket];

fn server() -> Server {
    Server::builder("files", "1.0")
        .tool(tool("whoami", |who: Principal| async move { who.subject().to_owned() }))
        .tool(tool("write", || async { "written" }).scopes(["files:write"]))
        .build()
        .unwrap()
}

fn key() -> PrivateKey {
    PrivateKey::generate(Algorithm::Es256).unwrap().kid("k1")
}

fn guard(resource: &str, key: &PrivateKey) -> ResourceGuard {
    let mut jwk = key.public_key().to_jwk();
    jwk["kid"] = json!("k1");
    let verifier = Jwt::keys(json!({ "keys": [jwk] }).to_string());
    ResourceServer::new(resource, ISSUER).verify(verifier).scopes(["files:read"]).build().unwrap()
}

/// A token of alice for a resource, with some of its claims changed.
fn token(resource: &str, key: &PrivateKey, changes: &Value) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut claims = json!({
        "iss": ISSUER, "aud": resource, "sub": "alice", "client_id": "notes", "scope": "files:read",
        "iat": now.as_secs(), "exp": (now + Duration::from_secs(300)).as_secs(), "jti": "1",
    });
    claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    key.sign("at+jwt", &claims).unwrap()
}

async fn connect(
    setup: &Setup,
    token: impl FnOnce(&str, &PrivateKey) -> Option<String>,
) -> Result<Client, Error> {
    let builder = Client::builder("notes", "1.0").era(EraChoice::Version(setup.version));
    let key = key();
    setup.connect_guarded(&server(), builder, |url| (guard(url, &key), token(url, &key))).await
}

async fn call(client: &Client, tool: &str) -> Result<String, Error> {
    Ok(client.call(tool, json!({})).await?.text())
}

/// The status of the answer with which a client that has this token is turned away, at once or with its first call.
async fn refused(setup: &Setup, token: impl FnOnce(&str, &PrivateKey) -> Option<String>) -> Option<u16> {
    let error = match connect(setup, token).await {
        Err(error) => error,
        Ok(client) => call(&client, "whoami").await.unwrap_err(),
    };
    assert!(!format!("{error:?} {:?}", error.source()).contains("eyJ"), "{setup}: {error:?}");
    error.status()
}

#[tokio::test]
async fn a_token_lets_in_and_its_scopes_decide_in_every_revision_over_every_link() {
    Matrix::new()
        .links(LINKS)
        .run(async |setup| {
            let client = connect(&setup, |url, key| Some(token(url, key, &json!({})))).await.unwrap();
            assert_eq!(call(&client, "whoami").await.unwrap(), "alice");
            let error = call(&client, "write").await.unwrap_err();
            // Where the request is answered by a message on a stream that is open already, there is no status.
            let has_status = setup.link == Link::Http && setup.version > Version::V2024_11_05;
            assert_eq!(error.status(), has_status.then_some(403), "{error:?}");
            assert!(has_status || error.to_string().contains("files:write"), "{error:?}");
            // It is still who it was, and another token of the same user may do more.
            assert_eq!(call(&client, "whoami").await.unwrap(), "alice");
            let more = json!({ "scope": "files:read files:write" });
            let client = connect(&setup, |url, key| Some(token(url, key, &more))).await.unwrap();
            assert_eq!(call(&client, "write").await.unwrap(), "written");
        })
        .await;
}

#[tokio::test]
async fn without_a_good_token_there_is_no_way_in_in_any_revision_over_any_link() {
    Matrix::new()
        .links(LINKS)
        .run(async |setup| {
            assert_eq!(refused(&setup, |_, _| None).await, Some(401), "no token");
            let unknown = |url: &str, _: &PrivateKey| Some(token(url, &key(), &json!({})));
            assert_eq!(refused(&setup, unknown).await, Some(401), "of a key that is not the issuer's");
            for (what, changes, status) in [
                ("expired", json!({ "iat": 1_000, "exp": 2_000 }), 401),
                ("of another issuer", json!({ "iss": "https://evil.example" }), 401),
                ("for another server", json!({ "aud": "https://other.example/mcp" }), 401),
                ("without the scope that every request needs", json!({ "scope": "files:write" }), 403),
            ] {
                let changed = |url: &str, key: &PrivateKey| Some(token(url, key, &changes));
                assert_eq!(refused(&setup, changed).await, Some(status), "{what}");
            }
        })
        .await;
}
