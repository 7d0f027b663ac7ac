//! What servers and issuers say on the way to a token.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderValue, StatusCode, header::WWW_AUTHENTICATE};
use toolwire_auth::{
    Endpoint, Issuer, Origins,
    challenge::{self, MAX_CHALLENGES},
    client::{
        device,
        discover::{issuer, resource},
        flow::{Plan, Redirects, Settings, Way},
        register,
        token::{self, TokenType},
    },
    fetch::{NamedBy, Response},
};

use crate::cost::within;

/// Reads the lines of an answer as challenges, and writes what was read again.
pub fn challenge(data: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n').take(64) {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(WWW_AUTHENTICATE, value);
        }
    }
    let found = within(Duration::from_millis(500), "reading challenges", || challenge::parse(&headers));
    assert!(found.len() <= MAX_CHALLENGES);
    for challenge in found {
        assert!(!challenge.scheme().is_empty());
        // What is beyond ASCII can be read, and is not written.
        let Ok(line) = challenge.to_header_value() else { continue };
        let again = HeaderMap::from_iter([(WWW_AUTHENTICATE, line)]);
        assert_eq!(challenge::parse(&again), [challenge]);
    }
}

/// Reads one document as everything that a server or an issuer may answer.
pub fn oauth_metadata(data: &[u8]) {
    let headers = HeaderMap::new();
    let response = Response { status: StatusCode::OK, headers, body: data.to_vec().into() };
    within(Duration::from_secs(1), "reading a document", || read(&response));
}

fn read(response: &Response) {
    let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let endpoint = |text: &str| Endpoint::parse(text).expect("a good URL");
    let server = endpoint("https://files.example/t/mcp");
    for place in ["oauth-protected-resource/t/mcp", "oauth-protected-resource"] {
        let url = endpoint(&format!("https://files.example/.well-known/{place}"));
        let place = resource::Place { url, advertised: true };
        if let Ok(resource::Next::Found(found)) = resource::accept(&place, &server, None, response) {
            let named = endpoint(found.resource.as_str());
            assert!(named.same_origin(&server));
            assert!(server.url().path().starts_with(named.url().path().trim_end_matches('/')));
        }
    }
    let asked = Issuer::parse("https://login.example").expect("a good issuer");
    let terms = issuer::Terms { strict: false, named_by: NamedBy::Peer, trusted: Origins::none() };
    if let Ok(issuer::Next::Found(found)) = issuer::accept(&asked, &terms, response) {
        assert!(found.issuer == asked || found.issuer.differs_by_a_slash(&asked));
        for url in [found.authorization.as_ref(), Some(&found.token), found.registration.as_ref()]
            .into_iter()
            .flatten()
        {
            assert!(url.url().scheme() == "https" || url.is_loopback());
        }
        registration(response, &found, now);
    }
    if let Ok(set) = token::accept(response, TokenType::Bearer) {
        assert!(HeaderValue::from_str(set.access.expose()).is_ok());
    }
    if let Ok(assertion) = token::accept_exchange(response) {
        assert!(!assertion.is_empty());
    }
    if let Ok((code, _)) = device::accept(response, &server, &asked, &server, now) {
        assert!(code.user_code.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    }
}

fn registration(response: &Response, metadata: &issuer::ServerMetadata, now: SystemTime) {
    let used = "http://127.0.0.1:17853/callback".to_owned();
    let way = Way::Browser(Redirects::new([used.clone()], used));
    let plan = Plan::new(metadata.token.clone(), Settings::new("fuzz"), way);
    if let Ok(client) = register::accept(&plan, metadata, false, response, now) {
        assert_eq!(client.registration.issuer, metadata.issuer);
    }
}
