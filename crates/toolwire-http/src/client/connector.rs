//! What a client is given to connect by HTTP.

use std::{io, sync::Arc};

use toolwire_client::{Connection, Connector, FailedConnection, link::Inbox};

use super::{
    builder::{HttpBuilder, HttpError},
    endpoint::Endpoint,
    link::HttpLink,
};

/// A server that is reached by HTTP, at one URL.
///
/// It can be cloned and used for many connections, which then share what is below them.
#[derive(Clone, Debug)]
pub struct Http {
    endpoint: Endpoint,
    means: Means,
}

/// How the server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    /// Each message with a POST of its own.
    Streamable,
    /// A stream for what comes, and another address for what goes.
    #[cfg(feature = "sse2024")]
    Sse2024,
}

/// Tells [`Http`] apart from other connectors.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "it has no values")]
pub enum Remote {}

impl Http {
    /// The server at `url`, with all settings at their defaults.
    pub fn new(url: impl AsRef<str>) -> Result<Self, HttpError> {
        Self::builder(url).build()
    }

    /// The server at `url`, with settings to be made.
    pub fn builder(url: impl AsRef<str>) -> HttpBuilder {
        HttpBuilder::new(url.as_ref())
    }

    /// The URL as it may be shown: without credentials and query.
    pub fn url(&self) -> String {
        self.endpoint.shown()
    }

    pub(super) const fn over(endpoint: Endpoint) -> Self {
        Self { endpoint, means: Means::Streamable }
    }
}

impl Connector<Remote> for Http {
    async fn connect(self, inbox: Inbox) -> io::Result<Connection<Self>> {
        self.try_connect(inbox).await.map_err(|failed| failed.error)
    }

    async fn try_connect(self, inbox: Inbox) -> Result<Connection<Self>, FailedConnection<Self>> {
        let key = Some(self.url());
        match self.means {
            Means::Streamable => {
                #[cfg(feature = "sse2024")]
                let fallback = Some(Self { endpoint: self.endpoint.clone(), means: Means::Sse2024 });
                #[cfg(not(feature = "sse2024"))]
                let fallback = None;
                let link = Arc::new(HttpLink::new(&self.endpoint, inbox));
                Ok(Connection { link, key, again: Some(self), fallback })
            }
            #[cfg(feature = "sse2024")]
            Means::Sse2024 => match super::sse2024::open(&self.endpoint.attached(&inbox, None)).await {
                Ok(duplex) => Ok(Connection::over(duplex, inbox).again(self)),
                Err(error) => Err(FailedConnection { error, again: Some(self) }),
            },
        }
    }
}
