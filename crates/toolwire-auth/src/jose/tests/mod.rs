mod edges;
mod keys;
mod oracle;
mod signatures;
mod vectors;

use serde_json::Value;

use super::{Algorithm, Compact, JwsError, Payload, PrivateKey, PublicKey, encode};

const RSA: &str = include_str!("keys/rsa.pem");
const RSA_PKCS1: &str = include_str!("keys/rsa-pkcs1.pem");
const EC: &str = include_str!("keys/ec.pem");
const ED25519: &str = include_str!("keys/ed25519.pem");

/// A key for each algorithm.
fn private(algorithm: Algorithm) -> PrivateKey {
    let pem = match algorithm {
        Algorithm::Rs256 | Algorithm::Ps256 => RSA,
        Algorithm::EdDsa => ED25519,
        Algorithm::Es256 => EC,
        Algorithm::Es384 => return PrivateKey::generate(algorithm).unwrap(),
    };
    PrivateKey::pem(pem, algorithm).unwrap()
}

fn verify(key: &PublicKey, token: &str) -> Result<Payload, JwsError> {
    key.verify(&Compact::parse(token)?)
}

/// A token with this header and payload, and a signature that nobody has made.
fn unsigned(header: &str, payload: &str) -> String {
    format!("{}.{}.AAAA", encode(header), encode(payload))
}

/// A key as text, with members changed: a null takes one away.
fn changed(key: &PublicKey, changes: &[(&str, Value)]) -> String {
    let mut jwk = key.to_jwk();
    for (name, value) in changes {
        let members = jwk.as_object_mut().unwrap();
        match value {
            Value::Null => members.remove(*name),
            value => members.insert((*name).to_owned(), value.clone()),
        };
    }
    jwk.to_string()
}
