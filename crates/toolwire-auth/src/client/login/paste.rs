//! Logging in where no browser can come back to: the person pastes where it was sent.

use std::{fmt, sync::Arc};

use tokio::time::{Instant, timeout_at};

use super::{
    super::{
        AuthError,
        authorize::{AuthorizationUrl, Callback},
        flow::Redirects,
    },
    Declined, LOGIN_TIMEOUT, LOOPBACK_PORTS, Login, loopback_redirects,
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
        Ok(loopback_redirects(LOOPBACK_PORTS[0]))
    }

    fn ask(&self, url: AuthorizationUrl) -> BoxFuture<'_, Result<Callback, Declined>> {
        Box::pin(async move {
            let deadline = Instant::now() + LOGIN_TIMEOUT;
            for _ in 0..MAX_TRIES {
                let pasted = timeout_at(deadline, (self.ask)(url.as_str().to_owned())).await;
                let pasted = pasted.map_err(|_| Declined::new("nothing was pasted within five minutes"))?;
                let pasted = pasted.ok_or_else(|| Declined::new("nothing was pasted"))?;
                let callback = Callback::from_url(&pasted).filter(|_| came_to(&pasted, url.redirect()));
                if let Some(callback) = callback.filter(|callback| url.is_answered_by(callback)) {
                    return Ok(callback);
                }
            }
            Err(Declined::new("what was pasted is not the address that the browser ended up at"))
        })
    }
}

/// Returns whether an address is that of a redirect, whose scheme browsers may leave out. The answer of another issuer comes to
/// another place.
fn came_to(pasted: &str, redirect: &str) -> bool {
    let place = pasted.trim().split('?').next().unwrap_or_default();
    place == redirect || Some(place) == redirect.strip_prefix("http://")
}

impl fmt::Debug for PasteBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasteBack")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::client::login::listener;

    #[tokio::test]
    async fn what_is_pasted_counts_only_if_it_came_to_the_redirect_of_the_issuer() {
        let redirect = "http://127.0.0.1:17853/callback/issuer";
        let url = listener::tests::page(redirect);
        let state =
            url.as_str().split(['?', '&']).find(|part| part.starts_with("state=")).unwrap().to_owned();
        let at = |place: &str, code: &str| format!("{place}?code={code}&{state}");
        for (good, fine) in [
            (redirect, true),
            ("127.0.0.1:17853/callback/issuer", true),
            ("http://127.0.0.1:17853/callback", false),
            ("", false),
        ] {
            let pasted = [
                at("http://127.0.0.1:17853/callback", "evil"),
                at("http://127.0.0.1:17853/callback/other", "evil"),
                at("https://127.0.0.1:17853/callback/issuer", "evil"),
                format!("  {}\n", at(good, "good")),
            ];
            let left = Mutex::new(pasted.into_iter());
            let person = PasteBack::new(move |_| {
                let next = left.lock().unwrap().next();
                async { next }
            });
            let expected = Callback::from_query(&format!("code=good&{state}"));
            assert_eq!(person.ask(url.clone()).await.ok(), expected.filter(|_| fine), "{good}");
        }
    }
}
