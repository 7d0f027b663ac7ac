//! Keys that the operator has written down.

use std::{fmt, time::SystemTime};

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use toolwire_transport::BoxFuture;

use super::{Audience, Expiry, Invalid, PresentedToken, Verified, Verify, VerifyError};

/// The most keys there may be.
pub const MAX_STATIC_KEYS: usize = 1_000;

/// The shortest key: one that cannot be guessed over a network.
const MIN_KEY_BYTES: usize = 16;

/// Keys that stand for callers, written down by the operator: for development and closed networks. They neither expire
/// nor name the server they are for, and whoever takes one away has to restart the server.
///
/// There is a line for each: a name, scopes with commas between them (or `-` for none), and the key. Empty lines and
/// those that begin with `#` do not count. Only digests of the keys are kept.
///
/// ```
/// use toolwire_auth::server::StaticKeys;
///
/// let keys = StaticKeys::parse("
///     alice   files:read,files:write  T1p0q8ZkX3mVYw7bJrK5
///     bob     -                       9uE2sLhQ6nFdGc4aRtMv
/// ")?;
/// # Ok::<(), toolwire_auth::server::StaticKeysError>(())
/// ```
#[derive(Clone)]
pub struct StaticKeys {
    keys: Vec<StaticKey>,
}

#[derive(Clone)]
struct StaticKey {
    name: String,
    scopes: Vec<String>,
    digest: [u8; 32],
}

/// Text that has no keys in it. Nothing of it is repeated.
#[derive(Clone, PartialEq, Eq)]
pub struct StaticKeysError {
    line: Option<usize>,
    what: String,
}

impl StaticKeys {
    /// The keys in an environment variable.
    ///
    /// # Errors
    /// When it is not set, or is not what [`parse`](Self::parse) reads.
    pub fn from_env(variable: &str) -> Result<Self, StaticKeysError> {
        let text = std::env::var(variable).map_err(|_| StaticKeysError {
            line: None,
            what: format!("the environment variable {variable} is not set, or is not text"),
        })?;
        let text = zeroize::Zeroizing::new(text);
        Self::parse(&text)
            .map_err(|error| StaticKeysError { what: format!("{variable}: {}", error.what), ..error })
    }

    /// Reads keys, one in each line.
    ///
    /// # Errors
    /// When there is none, there are too many, one is too short or duplicated, or a line cannot be read.
    pub fn parse(text: &str) -> Result<Self, StaticKeysError> {
        let mut keys: Vec<StaticKey> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let refuse = |what: &str| Err(StaticKeysError { line: Some(number + 1), what: what.to_owned() });
            match StaticKey::parse(line) {
                Ok(key) if keys.iter().any(|known| known.digest == key.digest) => {
                    return refuse("the key is that of another line, too");
                }
                Ok(_) if keys.len() == MAX_STATIC_KEYS => {
                    return refuse("there are too many keys; use an authorization server");
                }
                Ok(key) => keys.push(key),
                Err(what) => return refuse(what),
            }
        }
        if keys.is_empty() {
            return Err(StaticKeysError { line: None, what: "there is no key".to_owned() });
        }
        Ok(Self { keys })
    }

    /// The key with this digest. All are compared, whichever it is, so that the time it takes says nothing.
    fn find(&self, digest: &[u8; 32]) -> Option<&StaticKey> {
        let mut found = 0;
        // Counted from one: nought is nobody.
        for (number, key) in (1_u32..).zip(&self.keys) {
            let same: Choice = key.digest.ct_eq(digest);
            found.conditional_assign(&number, same);
        }
        self.keys.get((found as usize).checked_sub(1)?)
    }
}

impl StaticKey {
    fn parse(line: &str) -> Result<Self, &'static str> {
        let mut fields = line.split_whitespace();
        let (Some(name), Some(scopes), Some(key), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err("the line is not a name, scopes (or -) and a key, with spaces between them");
        };
        if key.len() < MIN_KEY_BYTES {
            return Err("the key has fewer than 16 characters; `openssl rand -base64 32` makes one");
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the key has characters that cannot be sent in a header");
        }
        let scopes = match scopes {
            "-" => Vec::new(),
            scopes => scopes.split(',').map(str::to_owned).collect(),
        };
        if scopes.iter().any(String::is_empty) {
            return Err("a scope is empty");
        }
        Ok(Self { name: name.to_owned(), scopes, digest: Sha256::digest(key).into() })
    }
}

impl Verify for StaticKeys {
    fn may_know(&self, token: &PresentedToken) -> bool {
        self.knows(token)
    }

    fn knows(&self, token: &PresentedToken) -> bool {
        self.find(token.digest()).is_some()
    }

    fn verify<'a>(
        &'a self,
        token: &'a PresentedToken,
        _: SystemTime,
    ) -> BoxFuture<'a, Result<Verified, VerifyError>> {
        let verdict = match self.find(token.digest()) {
            // The operator has said that it is for this server.
            Some(key) => {
                Ok(Verified::new(&*key.name, Audience::Vouched, Expiry::Unknown).scopes(key.scopes.clone()))
            }
            None => Err(Invalid::new("it is none of the keys that were configured").into()),
        };
        Box::pin(std::future::ready(verdict))
    }
}

impl fmt::Debug for StaticKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StaticKeys({} keys)", self.keys.len())
    }
}

impl fmt::Display for StaticKeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line} of the static keys: {}", self.what),
            None => write!(f, "the static keys cannot be read: {}", self.what),
        }
    }
}

/// The text of the error, because `main` shows an error this way.
impl fmt::Debug for StaticKeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for StaticKeysError {}

#[cfg(test)]
mod tests {
    use super::{super::Scheme, *};

    const TEXT: &str = "# name scopes key\n\nalice files:read,files:write T1p0q8ZkX3mVYw7bJrK5\r\nbob - 9uE2sLhQ6nFdGc4aRtMv";

    fn presented(text: &str) -> PresentedToken {
        PresentedToken::new(Scheme::Bearer, text)
    }

    #[tokio::test]
    async fn a_key_stands_for_its_name_and_scopes() {
        let keys = StaticKeys::parse(TEXT).unwrap();
        let alice = keys.verify(&presented("T1p0q8ZkX3mVYw7bJrK5"), SystemTime::now()).await.unwrap();
        assert_eq!(
            (alice.subject.as_str(), alice.scopes),
            ("alice", vec!["files:read".into(), "files:write".into()])
        );
        let bob = keys.verify(&presented("9uE2sLhQ6nFdGc4aRtMv"), SystemTime::now()).await.unwrap();
        assert_eq!((bob.subject.as_str(), bob.scopes.len(), bob.expiry), ("bob", 0, Expiry::Unknown));
    }

    #[tokio::test]
    async fn keys_are_compared_as_a_whole() {
        let keys = StaticKeys::parse(TEXT).unwrap();
        for key in ["", "T1p0q8ZkX3mVYw7bJrK", "T1p0q8ZkX3mVYw7bJrK55", "t1p0q8ZkX3mVYw7bJrK5", "alice", "-"]
        {
            let refused = keys.verify(&presented(key), SystemTime::now()).await;
            assert!(matches!(refused, Err(VerifyError::Invalid(_))), "{key}");
            assert!(!keys.may_know(&presented(key)));
        }
    }

    #[test]
    fn lines_that_cannot_be_read_are_named_by_number_and_never_repeated() {
        let refused = |text: &str| StaticKeys::parse(text).unwrap_err().to_string();
        for (text, part) in [
            ("", "there is no key"),
            ("# nothing", "there is no key"),
            ("\nalice T1p0q8ZkX3mVYw7bJrK5", "line 2 of the static keys: the line is not"),
            ("alice a b T1p0q8ZkX3mVYw7bJrK5", "line 1 of the static keys: the line is not"),
            ("alice - short-marked", "fewer than 16"),
            ("alice a,,b T1p0q8ZkX3mVYw7bJrK5", "a scope is empty"),
            ("alice - T1p0q8ZkX3mVYw7bJr\u{e9}K5", "cannot be sent"),
            (
                "a - T1p0q8ZkX3mVYw7bJrK5\nb - T1p0q8ZkX3mVYw7bJrK5",
                "line 2 of the static keys: the key is that",
            ),
        ] {
            let error = refused(text);
            assert!(error.contains(part), "{error}");
            assert!(!error.contains("T1p0q8") && !error.contains("marked"), "{error}");
        }
        let many: Vec<String> =
            (0..=MAX_STATIC_KEYS).map(|number| format!("a - key-number-{number:020}")).collect();
        assert!(refused(&many.join("\n")).contains("too many keys"));
        assert!(StaticKeys::parse(&many[..MAX_STATIC_KEYS].join("\n")).is_ok());
        let unset = StaticKeys::from_env("TOOLWIRE_NOT_SET_ANYWHERE").unwrap_err();
        assert!(unset.to_string().contains("TOOLWIRE_NOT_SET_ANYWHERE is not set"));
        assert_eq!(format!("{unset:?}"), unset.to_string());
    }

    #[test]
    fn nothing_of_the_keys_is_shown() {
        assert_eq!(format!("{:?}", StaticKeys::parse(TEXT).unwrap()), "StaticKeys(2 keys)");
    }
}
