//! Private keys, and what is signed with them.

use std::{borrow::Cow, fmt, sync::Arc};

use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::{
    Algorithm, PublicKey,
    algorithm::crypto::{
        rand::SystemRandom,
        rsa::PublicKeyComponents,
        signature::{
            ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
            EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair,
        },
    },
    encode,
    jwk::Material,
};

/// A key that tokens are signed with. Clones share it, and `Debug` shows nothing of it.
///
/// ```
/// use toolwire_auth::jose::{Algorithm, PrivateKey};
///
/// let pem = "-----BEGIN PRIVATE KEY-----
/// MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
/// -----END PRIVATE KEY-----";
/// let key = PrivateKey::pem(pem, Algorithm::EdDsa)?.kid("2026-11");
/// assert_eq!(key.public_key().to_jwk()["x"], "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
/// # Ok::<(), toolwire_auth::jose::PrivateKeyError>(())
/// ```
#[derive(Clone)]
pub struct PrivateKey {
    pair: Arc<Pair>,
    algorithm: Algorithm,
    public: PublicKey,
    /// The digest of a certificate for the key.
    certificate: Option<[u8; 32]>,
}

enum Pair {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

/// A private key that cannot be used, or could not be used for once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateKeyError(Cow<'static, str>);

impl PrivateKey {
    /// Reads a key in PEM, to sign with that algorithm. Keys are in PKCS #8 (`BEGIN PRIVATE KEY`); those for RSA may be
    /// in PKCS #1 (`BEGIN RSA PRIVATE KEY`). RSA keys have 2048 to 4096 bits.
    ///
    /// # Errors
    /// When it is in another form, and then the message has the command that converts it; or is no key for that
    /// algorithm.
    pub fn pem(pem: impl AsRef<[u8]>, algorithm: Algorithm) -> Result<Self, PrivateKeyError> {
        let pem = pem.as_ref();
        if is_encrypted(pem) {
            return Err(PrivateKeyError::new(
                "the private key is encrypted with a password; `openssl pkey -in key.pem -out plain.pem` decrypts it",
            ));
        }
        match PrivateKeyDer::from_pem_slice(pem) {
            Ok(PrivateKeyDer::Pkcs8(der)) => Self::pkcs8(der.secret_pkcs8_der(), algorithm),
            Ok(PrivateKeyDer::Pkcs1(der)) => match algorithm {
                Algorithm::Rs256 | Algorithm::Ps256 => {
                    let pair = RsaKeyPair::from_der(der.secret_pkcs1_der());
                    Self::rsa(pair.map_err(|why| unfit(algorithm, why))?, algorithm)
                }
                _ => Err(unfit(algorithm, "it is an RSA key")),
            },
            Ok(PrivateKeyDer::Sec1(_)) => Err(PrivateKeyError::new(
                "the private key is in the form SEC 1 (BEGIN EC PRIVATE KEY); \
                 `openssl pkcs8 -topk8 -nocrypt -in key.pem -out pkcs8.pem` converts it to PKCS #8",
            )),
            Ok(_) => Err(PrivateKeyError::new("the form of the private key is not supported")),
            Err(_) => Err(PrivateKeyError::new(
                "there is no private key in PEM; one begins with -----BEGIN PRIVATE KEY-----",
            )),
        }
    }

    /// Takes a key in PKCS #8, as bytes.
    ///
    /// # Errors
    /// When it is no key for that algorithm.
    pub fn pkcs8(der: &[u8], algorithm: Algorithm) -> Result<Self, PrivateKeyError> {
        match algorithm {
            Algorithm::Es256 => Self::ecdsa(der, algorithm, &ECDSA_P256_SHA256_FIXED_SIGNING),
            Algorithm::Es384 => Self::ecdsa(der, algorithm, &ECDSA_P384_SHA384_FIXED_SIGNING),
            Algorithm::EdDsa => {
                // OpenSSL leaves out the public half, which is then calculated.
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der);
                let pair = pair.map_err(|why| unfit(algorithm, why))?;
                let point = pair.public_key().as_ref().try_into();
                let point = point.map_err(|_| unfit(algorithm, "its public half has another length"))?;
                Ok(Self::new(Pair::Ed25519(pair), algorithm, Material::Ed25519(point)))
            }
            Algorithm::Rs256 | Algorithm::Ps256 => {
                Self::rsa(RsaKeyPair::from_pkcs8(der).map_err(|why| unfit(algorithm, why))?, algorithm)
            }
        }
    }

    /// Makes a new key.
    ///
    /// # Errors
    /// For RSA: such keys are brought along. And when the system has no randomness.
    pub fn generate(algorithm: Algorithm) -> Result<Self, PrivateKeyError> {
        Self::pkcs8(&Self::generate_pkcs8(algorithm)?, algorithm)
    }

    /// Makes a new key as bytes, in PKCS #8, to be kept.
    ///
    /// # Errors
    /// As [`generate`](Self::generate).
    pub fn generate_pkcs8(algorithm: Algorithm) -> Result<Zeroizing<Vec<u8>>, PrivateKeyError> {
        let random = SystemRandom::new();
        let made = match algorithm {
            Algorithm::Es256 => EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random),
            Algorithm::Es384 => EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &random),
            Algorithm::EdDsa => Ed25519KeyPair::generate_pkcs8(&random),
            Algorithm::Rs256 | Algorithm::Ps256 => {
                return Err(PrivateKeyError::new(
                    "keys for RSA are not made here; `openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:3072` does",
                ));
            }
        };
        let made = made.map_err(|_| PrivateKeyError::new("there is no randomness to make a key of"))?;
        Ok(Zeroizing::new(made.as_ref().to_vec()))
    }

    fn ecdsa(
        der: &[u8],
        algorithm: Algorithm,
        curve: &'static EcdsaSigningAlgorithm,
    ) -> Result<Self, PrivateKeyError> {
        let pair = EcdsaKeyPair::from_pkcs8(curve, der, &SystemRandom::new());
        let pair = pair.map_err(|why| {
            unfit(algorithm, format_args!("{why}; it needs its public half, too, which `openssl pkey` adds"))
        })?;
        let point = pair.public_key().as_ref();
        let material = match algorithm {
            Algorithm::Es384 => point.try_into().map(Material::P384),
            _ => point.try_into().map(Material::P256),
        };
        let material = material.map_err(|_| unfit(algorithm, "its public half has another length"))?;
        Ok(Self::new(Pair::Ecdsa(pair), algorithm, material))
    }

    fn rsa(pair: RsaKeyPair, algorithm: Algorithm) -> Result<Self, PrivateKeyError> {
        if pair.public().modulus_len() < 256 {
            return Err(unfit(algorithm, "it has fewer than 2048 bits"));
        }
        let PublicKeyComponents { n, e } = PublicKeyComponents::<Vec<u8>>::from(pair.public());
        Ok(Self::new(Pair::Rsa(pair), algorithm, Material::Rsa { n, e }))
    }

    fn new(pair: Pair, algorithm: Algorithm, material: Material) -> Self {
        Self { pair: Arc::new(pair), algorithm, public: PublicKey::new(material, None), certificate: None }
    }

    /// Names the key in what it signs (`kid`).
    #[must_use]
    pub fn kid(mut self, kid: impl Into<String>) -> Self {
        self.public.set_kid(kid.into());
        self
    }

    /// Names a certificate for the key, in PEM, in what it signs (`x5t#S256`).
    ///
    /// # Errors
    /// When there is no certificate in it.
    pub fn certificate(mut self, pem: impl AsRef<[u8]>) -> Result<Self, PrivateKeyError> {
        let certificate = CertificateDer::from_pem_slice(pem.as_ref()).map_err(|_| {
            PrivateKeyError::new(
                "there is no certificate in PEM; one begins with -----BEGIN CERTIFICATE-----",
            )
        })?;
        self.certificate = Some(Sha256::digest(&certificate).into());
        Ok(self)
    }

    /// The algorithm it signs with.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The public half.
    pub const fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Signs `claims` as a token of type `typ`, which names the key as far as that has a name.
    ///
    /// # Errors
    /// When the claims are not an object, or there is no randomness.
    pub fn sign(&self, typ: &str, claims: &impl Serialize) -> Result<String, PrivateKeyError> {
        let mut header = self.header(typ);
        if let Some(kid) = self.public.kid() {
            header.insert("kid".to_owned(), kid.into());
        }
        if let Some(digest) = &self.certificate {
            header.insert("x5t#S256".to_owned(), encode(digest).into());
        }
        self.compact(&header, claims)
    }

    /// Signs `claims` as a token of type `typ` that has the public key in it, for proofs of possession.
    ///
    /// # Errors
    /// As [`sign`](Self::sign).
    pub fn sign_with_key_inside(
        &self,
        typ: &str,
        claims: &impl Serialize,
    ) -> Result<String, PrivateKeyError> {
        let mut header = self.header(typ);
        header.insert("jwk".to_owned(), self.public.to_jwk());
        self.compact(&header, claims)
    }

    fn header(&self, typ: &str) -> Map<String, Value> {
        let alg = ("alg".to_owned(), self.algorithm.name().into());
        Map::from_iter([alg, ("typ".to_owned(), typ.into())])
    }

    fn compact(
        &self,
        header: &Map<String, Value>,
        claims: &impl Serialize,
    ) -> Result<String, PrivateKeyError> {
        let unwritable = |_| PrivateKeyError::new("the claims cannot be written as JSON");
        let header = serde_json::to_vec(header).map_err(unwritable)?;
        let claims = serde_json::to_vec(claims).map_err(unwritable)?;
        if claims.first() != Some(&b'{') {
            return Err(PrivateKeyError::new("the claims are not an object"));
        }
        let mut token = format!("{}.{}", encode(header), encode(claims));
        let signature = self.signature(token.as_bytes())?;
        token.push('.');
        token.push_str(&encode(signature));
        Ok(token)
    }

    pub(super) fn signature(&self, message: &[u8]) -> Result<Vec<u8>, PrivateKeyError> {
        let failed = |_| PrivateKeyError::new("there is no randomness to sign with");
        let random = SystemRandom::new();
        match &*self.pair {
            Pair::Ecdsa(pair) => {
                pair.sign(&random, message).map(|made| made.as_ref().to_vec()).map_err(failed)
            }
            Pair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
            Pair::Rsa(pair) => {
                let mut made = vec![0; pair.public().modulus_len()];
                let signed = match self.algorithm {
                    Algorithm::Ps256 => pair.sign(&RSA_PSS_SHA256, &random, message, &mut made),
                    _ => pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut made),
                };
                signed.map(|()| made).map_err(failed)
            }
        }
    }
}

fn is_encrypted(pem: &[u8]) -> bool {
    let has = |words: &[u8]| pem.windows(words.len()).any(|window| window == words);
    has(b"BEGIN ENCRYPTED PRIVATE KEY") || has(b"Proc-Type: 4,ENCRYPTED")
}

fn unfit(algorithm: Algorithm, why: impl fmt::Display) -> PrivateKeyError {
    PrivateKeyError(format!("the private key is not one for {algorithm}: {why}").into())
}

impl PrivateKeyError {
    const fn new(message: &'static str) -> Self {
        Self(Cow::Borrowed(message))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey")
            .field("algorithm", &self.algorithm)
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for PrivateKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PrivateKeyError {}
