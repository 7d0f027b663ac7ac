//! Who is calling.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{Lack, ScopeError, Scopes};
use crate::{
    Context,
    handler::{FromContext, HandlerSpec, Rejection},
};

/// Who is calling: what an authenticating transport or layer has found out, and puts into the
/// [`Extensions`](crate::Extensions) of a request. Cheap to clone.
///
/// As an argument of a handler it says that the route is not for anonymous callers; `Option<Principal>` leaves it open.
/// It has what a token says, never the token itself.
///
/// ```
/// use serde::Deserialize;
/// use serde_json::json;
/// use toolwire_server::Principal;
///
/// #[derive(Deserialize)]
/// struct Staff { department: String }
///
/// let claims = json!({ "department": "archive", "role": "auditor" });
/// let who = Principal::builder("ada")
///     .issuer("https://login.example")
///     .client_id("notes")
///     .scopes("files:read".parse().unwrap())
///     .claims(claims.as_object().unwrap().clone())
///     .build();
/// assert_eq!(who.subject(), "ada");
/// assert_eq!(who.claim("role"), Some("auditor"));
/// assert_eq!(who.claims::<Staff>().unwrap().department, "archive");
///
/// // The same name is somebody else elsewhere, and so is a user who comes by another client.
/// assert_ne!(who.key(), Principal::new("ada").key());
/// ```
#[derive(Clone)]
pub struct Principal(Arc<Inner>);

struct Inner {
    subject: Arc<str>,
    is_client: bool,
    is_restored: bool,
    issuer: Option<Arc<str>>,
    client_id: Option<Arc<str>>,
    scopes: Scopes,
    claims: Value,
    expires_at: Option<SystemTime>,
    /// Made when it is first asked for.
    key: OnceLock<PrincipalKey>,
}

impl Principal {
    /// A caller by a name that no other one has, with no scopes and no claims.
    pub fn new(subject: impl Into<Arc<str>>) -> Self {
        Self::builder(subject).build()
    }

    /// A caller of whom more is known than a name.
    pub fn builder(subject: impl Into<Arc<str>>) -> PrincipalBuilder {
        PrincipalBuilder {
            subject: subject.into(),
            is_client: false,
            is_restored: false,
            issuer: None,
            client_id: None,
            scopes: Scopes::new(),
            claims: Map::new(),
            expires_at: None,
        }
    }

    /// A caller that is a client and stands for no user. Its subject is its id, and it is nobody else: a user of that name
    /// has another [key](Self::key).
    ///
    /// ```
    /// use toolwire_server::Principal;
    ///
    /// let robot = Principal::client("notes").issuer("https://login.example").build();
    /// let user = Principal::builder("notes").client_id("notes").issuer("https://login.example").build();
    /// assert!(robot.is_client() && !user.is_client());
    /// assert_ne!(robot.key(), user.key());
    /// ```
    pub fn client(client_id: impl Into<Arc<str>>) -> PrincipalBuilder {
        let client_id = client_id.into();
        PrincipalBuilder { is_client: true, ..Self::builder(Arc::clone(&client_id)).client_id(client_id) }
    }

    /// The name of the caller; unique for an issuer (`sub`). That of a [client](Self::is_client) may be that of a user,
    /// too.
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// Returns whether the caller is a client that stands for no user, as far as its issuer tells. Rights of a user by
    /// name are not for it.
    pub fn is_client(&self) -> bool {
        self.0.is_client
    }

    /// Returns whether the caller comes from a record, and is not the sender of a request that is being served.
    #[doc(hidden)]
    pub fn is_restored(&self) -> bool {
        self.0.is_restored
    }

    /// Who says so (`iss`).
    pub fn issuer(&self) -> Option<&str> {
        self.0.issuer.as_deref()
    }

    /// The client that the caller uses (`client_id`).
    pub fn client_id(&self) -> Option<&str> {
        self.0.client_id.as_deref()
    }

    /// What the caller was allowed to do. Routes ask for scopes by themselves; see [`Context::require`].
    pub fn scopes(&self) -> &Scopes {
        &self.0.scopes
    }

    /// The claim with this name, if it is a string. `None` for everything else, so that a comparison fails closed.
    pub fn claim(&self, name: &str) -> Option<&str> {
        self.0.claims.get(name)?.as_str()
    }

    /// The claims as a type of one's own.
    ///
    /// # Errors
    /// When they do not fit, which an `unwrap_or_default` should not hide: the caller would become somebody else.
    pub fn claims<T: DeserializeOwned>(&self) -> Result<T, ClaimsError> {
        T::deserialize(&self.0.claims)
            .map_err(|error| ClaimsError { expected: std::any::type_name::<T>(), reason: error.to_string() })
    }

    /// When what is known of the caller ends to be true, if that is known.
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.0.expires_at
    }

    /// Who it is, in 32 bytes: the same for the same issuer, subject and client, whatever token was presented.
    ///
    /// Sessions, states and tasks belong to it.
    pub fn key(&self) -> PrincipalKey {
        *self.0.key.get_or_init(|| {
            let user = (!self.is_client()).then(|| self.subject());
            PrincipalKey::of([self.issuer(), user, self.client_id()])
        })
    }

    /// What is to be kept of the caller by work that outlives its request: issuer, subject, client and scopes. Claims
    /// and expiry are true of a token, and are not in it.
    ///
    /// ```
    /// use toolwire_server::Principal;
    ///
    /// let ada = Principal::builder("ada").issuer("https://login.example").build();
    /// let again = Principal::from_record(&ada.record()).unwrap();
    /// assert_eq!(ada.key(), again.key());
    /// ```
    pub fn record(&self) -> Value {
        let record = Record {
            issuer: self.issuer().map(Into::into),
            subject: (!self.is_client()).then(|| self.subject().into()),
            client_id: self.client_id().map(Into::into),
            scopes: self.scopes().to_string(),
        };
        // Four texts are never refused.
        serde_json::to_value(record).unwrap_or_default()
    }

    /// The caller of a [`record`](Self::record).
    ///
    /// # Errors
    /// When it is not one. Whoever reads an unreadable record has no caller, not an anonymous one.
    pub fn from_record(record: &Value) -> Result<Self, RecordError> {
        let record = Record::deserialize(record).map_err(|error| RecordError(error.to_string()))?;
        let scopes = Scopes::parse(&record.scopes)
            .map_err(|error: ScopeError| RecordError(format!("scopes: {error}")))?;
        let client_id: Option<Arc<str>> = record.client_id.map(Into::into);
        let mut principal = match (record.subject, &client_id) {
            (Some(subject), _) => Self::builder(subject),
            (None, Some(client)) => Self::client(Arc::clone(client)),
            (None, None) => return Err(RecordError("there is neither a subject nor a client_id".to_owned())),
        };
        principal = principal.scopes(scopes);
        principal.is_restored = true;
        principal.issuer = record.issuer.map(Into::into);
        principal.client_id = client_id;
        Ok(principal.build())
    }
}

/// Claims can be private, so they are not shown.
impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Principal")
            .field("subject", &self.subject())
            .field("issuer", &self.issuer())
            .field("client_id", &self.client_id())
            .field("scopes", self.scopes())
            .finish_non_exhaustive()
    }
}

impl FromContext for Principal {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        cx.principal().cloned().ok_or_else(|| {
            // The route says so before it is called, unless another extractor takes the caller by itself.
            Rejection::absent(cx.lacking(Lack::principal(Scopes::new())))
        })
    }

    fn describe(spec: &mut HandlerSpec) {
        spec.needs_principal();
    }

    fn describe_optional(_: &mut HandlerSpec) {}
}

/// Makes a [`Principal`].
#[derive(Clone)]
#[must_use = "build() makes the principal"]
pub struct PrincipalBuilder {
    subject: Arc<str>,
    is_client: bool,
    is_restored: bool,
    issuer: Option<Arc<str>>,
    client_id: Option<Arc<str>>,
    scopes: Scopes,
    claims: Map<String, Value>,
    expires_at: Option<SystemTime>,
}

impl PrincipalBuilder {
    /// Who has said who the caller is.
    pub fn issuer(mut self, issuer: impl Into<Arc<str>>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// The client that the caller uses.
    pub fn client_id(mut self, client_id: impl Into<Arc<str>>) -> Self {
        self.client_id = Some(client_id.into());
        self
    }

    /// What the caller may do.
    pub fn scopes(mut self, scopes: Scopes) -> Self {
        self.scopes = scopes;
        self
    }

    /// What else is known of the caller.
    pub fn claims(mut self, claims: Map<String, Value>) -> Self {
        self.claims = claims;
        self
    }

    /// When this ends to be true. Streams of the caller end then.
    pub fn expires_at(mut self, expires_at: SystemTime) -> Self {
        self.expires_at = Some(expires_at);
        self
    }

    /// The principal.
    pub fn build(self) -> Principal {
        let Self { subject, is_client, is_restored, issuer, client_id, scopes, claims, expires_at } = self;
        let claims = Value::Object(claims);
        Principal(Arc::new(Inner {
            subject,
            is_client,
            is_restored,
            issuer,
            client_id,
            scopes,
            claims,
            expires_at,
            key: OnceLock::new(),
        }))
    }
}

impl fmt::Debug for PrincipalBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PrincipalBuilder").field(&self.clone().build()).finish()
    }
}

/// Who a [`Principal`] is, as a value of fixed size: a digest of issuer, subject and client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrincipalKey([u8; 32]);

impl PrincipalKey {
    fn of(parts: [Option<&str>; 3]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            // Each with its length, so that none can run into the next; what is absent has one that no text has.
            let length = part.map_or(u64::MAX, |part| part.len() as u64);
            digest.update(length.to_be_bytes());
            digest.update(part.unwrap_or_default());
        }
        Self(digest.finalize().into())
    }

    /// The digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for PrincipalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PrincipalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrincipalKey({self})")
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    /// Absent for a client that stands for no user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    scopes: String,
}

/// The claims of a caller do not fit the type that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimsError {
    expected: &'static str,
    reason: String,
}

impl fmt::Display for ClaimsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the claims of the caller cannot be read as {}: {}", self.expected, self.reason)
    }
}

impl std::error::Error for ClaimsError {}

/// Something is not a [`record`](Principal::record) of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError(String);

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this is not the record of a caller: {}", self.0)
    }
}

impl std::error::Error for RecordError {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_is_of_issuer_subject_and_client_and_nothing_else() {
        let ada = || Principal::builder("ada").issuer("https://login.example").client_id("notes");
        let key = ada().build().key();
        let token = ada()
            .scopes("x".parse().unwrap())
            .claims(Map::from_iter([("jti".to_owned(), json!("2"))]))
            .expires_at(SystemTime::UNIX_EPOCH);
        assert_eq!(token.build().key(), key);
        for other in [
            ada().issuer("https://login.example/").build(),
            ada().client_id("Notes").build(),
            Principal::builder("ada").issuer("https://login.example").build(),
            Principal::builder("ada").client_id("notes").build(),
            Principal::new("ada"),
        ] {
            assert_ne!(other.key(), key, "{other:?}");
        }
    }

    #[test]
    fn parts_of_a_key_cannot_run_into_each_other() {
        let keys = [
            Principal::builder("bc").issuer("a").build(),
            Principal::builder("c").issuer("ab").build(),
            Principal::builder("a").client_id("bc").build(),
            Principal::builder("abc").build(),
            Principal::builder("abc").issuer("").build(),
            Principal::builder("abc").client_id("").build(),
        ]
        .map(|principal| principal.key());
        let different: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
    }

    #[test]
    fn a_record_brings_back_the_caller_without_what_is_true_of_a_token() {
        let who = Principal::builder("ada")
            .issuer("https://login.example")
            .client_id("notes")
            .scopes("b a".parse().unwrap())
            .claims(Map::from_iter([("role".to_owned(), json!("auditor"))]))
            .expires_at(SystemTime::now())
            .build();
        let again = Principal::from_record(&who.record()).unwrap();
        assert_eq!(again.key(), who.key());
        assert_eq!(again.scopes(), who.scopes());
        assert_eq!((again.claim("role"), again.expires_at()), (None, None));
        assert!(again.is_restored() && !who.is_restored());
        for broken in [
            json!(null),
            json!({}),
            json!({"subject": "ada"}),
            json!({"scopes": ""}),
            json!({"subject": "ada", "scopes": "a\tb"}),
            json!({"subject": "ada", "scopes": "", "admin": true}),
        ] {
            assert!(Principal::from_record(&broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_client_is_not_the_user_of_its_name_and_stays_a_client() {
        let robot = Principal::client("notes").issuer("https://login.example").build();
        let user = Principal::builder("notes").issuer("https://login.example").client_id("notes").build();
        assert_eq!((robot.subject(), robot.client_id()), (user.subject(), user.client_id()));
        for who in [&robot, &user] {
            let again = Principal::from_record(&who.record()).unwrap();
            assert_eq!((again.key(), again.is_client()), (who.key(), who.is_client()));
        }
        assert_ne!(robot.key(), user.key());
        assert_ne!(robot.key(), Principal::client("notes").build().key());
        assert_ne!(robot.key(), Principal::client("other").issuer("https://login.example").build().key());
    }

    #[test]
    fn a_claim_that_is_no_string_is_none() {
        let claims = json!({"role": ["auditor"], "level": 3, "name": "Ada"});
        let who = Principal::builder("ada").claims(claims.as_object().unwrap().clone()).build();
        assert_eq!((who.claim("role"), who.claim("level"), who.claim("name")), (None, None, Some("Ada")));
        assert_eq!(who.claims::<std::collections::BTreeMap<String, Value>>().unwrap().len(), 3);
        assert!(who.claims::<Vec<String>>().is_err());
        assert!(!format!("{who:?}").contains("auditor"));
    }
}
