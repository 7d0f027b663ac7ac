//! What identifies a public key (RFC 7638).

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{
    PublicKey, decode, encode,
    jwk::{Material, halves},
};

/// The digest that identifies a public key, however it is written.
#[derive(Clone, Copy, Hash)]
pub struct Thumbprint([u8; 32]);

impl Thumbprint {
    /// Reads a thumbprint as it is in `cnf.jkt`: 32 bytes as base64url.
    pub fn parse(text: &str) -> Option<Self> {
        decode(text)?.try_into().ok().map(Self)
    }

    /// The digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PublicKey {
    /// The digest that identifies it.
    pub fn thumbprint(&self) -> Thumbprint {
        // The members that the key needs, in the order of their names, without white space.
        let text = match &self.material {
            Material::P256(point) => curve("P-256", point),
            Material::P384(point) => curve("P-384", point),
            Material::Ed25519(x) => format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, encode(x)),
            Material::Rsa { n, e } => format!(r#"{{"e":"{}","kty":"RSA","n":"{}"}}"#, encode(e), encode(n)),
        };
        Thumbprint(Sha256::digest(text).into())
    }
}

fn curve(name: &str, point: &[u8]) -> String {
    let (x, y) = halves(point);
    format!(r#"{{"crv":"{name}","kty":"EC","x":"{}","y":"{}"}}"#, encode(x), encode(y))
}

impl PartialEq for Thumbprint {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Thumbprint {}

impl fmt::Display for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode(self.0))
    }
}

impl fmt::Debug for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Thumbprint({self})")
    }
}
