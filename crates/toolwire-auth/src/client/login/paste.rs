//! Logging in where no browser can come back to: the person pastes where it was sent.

use std::{fmt, sync::Arc};

use tokio::time::{Instant, timeout_at};

use super::{
    super::{
        AuthError,
        authorize::{AuthorizationUrl, Callback},
        flow::Redirects,
    },
    Declined, LOGIN_TIMEOUT, LOOPBACK_PORTS, Login, loopback,
};
use crate::fetch::BoxFuture;

/// How often a person may paste something that is not the answer.
const MAX_TRIES: usize = 5;

type Ask = dyn Fn(String) -> BoxFuture<'static, Option<String>> + Send + Sync;

/// Shows the page, and takes the address that the browser ends up at, which nobody has to listen at.
#[derive(Clone)]
pub struct PasteBack {
    ask: Arc<Ask>,
}

impl PasteBack {
    /// `ask` is called with the page to show, and gives back what the person pasted, or nothing if they gave up. It is
    /// called again if that was something else.
    pub fn new<F, R>(ask: F) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Option<String>> + Send + 'static,
    {
        Self { ask: Arc::new(move |url| Box::pin(ask(url))) }
    }
}

impl Login for PasteBack {
    fn prepare(&self) -> Result<Redirects, AuthError> {
        let registered: Vec<String> = LOOPBACK_PORTS.into_iter().map(loopback).collect();
        Ok(Redirects { registered, used: loopback(LOOPBACK_PORTS[0]) })
    }

    fn ask(&self, url: AuthorizationUrl) -> BoxFuture<'_, Result<Callback, Declined>> {
        Box::pin(async move {
            let deadline = Instant::now() + LOGIN_TIMEOUT;
            for _ in 0..MAX_TRIES {
                let pasted = timeout_at(deadline, (self.ask)(url.as_str().to_owned())).await;
                let pasted = pasted.map_err(|_| Declined::new("nothing was pasted within five minutes"))?;
                let pasted = pasted.ok_or_else(|| Declined::new("nothing was pasted"))?;
                let callback = Callback::from_url(&pasted);
                if let Some(callback) = callback.filter(|callback| url.is_answered_by(callback)) {
                    return Ok(callback);
                }
            }
            Err(Declined::new("what was pasted is not the address that the browser ended up at"))
        })
    }
}

impl fmt::Debug for PasteBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasteBack")
    }
}
