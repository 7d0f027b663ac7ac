//! What a server needs to carry a request from one round to the next.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use toolwire_protocol::{
    RpcError, Version,
    seal::{Binding, KeyError, KeyRing, MAX_SEALED_BYTES, Memory, RequestState, Unsealable},
};

use super::{NonceError, NonceStore};
use crate::CallerKey;

/// The keys that `requestState` is sealed with.
///
/// Every replica of a server needs the same keys: the retry of a request may reach another one. Without keys,
/// a server makes one for its own process and says so once.
///
/// ```
/// use toolwire_server::{Server, StateKeys};
///
/// let keys = StateKeys::new(["the newest secret, 32 bytes or more", "the one before it, also long enough"])?;
/// let server = Server::builder("shop", "1.0").state_keys(keys).build().unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct StateKeys {
    ring: Option<KeyRing>,
    made: Arc<OnceLock<KeyRing>>,
    ttl: Duration,
    audience: Option<String>,
    nonces: Option<Arc<dyn NonceStore>>,
}

impl StateKeys {
    /// Keys made of secrets of at least 32 bytes each: the first seals, all of them open.
    ///
    /// # Errors
    /// When there is none, or one is too short.
    pub fn new<S: AsRef<[u8]>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, KeyError> {
        Ok(Self { ring: Some(KeyRing::new(secrets)?), ..Self::of_this_process() })
    }

    /// Keys from an environment variable: secrets separated by commas, the newest first.
    ///
    /// # Errors
    /// When the variable is not set, or a secret in it is too short.
    pub fn from_env(variable: &str) -> Result<Self, KeyError> {
        let secrets = std::env::var(variable).unwrap_or_default();
        Self::new(secrets.split(',').map(str::trim).filter(|secret| !secret.is_empty()))
    }

    pub(crate) fn of_this_process() -> Self {
        Self { ring: None, made: Arc::default(), ttl: Duration::from_secs(600), audience: None, nonces: None }
    }

    /// How long a client may take to come back. By default ten minutes.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// What the states are for. By default the name of the server; servers that share keys but must not take
    /// each other's states need different ones.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// Lets every state be used only once, as far as `store` remembers.
    #[must_use]
    pub fn single_use(mut self, store: impl NonceStore + 'static) -> Self {
        self.nonces = Some(Arc::new(store));
        self
    }

    fn ring(&self) -> Result<&KeyRing, RpcError> {
        if let Some(ring) = &self.ring {
            return Ok(ring);
        }
        if let Some(ring) = self.made.get() {
            return Ok(ring);
        }
        let made = random::<32>().ok().and_then(|secret| KeyRing::new([secret]).ok());
        let ring = made.ok_or_else(|| RpcError::internal("no randomness to make a key of"))?;
        tracing::warn!(
            "no keys for requestState were given, so this process has made one for itself: retries that reach \
             another replica, or this one after a restart, will be refused. Give keys with ServerBuilder::state_keys"
        );
        Ok(self.made.get_or_init(|| ring))
    }

    /// The keys that were given. Those that the process has made for itself are nothing to keep something with.
    pub(crate) fn given(&self) -> Option<&KeyRing> {
        self.ring.as_ref()
    }

    pub(crate) fn audience_of<'a>(&'a self, server: &'a str) -> &'a str {
        self.audience.as_deref().unwrap_or(server)
    }

    pub(crate) fn seal(
        &self,
        server: &str,
        version: Version,
        binding: &Binding,
        memory: Memory,
    ) -> Result<String, RpcError> {
        let expires = seconds(SystemTime::now()) + self.ttl.as_secs();
        let state = RequestState::new(binding, expires, memory);
        let plain = state.to_plain().map_err(|error| RpcError::internal(error.to_string()))?;
        let nonce = random().map_err(|_| RpcError::internal("no randomness to seal requestState with"))?;
        let sealed = self.ring()?.seal(nonce, self.audience_of(server), version, &plain);
        if sealed.len() > MAX_SEALED_BYTES {
            return Err(RpcError::internal(format!(
                "this request has to remember {} bytes between its rounds, more than the {MAX_SEALED_BYTES} that \
                 are allowed; keep large results of steps elsewhere and remember where",
                sealed.len()
            )));
        }
        Ok(sealed)
    }

    pub(crate) async fn open(
        &self,
        server: &str,
        version: Version,
        binding: &Binding,
        caller: Option<&CallerKey>,
        token: &str,
    ) -> Result<Memory, RpcError> {
        let opened = self.open_or_why(server, version, binding, caller, token).await;
        opened.map_err(|why| {
            tracing::warn!(%why, "a requestState was refused");
            RpcError::invalid_params(Unsealable::MESSAGE)
        })
    }

    async fn open_or_why(
        &self,
        server: &str,
        version: Version,
        binding: &Binding,
        caller: Option<&CallerKey>,
        token: &str,
    ) -> Result<Memory, Unsealable> {
        let ring = self.ring().map_err(|_| Unsealable::UnknownKey)?;
        let opened = ring.open(token, self.audience_of(server), version)?;
        let state = RequestState::from_plain(&opened.plain, binding, seconds(SystemTime::now()))?;
        if let Some(nonces) = &self.nonces {
            let until = UNIX_EPOCH + Duration::from_secs(state.expires);
            let consumed = nonces.consume(caller, opened.nonce, until, SystemTime::now()).await;
            consumed.map_err(|why| {
                if why != NonceError::Used {
                    tracing::warn!(%why, "a requestState cannot be checked for a second use");
                }
                Unsealable::Replayed
            })?;
        }
        Ok(state.memory)
    }
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl fmt::Debug for StateKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateKeys").field("ring", &self.ring).field("ttl", &self.ttl).finish_non_exhaustive()
    }
}
