//! Single exchanges as they are on the wire.

use serde::Serialize;
use toolwire_protocol::{MethodName, RawJson};

use super::{Client, typed_request::Options};
use crate::error::Error;

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
    /// Neither the version nor the server's capabilities are checked.
    pub async fn request(
        &self,
        method: impl Into<MethodName>,
        params: impl Serialize + Send + Sync,
    ) -> Result<RawJson, Error> {
        let method = method.into();
        let result = self.client.ask_once(method.clone(), &params, Options::default()).await?;
        RawJson::parse(result.text()).map_err(|error| Error::invalid_response(&method, error))
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
