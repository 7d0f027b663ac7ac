//! Sending with credentials, and again when the server refused the first ones.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, StatusCode};
use tokio::time::{Instant, timeout};
use toolwire_client::link::{Inbox, LinkError};

use super::{Address, Course, Endpoint, Sending};
use crate::client::{
    answer::Answer,
    authorize::{Attempt, Authorize, Hop, Refusal, Verdict},
    fault,
    link::Plans,
    net::Response,
};

/// How often one request is sent again because something has changed since it was refused. Whoever decides has limits
/// of its own; this one is for those that have none.
const MAX_AGAIN: usize = 16;

/// The link that sends the requests.
#[derive(Debug)]
pub(super) struct Attached {
    inbox: Inbox,
    plans: Option<Arc<Plans>>,
    /// Whom the server took the client for when the last request was sent.
    identity: AtomicU64,
}

impl Attached {
    pub(super) fn new(authorize: &dyn Authorize, inbox: Inbox, plans: Option<Arc<Plans>>) -> Self {
        Self { inbox, plans, identity: AtomicU64::new(authorize.identity()) }
    }

    /// Forgets what was said to somebody else.
    fn note(&self, identity: u64) {
        if self.identity.swap(identity, Ordering::AcqRel) != identity {
            self.inbox.identity_changed();
            if let Some(plans) = &self.plans {
                plans.forget();
            }
        }
    }
}

impl Endpoint {
    /// Sends a request with credentials, again where something has changed since they were refused, and again where
    /// the server redirects it within its own origin.
    pub(super) async fn send_authorized(
        &self,
        authorize: &dyn Authorize,
        sending: Sending,
        headers: &(impl Fn() -> HeaderMap + Send + Sync),
    ) -> Result<Response, LinkError> {
        let mut attempt = authorize.attempt(sending.purpose);
        let mut course = Course::new(self);
        let mut again = 0;
        let mut left = sending.patience;
        loop {
            let address = course.address();
            let hop = Hop { method: &sending.method, url: address.url.as_str(), body: &sending.body };
            let own = self.credentials(&mut *attempt, hop).await?;
            if let Some(attached) = &self.attached {
                attached.note(authorize.identity());
            }
            let mut all = self.complete(headers(), &sending.accept, address, !sending.body.is_empty());
            all.extend(own);
            let response = self.once(&sending, address, all, &mut left).await?;
            if matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                let response = self.judge(&mut *attempt, hop, response).await?;
                again += 1;
                match response {
                    Some(response) => return Ok(response),
                    None if again < MAX_AGAIN => continue,
                    None => {
                        return Err(fault::malformed(format!("{} refuses every credential", self.shown())));
                    }
                }
            }
            attempt.answered(hop, response.headers());
            if let Some(response) = course.follow(response)? {
                return Ok(response);
            }
        }
    }

    /// The headers that say who sends a request.
    async fn credentials(&self, attempt: &mut dyn Attempt, hop: Hop<'_>) -> Result<HeaderMap, LinkError> {
        let _thinking = self.attached.as_ref().map(|attached| attached.inbox.thinking());
        attempt.headers(hop).await.map_err(|why| fault::unauthorized(why, &self.shown()))
    }

    /// Sends a request once, within the time that is left for that.
    async fn once(
        &self,
        sending: &Sending,
        address: &Address,
        headers: HeaderMap,
        left: &mut Option<Duration>,
    ) -> Result<Response, LinkError> {
        let began = Instant::now();
        let sent = self.pool.send(sending.method.clone(), &address.target, headers, sending.body.clone());
        let sent = match *left {
            None => sent.await,
            Some(patience) => timeout(patience, sent)
                .await
                .map_err(|_| fault::too_slow(&self.shown(), sending.patience.unwrap_or(patience)))?,
        };
        // What a login takes is not the server's time.
        *left = left.map(|left| left.saturating_sub(began.elapsed()));
        sent.map_err(|error| fault::not_carried(&error, &self.shown()))
    }

    /// Finds out what is to be done about a refusal: gives it back if it is to stand, and nothing if the request is to
    /// be sent again.
    async fn judge(
        &self,
        attempt: &mut dyn Attempt,
        hop: Hop<'_>,
        response: Response,
    ) -> Result<Option<Response>, LinkError> {
        let refusal = Refusal {
            status: response.status(),
            headers: response.headers().clone(),
            reached: self.pool.reached(),
        };
        let verdict = {
            let _thinking = self.attached.as_ref().map(|attached| attached.inbox.thinking());
            attempt.refused(hop, refusal).await
        };
        match verdict {
            Ok(Verdict::Again) => {
                response.into_body().discard();
                Ok(None)
            }
            Ok(Verdict::Stand) => Ok(Some(response)),
            Err(why) => Err(Answer::refusal(response).await.caused_by(why.into_cause())),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        time::sleep,
    };
    use toolwire_transport::BoxFuture;
    use url::Url;

    use super::*;
    use crate::client::{
        authorize::{Purpose, Unauthorized},
        net::{Bounds, Pool},
        settings::{HttpLimits, SEND_TIMEOUT, Settings},
    };

    /// Has a token after a person was asked for ten minutes, or nothing at all.
    #[derive(Clone, Copy, Debug)]
    struct Slow {
        succeeds: bool,
    }

    struct SlowAttempt {
        succeeds: bool,
        token: &'static str,
    }

    impl Authorize for Slow {
        fn attempt(&self, purpose: Purpose) -> Box<dyn Attempt> {
            assert_eq!(purpose, Purpose::Background);
            Box::new(SlowAttempt { succeeds: self.succeeds, token: "Bearer old" })
        }
    }

    impl Attempt for SlowAttempt {
        fn headers<'a>(&'a mut self, _hop: Hop<'a>) -> BoxFuture<'a, Result<HeaderMap, Unauthorized>> {
            let token = HeaderValue::from_static(self.token);
            Box::pin(async { Ok(HeaderMap::from_iter([(http::header::AUTHORIZATION, token)])) })
        }

        fn refused<'a>(
            &'a mut self,
            hop: Hop<'a>,
            refusal: Refusal,
        ) -> BoxFuture<'a, Result<Verdict, Unauthorized>> {
            assert_eq!((refusal.status.as_u16(), hop.url), (401, "http://memory.invalid/mcp"));
            Box::pin(async {
                sleep(Duration::from_secs(600)).await;
                self.token = "Bearer new";
                if self.succeeds {
                    Ok(Verdict::Again)
                } else {
                    Err(Unauthorized::new(std::io::Error::other("nobody came")))
                }
            })
        }

        fn answered(&mut self, _hop: Hop<'_>, _headers: &HeaderMap) {}
    }

    /// Tells a server that knows the new token something.
    async fn told(authorize: Slow) -> Result<(), LinkError> {
        let (pool, mut accepted) = Pool::in_memory(Bounds { header_bytes: 8192, connections: 8 });
        tokio::spawn(async move {
            while let Some(mut stream) = accepted.recv().await {
                tokio::spawn(async move {
                    let mut seen = Vec::new();
                    while stream.read_buf(&mut seen).await.unwrap_or(0) > 0 {
                        let text = String::from_utf8_lossy(&seen).into_owned();
                        if text.ends_with("{}") {
                            let good = text.contains("authorization: Bearer new");
                            let status = if good { 202 } else { 401 };
                            let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
                            stream.write_all(answer.as_bytes()).await.unwrap();
                            seen.clear();
                        }
                    }
                });
            }
        });
        let settings = Settings {
            headers: HeaderMap::new(),
            authorize: Some(Arc::new(authorize)),
            limits: HttpLimits::default(),
            send_timeout: SEND_TIMEOUT,
        };
        let url = Url::parse("http://memory.invalid/mcp").unwrap();
        let endpoint = Endpoint::new(pool, settings, url).unwrap();
        endpoint.tell("{}".into(), HeaderMap::new).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_request_is_sent_again_and_a_login_is_no_timeout() {
        told(Slow { succeeds: true }).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_login_that_fails_is_the_cause_of_the_refusal() {
        let error = told(Slow { succeeds: false }).await.unwrap_err();
        assert!(matches!(error.kind, toolwire_client::link::LinkErrorKind::Status(401, None)), "{error:?}");
        assert_eq!(error.cause.unwrap().to_string(), "nobody came");
    }
}
