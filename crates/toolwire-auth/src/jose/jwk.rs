//! Public keys as JSON (RFC 7517, 7518 and 8037).

use std::fmt;

use serde_json::{Map, Value, json};

use super::{Algorithm, Compact, JwsError, Payload, compact::strict_object, decode, encode};

/// The most keys that a set may have.
pub const MAX_KEYS: usize = 100;

/// The longest text of a set of keys, in bytes.
pub const MAX_KEY_SET_BYTES: usize = 256 * 1024;

/// How many keys are tried for one token at most.
const MAX_TRIED: usize = 4;

const MIN_RSA_BITS: usize = 2048;
const MAX_RSA_BITS: usize = 8192;

/// Exponents beyond 33 bits make checking slow, and nobody has them.
const MAX_EXPONENT_BYTES: usize = 5;

/// The points of Ed25519 whose order is 1, 2, 4 or 8, without their sign: all that are reduced, and two that are not.
const SMALL_ORDER: [[u8; 32]; 7] = [
    [0; 32],
    [0x1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5,
        0xdf, 0xac, 0x5, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x2, 0x88, 0x6d, 0x53, 0xfc, 0x5,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0xb, 0x76, 0xd, 0x10, 0x67, 0xf, 0x2a,
        0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x3, 0x7a,
    ],
    [
        0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
    ],
    [
        0xed, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
    ],
    [
        0xee, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
    ],
];

/// Members that only private and symmetric keys have.
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// A public key, with what its owner says about its use.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    pub(super) material: Material,
    kid: Option<String>,
    algorithm: Named,
    /// Whether it may be used to check signatures.
    for_signatures: bool,
}

/// The key itself. Points are uncompressed, integers have no leading zeros.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Material {
    P256([u8; 65]),
    P384([u8; 97]),
    Ed25519([u8; 32]),
    Rsa { n: Vec<u8>, e: Vec<u8> },
}

/// The algorithm that a key is said to be for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Any,
    Only(Algorithm),
    /// One that does not exist here.
    Other,
}

/// A key that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JwkError {
    /// Not a JSON object, or not one that every reader understands alike, or a set that is too large.
    Malformed,
    /// A type or a curve that does not exist here.
    UnknownKind,
    /// A member is missing, has the wrong type or the wrong length.
    Member(&'static str),
    /// An RSA key of fewer than 2048 bits.
    TooShort,
    /// An RSA key of more than 8192 bits.
    TooLong,
    /// It contains what has to be kept secret.
    Private,
}

impl PublicKey {
    /// Reads one key.
    pub fn parse(text: &str) -> Result<Self, JwkError> {
        Self::from_members(&strict_object(text.as_bytes()).ok_or(JwkError::Malformed)?)
    }

    pub(super) fn from_members(members: &Map<String, Value>) -> Result<Self, JwkError> {
        let material = Material::from_members(members)?;
        if PRIVATE.iter().any(|name| members.contains_key(*name)) {
            return Err(JwkError::Private);
        }
        let algorithm = match text(members, "alg")? {
            None => Named::Any,
            Some(name) => Algorithm::from_name(name).map_or(Named::Other, Named::Only),
        };
        let operations = match members.get("key_ops") {
            None => true,
            Some(Value::Array(operations)) => operations.iter().any(|operation| operation == "verify"),
            Some(_) => return Err(JwkError::Member("key_ops")),
        };
        let for_signatures = operations && text(members, "use")?.is_none_or(|purpose| purpose == "sig");
        Ok(Self { material, kid: text(members, "kid")?.map(str::to_owned), algorithm, for_signatures })
    }

    pub(super) const fn new(material: Material, kid: Option<String>) -> Self {
        Self { material, kid, algorithm: Named::Any, for_signatures: true }
    }

    pub(super) fn set_kid(&mut self, kid: String) {
        self.kid = Some(kid);
    }

    /// The name that its owner has given it.
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// Whether signatures of that algorithm can and may be checked with it.
    pub fn fits(&self, algorithm: Algorithm) -> bool {
        let named = match self.algorithm {
            Named::Any => true,
            Named::Only(only) => only == algorithm,
            Named::Other => false,
        };
        named && self.for_signatures && self.material.fits(algorithm)
    }

    /// The key as a JSON object, with the members it needs and no other.
    pub fn to_jwk(&self) -> Value {
        match &self.material {
            Material::P256(point) => curve("P-256", point),
            Material::P384(point) => curve("P-384", point),
            Material::Ed25519(x) => json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(x) }),
            Material::Rsa { n, e } => json!({ "kty": "RSA", "n": encode(n), "e": encode(e) }),
        }
    }
}

fn curve(name: &str, point: &[u8]) -> Value {
    let (x, y) = halves(point);
    json!({ "kty": "EC", "crv": name, "x": encode(x), "y": encode(y) })
}

/// The coordinates of an uncompressed point.
pub(super) fn halves(point: &[u8]) -> (&[u8], &[u8]) {
    let coordinates = point.get(1..).unwrap_or_default();
    coordinates.split_at(coordinates.len() / 2)
}

impl Material {
    fn from_members(members: &Map<String, Value>) -> Result<Self, JwkError> {
        let kind = text(members, "kty")?.ok_or(JwkError::Member("kty"))?;
        match (kind, text(members, "crv")?) {
            ("EC", Some("P-256")) => point::<32, 65>(members).map(Self::P256),
            ("EC", Some("P-384")) => point::<48, 97>(members).map(Self::P384),
            ("OKP", Some("Ed25519")) => ed25519(members),
            ("RSA", None) => rsa(members),
            _ => Err(JwkError::UnknownKind),
        }
    }

    pub(super) const fn fits(&self, algorithm: Algorithm) -> bool {
        matches!(
            (self, algorithm),
            (Self::P256(_), Algorithm::Es256)
                | (Self::P384(_), Algorithm::Es384)
                | (Self::Ed25519(_), Algorithm::EdDsa)
                | (Self::Rsa { .. }, Algorithm::Rs256 | Algorithm::Ps256)
        )
    }
}

fn text<'m>(members: &'m Map<String, Value>, name: &'static str) -> Result<Option<&'m str>, JwkError> {
    match members.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(JwkError::Member(name)),
    }
}

fn bytes<const N: usize>(members: &Map<String, Value>, name: &'static str) -> Result<[u8; N], JwkError> {
    let decoded = text(members, name)?.and_then(decode);
    decoded.and_then(|bytes| bytes.try_into().ok()).ok_or(JwkError::Member(name))
}

/// A point, uncompressed. Whether it is on its curve is checked with each signature.
fn point<const N: usize, const POINT: usize>(members: &Map<String, Value>) -> Result<[u8; POINT], JwkError> {
    let (x, y) = (bytes::<N>(members, "x")?, bytes::<N>(members, "y")?);
    let point = [&[4][..], &x, &y].concat();
    point.try_into().map_err(|_| JwkError::Member("x"))
}

/// A point of Ed25519. Those of small order fit signatures that are made without a private key, and the library takes them.
fn ed25519(members: &Map<String, Value>) -> Result<Material, JwkError> {
    let point = bytes::<32>(members, "x")?;
    let mut without_sign = point;
    without_sign[31] &= 0x7f;
    if SMALL_ORDER.contains(&without_sign) {
        Err(JwkError::Member("x"))
    } else {
        Ok(Material::Ed25519(point))
    }
}

fn rsa(members: &Map<String, Value>) -> Result<Material, JwkError> {
    let (n, e) = (integer(members, "n")?, integer(members, "e")?);
    match bits(&n) {
        0..MIN_RSA_BITS => return Err(JwkError::TooShort),
        MIN_RSA_BITS..=MAX_RSA_BITS => {}
        _ => return Err(JwkError::TooLong),
    }
    let odd = |number: &[u8]| number.last().is_some_and(|last| last % 2 == 1);
    if !odd(&n) {
        return Err(JwkError::Member("n"));
    }
    // One is odd, too, and every number is its own signature then.
    if !odd(&e) || e == [1] || e.len() > MAX_EXPONENT_BYTES {
        return Err(JwkError::Member("e"));
    }
    Ok(Material::Rsa { n, e })
}

/// An integer without the leading zeros that some write.
fn integer(members: &Map<String, Value>, name: &'static str) -> Result<Vec<u8>, JwkError> {
    let decoded = text(members, name)?.and_then(decode).ok_or(JwkError::Member(name))?;
    let zeros = decoded.iter().take_while(|byte| **byte == 0).count();
    Ok(decoded.get(zeros..).unwrap_or_default().to_vec())
}

fn bits(number: &[u8]) -> usize {
    number.first().map_or(0, |first| number.len() * 8 - first.leading_zeros() as usize)
}

/// The keys of an issuer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeySet {
    keys: Vec<PublicKey>,
    skipped: usize,
}

impl KeySet {
    /// A set of these keys.
    pub fn of(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        Self { keys: keys.into_iter().collect(), skipped: 0 }
    }

    /// Reads a set. Keys that cannot be used here are [skipped](Self::skipped): of unknown kinds, too short, or with
    /// what should have been kept secret. A set of more than [`MAX_KEYS`] is refused.
    pub fn parse(text: &str) -> Result<Self, JwkError> {
        if text.len() > MAX_KEY_SET_BYTES {
            return Err(JwkError::Malformed);
        }
        let members = strict_object(text.as_bytes()).ok_or(JwkError::Malformed)?;
        let Some(Value::Array(listed)) = members.get("keys") else { return Err(JwkError::Member("keys")) };
        if listed.len() > MAX_KEYS {
            return Err(JwkError::Member("keys"));
        }
        let mut set = Self::default();
        for key in listed {
            let Value::Object(key) = key else { return Err(JwkError::Member("keys")) };
            match PublicKey::from_members(key) {
                Ok(key) => set.keys.push(key),
                Err(_) => set.skipped += 1,
            }
        }
        Ok(set)
    }

    /// How many keys of the text cannot be used here.
    pub const fn skipped(&self) -> usize {
        self.skipped
    }

    /// Whether there is no key.
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys.
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// Whether a key has this name, whatever it can be used for.
    pub fn has_kid(&self, kid: &str) -> bool {
        self.keys.iter().any(|key| key.kid() == Some(kid))
    }

    /// Gives what a token says, if it was signed with one of these keys: the one it names among those that fit its
    /// algorithm, or else one of the first four of those.
    pub fn verify(&self, token: &Compact<'_>) -> Result<Payload, JwsError> {
        let header = token.header();
        let fitting = self.keys.iter().filter(|key| key.fits(header.algorithm()));
        let named = fitting.filter(|key| header.kid().is_none_or(|kid| key.kid() == Some(kid)));
        let mut verdict = JwsError::NoKey;
        for key in named.take(MAX_TRIED) {
            match key.verify(token) {
                Ok(payload) => return Ok(payload),
                Err(error) => verdict = error,
            }
        }
        Err(verdict)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.material {
            Material::P256(_) => "P-256",
            Material::P384(_) => "P-384",
            Material::Ed25519(_) => "Ed25519",
            Material::Rsa { .. } => "RSA",
        };
        f.debug_struct("PublicKey").field("kind", &kind).field("kid", &self.kid).finish_non_exhaustive()
    }
}

impl fmt::Display for JwkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => {
                f.write_str("the key is not a JSON object, has a duplicate member or is too large")
            }
            Self::UnknownKind => f.write_str("the type or the curve of the key is not supported"),
            Self::Member(name) => write!(f, "the member \"{name}\" of the key is missing or not valid"),
            Self::TooShort => write!(f, "an RSA key must have at least {MIN_RSA_BITS} bits"),
            Self::TooLong => write!(f, "an RSA key may have at most {MAX_RSA_BITS} bits"),
            Self::Private => f.write_str("the key has members that must be kept secret"),
        }
    }
}

impl std::error::Error for JwkError {}
