//! Values that hold a secret, and errors about text that may be one.

use toolwire_auth::{
    Endpoint, Issuer, Origins, Resource, Secret,
    client::{ClientProof, OAuth, register::ClientId},
    fetch::{NamedBy, Request, Response},
    jose::{Algorithm, Compact, KeySet, PrivateKey, PublicKey},
    server::StaticKeys,
};
use toolwire_protocol::seal::KeyRing;

use super::{
    guard,
    marks::secret,
    recorder::{fail, show},
};

pub(crate) fn show_themselves() {
    let text = secret("value");
    let kept = Secret::from(text.as_str());
    show("a secret", &(&kept, Some(&kept), vec![kept.clone()]));
    show("a proof", &ClientProof::from(kept.clone()));
    show("a client", &ClientId::new("notes").secret(kept.clone()));
    show(
        "a builder",
        &OAuth::client_credentials("https://login.example", ClientId::new("notes"), kept.clone()),
    );
    show("a key ring", &KeyRing::new([text.as_bytes()]).unwrap());
    let key = PrivateKey::generate(Algorithm::Es256).unwrap();
    show("a key", &key);
    let url = Endpoint::parse(&format!("https://login.example/token?secret={text}")).unwrap();
    show("an endpoint", &url);
    fail("an endpoint", &std::io::Error::other(url.to_string()));
    show("a request", &Request::form(url.clone(), NamedBy::Peer, [("code", text.as_str())]));
    show("a request", &Request::json(url, NamedBy::Peer, &serde_json::json!({ "secret": text })));
    show("an answer", &Response::json(http::StatusCode::OK, &serde_json::json!({ "access_token": text })));
    unreadable(&text);
    guard::verdicts();
}

/// Text that is not what it should be is not repeated.
fn unreadable(text: &str) {
    let url = format!("https://me:{text}@login.example/#x");
    fail("an issuer", &Issuer::parse(&url).unwrap_err());
    fail("an issuer", &Issuer::parse(text).unwrap_err());
    fail("a resource", &Resource::parse(text).unwrap_err());
    fail("an endpoint", &Endpoint::parse(&format!("http://{text}.example/?{text}#{text}")).unwrap_err());
    fail("origins", &Origins::parse([text]).unwrap_err());
    fail("a token", &Compact::parse(&format!("{text}.{text}.{text}")).unwrap_err());
    fail("keys", &KeySet::parse(&format!("{{\"keys\":[\"{text}\"")).unwrap_err());
    fail("a key", &PublicKey::parse(&format!("{{\"kty\":\"{text}\",\"d\":\"{text}\"}}")).unwrap_err());
    fail("a key", &PrivateKey::pem(text, Algorithm::Es256).unwrap_err());
    let pem = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        text.replace(['/', '+'], "A")
    );
    fail("a key", &PrivateKey::pem(pem, Algorithm::Es256).unwrap_err());
    fail("a key", &PrivateKey::pkcs8(text.as_bytes(), Algorithm::EdDsa).unwrap_err());
    for keys in [
        text.to_owned(),
        format!("alice {text}"),
        format!("alice a,,b {text}"),
        format!("a - {text}\nb - {text}"),
    ] {
        fail("static keys", &StaticKeys::parse(&keys).unwrap_err());
    }
    fail("a key ring", &KeyRing::new([&text.as_bytes()[..8]]).unwrap_err());
    for builder in [
        OAuth::builder("Notes").issuer(text),
        OAuth::builder("Notes").resource(text),
        OAuth::builder("Notes").endpoints(text, text, text),
        OAuth::builder("Notes").scopes([format!("{text} \n")]),
        OAuth::builder("Notes").client_document(&format!("https://me:{text}@notes.example/#{text}")),
        OAuth::builder("Notes").dangerous().trust_origin(text).safe(),
    ] {
        fail("a login", &builder.build().unwrap_err());
    }
}
