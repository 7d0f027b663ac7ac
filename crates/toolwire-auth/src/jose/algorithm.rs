//! The algorithms there are. There is no other, and none of them is symmetric.

use std::fmt;

/// The cryptographic library: the one place to change when another is used.
pub(super) mod crypto {
    pub(in crate::jose) use ring::{rand, rsa, signature};
}

use self::crypto::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, RsaParameters, VerificationAlgorithm,
};

/// How a token is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// ECDSA over P-256 with SHA-256.
    Es256,
    /// ECDSA over P-384 with SHA-384.
    Es384,
    /// Ed25519, by its old name `EdDSA` or by its new one.
    EdDsa,
    /// RSA PKCS #1 v1.5 with SHA-256.
    Rs256,
    /// RSA-PSS with SHA-256.
    Ps256,
}

impl Algorithm {
    /// All of them, those to be preferred first.
    pub const ALL: [Self; 5] = [Self::Es256, Self::Es384, Self::EdDsa, Self::Rs256, Self::Ps256];

    /// The name in a header. Case matters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
        }
    }

    /// The algorithm of that name.
    ///
    /// ```
    /// use toolwire_auth::jose::Algorithm;
    ///
    /// assert_eq!(Algorithm::from_name("Ed25519"), Some(Algorithm::EdDsa));
    /// assert_eq!(Algorithm::from_name("none"), None);
    /// assert_eq!(Algorithm::from_name("HS256"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            "EdDSA" | "Ed25519" => Self::EdDsa,
            "RS256" => Self::Rs256,
            "PS256" => Self::Ps256,
            _ => return None,
        })
    }

    /// How a signature over an elliptic curve is checked.
    pub(super) fn curve(self) -> Option<&'static dyn VerificationAlgorithm> {
        match self {
            Self::Es256 => Some(&ECDSA_P256_SHA256_FIXED),
            Self::Es384 => Some(&ECDSA_P384_SHA384_FIXED),
            Self::EdDsa => Some(&ED25519),
            Self::Rs256 | Self::Ps256 => None,
        }
    }

    /// How a signature of RSA is checked.
    pub(super) fn rsa(self) -> Option<&'static RsaParameters> {
        match self {
            Self::Rs256 => Some(&RSA_PKCS1_2048_8192_SHA256),
            Self::Ps256 => Some(&RSA_PSS_2048_8192_SHA256),
            Self::Es256 | Self::Es384 | Self::EdDsa => None,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
