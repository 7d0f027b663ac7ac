//! One address of a server and everything that is sent there.

mod authorized;

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tokio::time::timeout;
use toolwire_client::link::{Inbox, LinkError};
use url::Url;

use self::authorized::Attached;
use super::{
    answer::Answer,
    authorize::Purpose,
    builder::HttpError,
    events::EventStream,
    fault,
    link::Plans,
    net::{Pool, Response, Target},
    settings::Settings,
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
#[cfg(feature = "ws")]
const ANYTHING: HeaderValue = HeaderValue::from_static("*/*");
const JSON_OR_EVENTS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Sends requests to one address. Clones share their connections.
#[derive(Clone)]
pub(super) struct Endpoint {
    pool: Pool,
    settings: Arc<Settings>,
    address: Arc<Address>,
    /// Whom the credentials of its requests concern.
    attached: Option<Arc<Attached>>,
}

/// A request, apart from the headers that are made for each time it is sent.
struct Sending {
    method: Method,
    body: Bytes,
    accept: HeaderValue,
    purpose: Purpose,
    /// How long the server may take to begin its response.
    patience: Option<Duration>,
}

/// An address, and what it is in a request.
struct Address {
    url: Url,
    target: Target,
}

impl Endpoint {
    pub(super) fn new(pool: Pool, settings: Settings, url: Url) -> Result<Self, HttpError> {
        let address = Address::new(url).map_err(|url| {
            HttpError::new(format!("{} cannot be asked for in a request of HTTP", shown(&url)))
        })?;
        Ok(Self { pool, settings: Arc::new(settings), address: Arc::new(address), attached: None })
    }

    /// The same address as a link uses it. The link is told when the server takes the client for somebody else, and its
    /// clocks stand still while credentials are looked for.
    pub(super) fn attached(&self, inbox: &Inbox, plans: Option<Arc<Plans>>) -> Self {
        let authorize = self.settings.authorize.as_ref();
        let attached = authorize.map(|authorize| Arc::new(Attached::new(&**authorize, inbox.clone(), plans)));
        Self { attached, ..self.clone() }
    }

    /// Whether it has something that can find credentials.
    pub(super) fn asks_for_credentials(&self) -> bool {
        self.settings.authorize.is_some()
    }

    /// Another address of the same server.
    #[cfg(feature = "sse2024")]
    pub(super) fn at(&self, url: Url) -> Option<Self> {
        Some(Self { address: Arc::new(Address::new(url).ok()?), ..self.clone() })
    }

    #[cfg(feature = "sse2024")]
    pub(super) fn url(&self) -> &Url {
        &self.address.url
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The address as it may be shown.
    pub(super) fn shown(&self) -> String {
        shown(&self.address.url)
    }

    /// Posts a request and waits until its response begins. Its `headers` are made for each time it is sent.
    pub(super) async fn ask(
        &self,
        message: Bytes,
        headers: impl Fn() -> HeaderMap + Send + Sync,
    ) -> Result<Response, LinkError> {
        self.send(Sending::post(message, Purpose::Request), headers).await
    }

    /// Posts a message that has no answer; done when the server has accepted it.
    pub(super) async fn tell(
        &self,
        message: Bytes,
        headers: impl Fn() -> HeaderMap + Send + Sync,
    ) -> Result<(), LinkError> {
        let response = self.send(self.in_time(Sending::post(message, Purpose::Background)), headers).await?;
        if response.status().is_success() {
            // Some servers say something all the same.
            response.into_body().discard();
            return Ok(());
        }
        Err(Answer::refusal(response).await)
    }

    /// Asks for a WebSocket, and waits for the response that says whether there is one.
    #[cfg(feature = "ws")]
    pub(super) async fn upgrade(
        &self,
        headers: impl Fn() -> HeaderMap + Send + Sync,
    ) -> Result<Response, LinkError> {
        self.send(self.in_time(Sending::get(ANYTHING, Purpose::Request)), headers).await
    }

    /// Opens an event stream.
    pub(super) async fn listen(
        &self,
        purpose: Purpose,
        headers: impl Fn() -> HeaderMap + Send + Sync,
    ) -> Result<Box<EventStream>, LinkError> {
        let response = self.send(self.in_time(Sending::get(EVENTS, purpose)), headers).await?;
        Answer::stream_of(response, &self.settings.limits).await
    }

    /// Ends a session. Whatever the server says to it, it is over for us.
    pub(super) async fn delete(&self, headers: impl Fn() -> HeaderMap + Send + Sync, patience: Duration) {
        let sending = Sending { method: Method::DELETE, ..Sending::get(JSON_OR_EVENTS, Purpose::Background) };
        match timeout(patience, self.send(sending, headers)).await {
            Ok(Ok(response)) => tracing::debug!(status = %response.status(), "the session was ended"),
            Ok(Err(error)) => tracing::debug!(%error, "the session could not be ended"),
            Err(_) => tracing::debug!("the session could not be ended in time"),
        }
    }

    /// A request that the server has to answer within the time that it has for that.
    fn in_time(&self, sending: Sending) -> Sending {
        Sending { patience: Some(self.settings.send_timeout), ..sending }
    }

    /// Sends a request, with credentials if something gives it some.
    async fn send(
        &self,
        sending: Sending,
        headers: impl Fn() -> HeaderMap + Send + Sync,
    ) -> Result<Response, LinkError> {
        match (&self.settings.authorize, sending.patience) {
            (Some(authorize), _) => {
                Box::pin(self.send_authorized(authorize.as_ref(), sending, &headers)).await
            }
            (None, None) => self.send_plain(&sending, headers).await,
            (None, Some(patience)) => timeout(patience, self.send_plain(&sending, headers))
                .await
                .unwrap_or_else(|_| Err(fault::too_slow(&self.shown(), patience))),
        }
    }

    /// Sends one request, and again where the server redirects it within its own origin.
    async fn send_plain(
        &self,
        sending: &Sending,
        headers: impl Fn() -> HeaderMap + Send + Sync,
    ) -> Result<Response, LinkError> {
        let Sending { method, body, accept, .. } = sending;
        let mut course = Course::new(self);
        loop {
            let address = course.address();
            let headers = self.complete(headers(), accept, address, !body.is_empty());
            let sent = self.pool.send(method.clone(), &address.target, headers, body.clone()).await;
            let response = sent.map_err(|error| fault::not_carried(&error, &self.shown()))?;
            if let Some(response) = course.follow(response)? {
                return Ok(response);
            }
        }
    }

    /// Adds what all requests have to the headers of one.
    fn complete(
        &self,
        mut headers: HeaderMap,
        accept: &HeaderValue,
        address: &Address,
        body: bool,
    ) -> HeaderMap {
        headers.insert(header::HOST, address.target.host.clone());
        headers.insert(header::ACCEPT, accept.clone());
        if body {
            headers.insert(header::CONTENT_TYPE, JSON);
        }
        for (name, value) in &self.settings.headers {
            headers.entry(name).or_insert_with(|| value.clone());
        }
        headers
    }
}

/// Where a request is sent: to the server's address, and from there to where the server redirects it.
struct Course<'a> {
    endpoint: &'a Endpoint,
    redirected: Option<Address>,
    followed: usize,
}

impl<'a> Course<'a> {
    const fn new(endpoint: &'a Endpoint) -> Self {
        Self { endpoint, redirected: None, followed: 0 }
    }

    fn address(&self) -> &Address {
        self.redirected.as_ref().unwrap_or(&*self.endpoint.address)
    }

    /// Gives a response back, unless it redirects the request within the server's own origin: then the request is to be
    /// sent again, to the address that this has now.
    fn follow(&mut self, response: Response) -> Result<Option<Response>, LinkError> {
        let Some(next) = redirect(&response, &self.address().url).and_then(|url| Address::new(url).ok())
        else {
            return Ok(Some(response));
        };
        let most = self.endpoint.settings.limits.redirects;
        if self.followed == most {
            let text = format!("{} redirects more than {most} times", self.endpoint.shown());
            return Err(fault::malformed(text));
        }
        response.into_body().discard();
        self.redirected = Some(next);
        self.followed += 1;
        Ok(None)
    }
}

impl Sending {
    const fn post(body: Bytes, purpose: Purpose) -> Self {
        Self { method: Method::POST, body, accept: JSON_OR_EVENTS, purpose, patience: None }
    }

    const fn get(accept: HeaderValue, purpose: Purpose) -> Self {
        Self { method: Method::GET, body: Bytes::new(), accept, purpose, patience: None }
    }
}

impl Address {
    /// Gives the address back if it cannot be in a request.
    fn new(url: Url) -> Result<Self, Url> {
        match Target::of(&url) {
            Some(target) => Ok(Self { url, target }),
            None => Err(url),
        }
    }
}

/// Where the same request is to be sent again, if that is the same server.
///
/// The status 303 asks for a different request, which there is none of in this protocol.
pub(super) fn redirect(response: &Response, from: &Url) -> Option<Url> {
    let followed = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let location = response.headers().get(header::LOCATION).filter(|_| followed)?.to_str().ok()?;
    within_origin(from, location)
}

/// The address that `reference` leads to from `base`, unless that is another origin.
pub(super) fn within_origin(base: &Url, reference: &str) -> Option<Url> {
    let mut next = base.join(reference).ok()?;
    if next.origin() != base.origin() {
        return None;
    }
    // What the user gave for this origin counts, and not what the server put there.
    next.set_username(base.username()).ok()?;
    next.set_password(base.password()).ok()?;
    next.set_fragment(None);
    Some(next)
}

/// An address without what may be secret: credentials and the query.
pub(super) fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.shown()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_stay_within_their_origin() {
        let base = Url::parse("http://user:secret@host:8080/a/b?key=1").unwrap();
        let to = |reference| within_origin(&base, reference).map(String::from);
        assert_eq!(to("/c").unwrap(), "http://user:secret@host:8080/c");
        assert_eq!(to("c?x=1#y").unwrap(), "http://user:secret@host:8080/a/c?x=1");
        assert_eq!(to("http://host:8080/d").unwrap(), "http://user:secret@host:8080/d");
        assert_eq!(to("http://other@host:8080/d").unwrap(), "http://user:secret@host:8080/d");
        for foreign in [
            "http://host/",
            "https://host:8080/",
            "//evil:8080/",
            "http://host.evil:8080/",
            "file:///x",
            "http://[",
        ] {
            assert_eq!(to(foreign), None, "{foreign}");
        }
        assert_eq!(shown(&base), "http://host:8080/a/b");
    }
}
