//! The way to one server: directly or through a proxy, with TLS or without.

use std::{
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::timeout;

#[cfg(feature = "client-tls")]
use super::tls::{self, TlsClient};
use super::{
    error::{Kind, NetError},
    origin::Origin,
    proxy::{Proxy, Through},
    stream::Stream,
    tcp::{self, AddressFilter},
};

/// Makes connections to one origin.
#[derive(Debug)]
pub(crate) struct Dialer {
    origin: Origin,
    through: Option<Through>,
    filter: AddressFilter,
    timeout: Duration,
    versions: Versions,
    /// Where the server was found, as long as that is known of all connections.
    reached: Mutex<Option<Vec<IpAddr>>>,
    #[cfg(feature = "client-tls")]
    tls: Option<TlsClient>,
    #[cfg(test)]
    memory: Option<Memory>,
}

/// How many addresses of one server are remembered.
const MAX_REACHED: usize = 64;

/// Where connections lead to in a test.
#[cfg(test)]
#[derive(Debug)]
pub(super) enum Memory {
    /// To the one who has the other end.
    Pipes { accept: tokio::sync::mpsc::UnboundedSender<tokio::io::DuplexStream>, http2: bool },
    /// Nowhere.
    Nowhere,
}

/// Which versions of HTTP are offered where one can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    All,
    /// Newer ones have no upgrade.
    #[cfg_attr(not(feature = "ws"), expect(dead_code, reason = "only WebSockets need it"))]
    Http1,
}

/// A connection that was made.
pub(super) struct Dialed {
    pub(super) stream: Stream,
    pub(super) http2: bool,
}

impl Dialer {
    /// The way to `origin`.
    ///
    /// # Errors
    /// When it takes TLS and that is not compiled in, or the environment names a proxy that cannot be used.
    pub(crate) fn new(
        origin: Origin,
        proxy: &Proxy,
        timeout: Duration,
        versions: Versions,
    ) -> Result<Self, NetError> {
        if origin.is_https() && cfg!(not(feature = "client-tls")) {
            let text = "https:// needs TLS: enable the feature `http-tls` of toolwire (`client-tls` of toolwire-http)";
            return Err(NetError::unsent(Kind::Invalid, text));
        }
        let through = proxy.for_origin(&origin)?;
        Ok(Self {
            origin,
            through,
            filter: AddressFilter::default(),
            timeout,
            versions,
            reached: Mutex::new(Some(Vec::new())),
            #[cfg(feature = "client-tls")]
            tls: None,
            #[cfg(test)]
            memory: None,
        })
    }

    /// Whether TLS is spoken to anybody on the way.
    #[cfg(feature = "client-tls")]
    pub(crate) fn needs_tls(&self) -> bool {
        self.origin.is_https() || self.through.as_ref().is_some_and(|through| through.origin.is_https())
    }

    #[cfg(feature = "client-tls")]
    pub(crate) fn with_tls(self, tls: TlsClient) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Connects only to addresses that the filter lets pass. A proxy is exempt: it is not what was asked for.
    pub(crate) fn with_filter(self, filter: AddressFilter) -> Self {
        Self { filter, ..self }
    }

    /// Whether it turns out only with a connection which version of HTTP is spoken.
    pub(super) fn may_find_http2(&self) -> bool {
        self.origin.is_https() && self.versions == Versions::All
    }

    /// The proxy that requests are written for, if there is one: it is given the whole address.
    pub(super) fn asked_proxy(&self) -> Option<&Through> {
        self.through.as_ref().filter(|_| !self.origin.is_https())
    }

    pub(super) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The addresses that connections were made to; empty where a proxy has made them, or where there were too many.
    pub(super) fn reached(&self) -> Vec<IpAddr> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
    }

    fn note(&self, address: Option<IpAddr>) {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *reached, address) {
            (Some(known), Some(address)) if known.contains(&address) => {}
            (Some(known), Some(address)) if known.len() < MAX_REACHED => known.push(address),
            // A list that lacks one says less than none.
            (list, _) => *list = None,
        }
    }

    /// Connects, within the time that this may take.
    pub(super) async fn dial(&self) -> Result<Dialed, NetError> {
        let dialed = timeout(self.timeout, self.connect()).await;
        dialed.unwrap_or_else(|_| Err(NetError::connect_timeout(self.timeout)))
    }

    async fn connect(&self) -> Result<Dialed, NetError> {
        #[cfg(test)]
        match &self.memory {
            Some(Memory::Pipes { accept, http2 }) => {
                let (near, far) = tokio::io::duplex(16 * 1024);
                accept.send(far).map_err(|_| NetError::unsent(Kind::Refused, "nobody listens"))?;
                return Ok(Dialed { stream: Stream::Memory(near), http2: *http2 });
            }
            Some(Memory::Nowhere) => std::future::pending().await,
            None => {}
        }
        let Some(through) = &self.through else {
            let stream = tcp::connect(self.origin.host(), self.origin.port(), &self.filter).await?;
            self.note(stream.peer_addr().ok().map(|address| address.ip()));
            return self.secure(Stream::Tcp(stream)).await;
        };
        self.note(None);
        let stream = self.reach(through).await?;
        if !self.origin.is_https() {
            return Ok(Dialed { stream, http2: false });
        }
        self.secure(through.tunnel(stream, &self.origin).await?).await
    }

    /// Connects to a proxy.
    async fn reach(&self, through: &Through) -> Result<Stream, NetError> {
        let stream =
            tcp::connect(through.origin.host(), through.origin.port(), &AddressFilter::default()).await;
        let stream = stream.map_err(|error| {
            NetError::unsent(
                error.kind(),
                format!("the proxy {:?} cannot be reached: {error}", through.origin),
            )
        })?;
        match through.origin.is_https() {
            #[cfg(feature = "client-tls")]
            true => {
                let tls = self.tls()?.handshake(stream, through.origin.host(), false).await?;
                Ok(Stream::Tls(Box::new(tls)))
            }
            _ => Ok(Stream::Tcp(stream)),
        }
    }

    #[cfg(not(feature = "client-tls"))]
    #[expect(clippy::unused_async, reason = "with TLS it waits for a handshake")]
    async fn secure(&self, stream: Stream) -> Result<Dialed, NetError> {
        Ok(Dialed { stream, http2: false })
    }

    /// Speaks TLS to the server, if that is what its address says.
    #[cfg(feature = "client-tls")]
    async fn secure(&self, stream: Stream) -> Result<Dialed, NetError> {
        if !self.origin.is_https() {
            return Ok(Dialed { stream, http2: false });
        }
        let (tls, host, both) = (self.tls()?, self.origin.host(), self.versions == Versions::All);
        match stream {
            Stream::Tcp(stream) => {
                let stream = tls.handshake(stream, host, both).await?;
                let http2 = tls::chose_http2(&stream);
                Ok(Dialed { stream: Stream::Tls(Box::new(stream)), http2 })
            }
            stream => {
                let stream = tls.handshake(stream, host, both).await?;
                let http2 = tls::chose_http2(&stream);
                Ok(Dialed { stream: Stream::Nested(Box::new(stream)), http2 })
            }
        }
    }

    #[cfg(feature = "client-tls")]
    fn tls(&self) -> Result<&TlsClient, NetError> {
        // Whoever makes a dialer gives it this where it is needed.
        self.tls.as_ref().ok_or_else(|| NetError::unsent(Kind::Invalid, "TLS was not set up"))
    }

    /// Connections stay inside this process.
    #[cfg(test)]
    pub(super) fn in_memory(timeout: Duration, memory: Memory) -> Self {
        let http2 = matches!(memory, Memory::Pipes { http2: true, .. });
        let url = if http2 { "https://memory.invalid/" } else { "http://memory.invalid/" };
        let url = url::Url::parse(url).expect("it is one");
        let origin = Origin::of(&url).expect("it has one");
        let dialer = Self::new(origin, &Proxy::None, timeout, Versions::All).expect("there is no proxy");
        Self { memory: Some(memory), ..dialer }
    }
}
