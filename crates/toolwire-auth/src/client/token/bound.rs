//! Tokens that are bound to a key (RFC 9449).

use std::{fmt, sync::Arc, time::SystemTime};

use zeroize::Zeroizing;

use crate::{
    Endpoint, Secret,
    client::{AuthError, AuthErrorKind, Step},
    dpop::Proof,
    jose::{Algorithm, PrivateKey},
};

/// The key that a token is bound to.
#[derive(Clone)]
pub struct DpopKey {
    key: Arc<PrivateKey>,
    pkcs8: Arc<Zeroizing<Vec<u8>>>,
}

impl DpopKey {
    /// A new key of the first algorithm that all lists have, if there are lists; ES256 is tried first.
    pub fn generate(lists: &[Option<&[String]>]) -> Result<Self, AuthError> {
        let fits = |algorithm: &Algorithm| {
            let listed = |list: &[String]| list.iter().any(|name| name == algorithm.name());
            lists.iter().all(|list| list.is_none_or(listed))
        };
        // RSA keys take seconds to make.
        let quick = [Algorithm::Es256, Algorithm::Es384, Algorithm::EdDsa];
        let algorithm =
            quick.into_iter().find(fits).ok_or_else(|| failed("no algorithm for proofs is known to all"))?;
        let pkcs8 = PrivateKey::generate_pkcs8(algorithm).map_err(failed)?;
        Self::pkcs8(&pkcs8, algorithm)
    }

    /// A key that was stored.
    pub fn pkcs8(der: &[u8], algorithm: Algorithm) -> Result<Self, AuthError> {
        let key = PrivateKey::pkcs8(der, algorithm).map_err(failed)?;
        Ok(Self { key: Arc::new(key), pkcs8: Arc::new(Zeroizing::new(der.to_vec())) })
    }

    /// The key as it is stored.
    pub fn to_pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The algorithm it signs with.
    pub fn algorithm(&self) -> Algorithm {
        self.key.algorithm()
    }

    /// What the issuer knows of it.
    pub fn thumbprint(&self) -> String {
        self.key.public_key().thumbprint().to_string()
    }

    /// A proof for one request: its `jti` is of `entropy`, which is used for nothing else.
    pub fn proof(
        &self,
        method: &str,
        url: &Endpoint,
        access: Option<&Secret>,
        nonce: Option<&str>,
        now: SystemTime,
        entropy: [u8; 16],
    ) -> Result<String, AuthError> {
        let mut proof = Proof::new(method, url.url(), now, entropy);
        if let Some(access) = access {
            proof = proof.access_token(access.expose());
        }
        if let Some(nonce) = nonce {
            proof = proof.nonce(nonce);
        }
        proof.sign(&self.key).map_err(failed)
    }
}

fn failed(why: impl fmt::Display) -> AuthError {
    AuthError::new(AuthErrorKind::KeyFailed, Step::Token, why.to_string())
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DpopKey(..)")
    }
}
