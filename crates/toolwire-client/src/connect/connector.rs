//! What a client can be connected to.

use std::{fmt, io, sync::Arc};

use toolwire_transport::Duplex;

use crate::link::{DuplexLink, Inbox, Link};

/// Something that a client can be connected to.
///
/// It is implemented for every [`Duplex`] (once), for closures that make one (again and again), with the feature
/// `child` for a child process that is to be started, and with the feature `unix` for a unix socket. `Kind` only
/// tells these apart and is inferred.
///
/// A server that does not survive being asked for its protocol version has to be started a second time. That is
/// why a connector may be used again.
///
/// ```no_run
/// use toolwire_client::{Client, Error};
/// use toolwire_transport::ChildProcess;
///
/// # async fn example() -> Result<(), Error> {
/// let start = || async { ChildProcess::command("some-server").spawn() };
/// let client = Client::builder("demo", "1.0").connect(start).await?;
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "a client cannot be connected to `{Self}`",
    note = "it takes a `Duplex`, an async closure that returns `io::Result<impl Duplex>`, with the feature \
            `child` a `ChildProcess`, or with the feature `unix` a `UnixSocket`"
)]
pub trait Connector<Kind>: Sized + Send {
    /// Makes a connection whose link puts what the server says of its own accord into `inbox`.
    fn connect(self, inbox: Inbox) -> impl Future<Output = io::Result<Connection<Self>>> + Send;

    /// The same, and gives the connector back when it fails, so that it can be tried again. One that says nothing here
    /// is tried once.
    fn try_connect(
        self,
        inbox: Inbox,
    ) -> impl Future<Output = Result<Connection<Self>, FailedConnection<Self>>> + Send {
        async { self.connect(inbox).await.map_err(|error| FailedConnection { error, again: None }) }
    }
}

/// Why there is no connection, and what another attempt can be made with.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "every connector has to say all of it")]
pub struct FailedConnection<C> {
    /// What went wrong.
    pub error: io::Error,
    /// The connector, if it can be used again.
    pub again: Option<C>,
}

/// A connection that was made.
#[expect(clippy::exhaustive_structs, reason = "every connector has to say all of it")]
pub struct Connection<C> {
    /// What carries the messages.
    pub link: Arc<dyn Link>,
    /// What the server is remembered by in an [`EraCache`](super::EraCache), such as its command.
    pub key: Option<String>,
    /// For another connection to the same server, if there can be one.
    pub again: Option<C>,
    /// For a connection by other means, when the server understands nothing that comes this way: a server of
    /// the first revision may only be reached by the HTTP transport of that time.
    pub fallback: Option<C>,
}

impl<C> Connection<C> {
    /// A connection over a [`Duplex`].
    pub fn over(duplex: impl Duplex, inbox: Inbox) -> Self {
        Self { link: Arc::new(DuplexLink::new(duplex, inbox)), key: None, again: None, fallback: None }
    }

    /// Says what the server is remembered by.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Says how to connect again.
    #[must_use]
    pub fn again(mut self, again: C) -> Self {
        self.again = Some(again);
        self
    }
}

/// Tells the implementations of [`Connector`] apart.
pub mod kind {
    /// It is a connection already.
    #[derive(Debug)]
    #[expect(clippy::exhaustive_enums, reason = "it has no values")]
    pub enum Ready {}

    /// It is a closure.
    #[derive(Debug)]
    #[expect(clippy::exhaustive_enums, reason = "it has no values")]
    pub enum Closure {}

    /// It is a command to be run.
    #[derive(Debug)]
    #[expect(clippy::exhaustive_enums, reason = "it has no values")]
    pub enum Command {}

    /// It is a place to connect to.
    #[derive(Debug)]
    #[expect(clippy::exhaustive_enums, reason = "it has no values")]
    pub enum Place {}
}

impl<D: Duplex> Connector<kind::Ready> for D {
    async fn connect(self, inbox: Inbox) -> io::Result<Connection<Self>> {
        Ok(Connection::over(self, inbox))
    }
}

impl<F, Made, D> Connector<kind::Closure> for F
where
    F: FnMut() -> Made + Send,
    Made: Future<Output = io::Result<D>> + Send,
    D: Duplex,
{
    async fn connect(self, inbox: Inbox) -> io::Result<Connection<Self>> {
        self.try_connect(inbox).await.map_err(|failed| failed.error)
    }

    async fn try_connect(mut self, inbox: Inbox) -> Result<Connection<Self>, FailedConnection<Self>> {
        match self().await {
            Ok(duplex) => Ok(Connection::over(duplex, inbox).again(self)),
            Err(error) => Err(FailedConnection { error, again: Some(self) }),
        }
    }
}

#[cfg(feature = "child")]
impl Connector<kind::Command> for toolwire_transport::ChildProcess {
    async fn connect(self, inbox: Inbox) -> io::Result<Connection<Self>> {
        self.try_connect(inbox).await.map_err(|failed| failed.error)
    }

    async fn try_connect(mut self, inbox: Inbox) -> Result<Connection<Self>, FailedConnection<Self>> {
        match self.spawn() {
            Ok(child) => {
                let key = child.handle().command().to_owned();
                Ok(Connection::over(child, inbox).key(key).again(self))
            }
            Err(error) => Err(FailedConnection { error, again: Some(self) }),
        }
    }
}

#[cfg(all(unix, feature = "unix"))]
impl Connector<kind::Place> for toolwire_transport::UnixSocket {
    async fn connect(self, inbox: Inbox) -> io::Result<Connection<Self>> {
        self.try_connect(inbox).await.map_err(|failed| failed.error)
    }

    async fn try_connect(self, inbox: Inbox) -> Result<Connection<Self>, FailedConnection<Self>> {
        // The inherent method: it only makes the connection.
        match Self::connect(&self).await {
            Ok(connection) => {
                let key = format!("unix:{}", self.path().display());
                Ok(Connection::over(connection, inbox).key(key).again(self))
            }
            Err(error) => Err(FailedConnection { error, again: Some(self) }),
        }
    }
}

impl<C> fmt::Debug for Connection<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("link", &self.link).field("key", &self.key).finish_non_exhaustive()
    }
}
