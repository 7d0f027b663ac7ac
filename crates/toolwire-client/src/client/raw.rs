//! Single exchanges as they are on the wire.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use bytes::Bytes;
use serde::Serialize;
use toolwire_protocol::{
    MethodName, RawJson, RequestId,
    codec::RequestMeta,
    wire::{LoggingLevel, ProgressNotificationParams},
};

use super::{
    Client,
    requester::{OnProgress, Pace},
};
use crate::{error::Error, link::Subject};

/// Sends requests without types, cache or rounds: what the server answers is what comes back.
///
/// The envelope of the version is still written around the parameters, and an error is still an [`Error`].
///
/// ```
/// # use toolwire_client::{Client, Error};
/// # async fn example(client: Client) -> Result<(), Error> {
/// let result = client.raw().request("com.example/status", serde_json::json!({})).await?;
/// println!("{}", result.text());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Raw {
    client: Client,
}

impl Raw {
    pub(super) const fn new(client: Client) -> Self {
        Self { client }
    }

    /// Sends one request and gives the result as it came, `input_required` included.
    ///
    /// Neither the version nor the server's capabilities are checked. Parameters that are [`RawJson`] already are not
    /// decoded: their members go out with their digits and in their order, and only `_meta` is written anew, where the
    /// version has something to say in it. So this is how a request of somebody else is passed on.
    ///
    /// ```
    /// use std::time::Duration;
    /// # use toolwire_client::{Client, Error};
    /// use toolwire_protocol::RawJson;
    ///
    /// # async fn example(client: Client, params: RawJson) -> Result<RawJson, Error> {
    /// let passed_on = client.raw().request("tools/call", params).timeout(Duration::from_secs(10));
    /// passed_on.await
    /// # }
    /// ```
    pub fn request(&self, method: impl Into<MethodName>, params: impl Serialize) -> RawCall {
        RawCall {
            client: self.client.clone(),
            method: method.into(),
            params: RawJson::of(&params),
            timeout: None,
            total_timeout: None,
            log_level: None,
            progress: None,
            on_id: None,
        }
    }

    /// Sends one notification.
    pub async fn notify(
        &self,
        method: impl Into<MethodName>,
        params: impl Serialize + Send + Sync,
    ) -> Result<(), Error> {
        self.client.notify(method, &params).await
    }
}

/// Called with the id of a request before it leaves.
type OnId = Box<dyn FnOnce(&RequestId) + Send>;

/// A request that is sent as it is when it is awaited; from [`Raw::request`]. Dropping its future cancels it.
#[must_use = "nothing is sent until it is awaited"]
pub struct RawCall {
    client: Client,
    method: MethodName,
    /// Parameters that cannot be sent are an error that shows when it is awaited.
    params: serde_json::Result<RawJson>,
    timeout: Option<Duration>,
    total_timeout: Option<Duration>,
    log_level: Option<LoggingLevel>,
    progress: Option<OnProgress>,
    on_id: Option<OnId>,
}

impl RawCall {
    /// How long the server may take without an answer or progress. The clock stands still while this client answers a
    /// question that came during this call.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How long the server may take altogether, whatever progress it makes. The clock stands still while this client
    /// answers a question that came during this call.
    pub const fn total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = Some(timeout);
        self
    }

    /// Asks for the server's log messages of at least this level, for this request of a modern server.
    pub const fn log_level(mut self, level: LoggingLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Asks for progress and calls `call` with each step. It runs while the request is awaited. A token in the
    /// parameters gives way to the client's own.
    pub fn progress(mut self, call: impl FnMut(ProgressNotificationParams) + Send + 'static) -> Self {
        self.progress = Some(Box::new(call));
        self
    }

    /// Tells the id of the request before it leaves, so that whatever the server asks
    /// [meanwhile](crate::ServerRequest::during) can be told to belong to it.
    pub fn on_id(mut self, tell: impl FnOnce(&RequestId) + Send + 'static) -> Self {
        self.on_id = Some(Box::new(tell));
        self
    }

    async fn send(self) -> Result<RawJson, Error> {
        let Self { client, method, params, timeout, total_timeout, log_level, mut progress, on_id } = self;
        let unwritable = |error| Error::invalid_params(&method, error);
        let (settings, requester) = (client.settings(), client.requester());
        let mut pace = Pace {
            idle: timeout.unwrap_or(settings.limits.request_timeout),
            total: total_timeout.unwrap_or(settings.limits.total_timeout),
        };
        let log_level = log_level.or(settings.log_level);
        let meta = RequestMeta { log_level, ..RequestMeta::default() };
        let about = |envelope, message: &Bytes| Subject::of_message(envelope, &method, message);
        let params = params.map_err(unwritable)?;
        let request =
            requester.request_about(client.envelope(), &method, &params, meta, progress.is_some(), about);
        let request = request.map_err(unwritable)?;
        if let Some(tell) = on_id {
            tell(&request.id);
        }
        match requester.carry(request, true, progress.as_mut(), &mut pace).await {
            Ok(result) => result.raw().map_err(|error| Error::invalid_response(&method, error)),
            Err(failure) => Err(requester.explain(&method, failure).await),
        }
    }
}

impl IntoFuture for RawCall {
    type Output = Result<RawJson, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl fmt::Debug for RawCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawCall").field("method", &self.method).finish_non_exhaustive()
    }
}
