//! Checking signatures.

use super::{
    Algorithm, Compact, JwsError, Payload, PublicKey,
    algorithm::crypto::signature::{RsaPublicKeyComponents, UnparsedPublicKey},
    jwk::Material,
};

impl PublicKey {
    /// Gives what a token says, if it was signed with this key, and if the key fits the algorithm of the token.
    pub fn verify(&self, token: &Compact<'_>) -> Result<Payload, JwsError> {
        let algorithm = token.header().algorithm();
        if !self.fits(algorithm) {
            return Err(JwsError::NoKey);
        }
        if self.material.is_signed(algorithm, token.signed(), token.signature()) {
            Ok(token.payload())
        } else {
            Err(JwsError::Signature)
        }
    }
}

impl Material {
    fn is_signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let point: &[u8] = match self {
            Self::Rsa { n, e } => {
                let key = RsaPublicKeyComponents { n, e };
                return algorithm.rsa().is_some_and(|rsa| key.verify(rsa, message, signature).is_ok());
            }
            Self::P256(point) => point,
            Self::P384(point) => point,
            Self::Ed25519(point) => point,
        };
        let curve = algorithm.curve();
        curve.is_some_and(|curve| UnparsedPublicKey::new(curve, point).verify(message, signature).is_ok())
    }
}
