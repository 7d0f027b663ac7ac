//! All connections to one origin.

use std::{
    fmt,
    net::IpAddr,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, client::conn::http1::SendRequest};
use tokio::{
    runtime::Handle,
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};

pub(crate) use super::connection::Bounds;
use super::{
    body::{Body, Lease, Response},
    connection::{Connection, Outgoing, was_turned_away},
    dial::Dialer,
    error::NetError,
    idle::Idle,
    origin::Target,
};

/// How often a request is sent that the server has not looked at.
const MAX_SENDS: usize = 3;

/// A connection that nobody has used for this long is closed, and twice as long at most.
pub(super) const IDLE_TIME: Duration = Duration::from_secs(45);

/// How long a connection may take to be ready again after its response is complete.
const SETTLING_TIME: Duration = Duration::from_secs(1);

/// Sends requests to one origin, and keeps connections for the next ones. Clones share them.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Inner>);

struct Inner {
    dialer: Dialer,
    bounds: Bounds,
    idle: Mutex<Idle>,
    /// Held while a connection is made that all others may be able to share.
    dialing: tokio::sync::Mutex<()>,
    /// One for each connection that there may be.
    places: Arc<Semaphore>,
    /// Told when a connection waits that somebody wants.
    returned: Notify,
}

impl Pool {
    pub(crate) fn new(dialer: Dialer, bounds: Bounds) -> Self {
        let (idle, dialing) = (Mutex::default(), tokio::sync::Mutex::default());
        let places = Arc::new(Semaphore::new(bounds.connections.clamp(1, Semaphore::MAX_PERMITS)));
        Self(Arc::new(Inner { dialer, bounds, idle, dialing, places, returned: Notify::new() }))
    }

    /// Connections are pipes whose other ends are handed to the test.
    #[cfg(test)]
    pub(crate) fn in_memory(
        bounds: Bounds,
    ) -> (Self, tokio::sync::mpsc::UnboundedReceiver<tokio::io::DuplexStream>) {
        let (accept, accepted) = tokio::sync::mpsc::unbounded_channel();
        let dialer =
            Dialer::in_memory(Duration::from_secs(10), super::dial::Memory::Pipes { accept, http2: false });
        (Self::new(dialer, bounds), accepted)
    }

    /// The same with HTTP/2.
    #[cfg(all(test, feature = "client-tls"))]
    pub(super) fn in_memory_http2(
        bounds: Bounds,
    ) -> (Self, tokio::sync::mpsc::UnboundedReceiver<tokio::io::DuplexStream>) {
        let (accept, accepted) = tokio::sync::mpsc::unbounded_channel();
        let dialer =
            Dialer::in_memory(Duration::from_secs(10), super::dial::Memory::Pipes { accept, http2: true });
        (Self::new(dialer, bounds), accepted)
    }

    #[cfg(test)]
    pub(super) fn idle_connections(&self) -> usize {
        lock(&self.0.idle).len()
    }

    /// The addresses at which the server was reached, if they are known of all connections.
    pub(crate) fn reached(&self) -> Vec<IpAddr> {
        self.0.dialer.reached()
    }

    /// Sends one request and waits until its response begins.
    ///
    /// It is sent again only if the connection ended before anything was sent, or if the server says that it has not
    /// looked at it.
    pub(crate) async fn send(
        &self,
        method: Method,
        target: &Target,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, NetError> {
        let proxy = self.0.dialer.asked_proxy();
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        if let Some(credentials) = proxy.and_then(|proxy| proxy.credentials.as_ref()) {
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, credentials.clone());
        }
        let mut sends = 1;
        loop {
            let mut connection = self.connection().await?;
            connection.address(&mut request, target, proxy.is_some());
            let copy = connection.is_http2().then(|| request.clone());
            match connection.send(request).await {
                Ok(response) => return Ok(self.lend(response, connection)),
                Err(mut error) => {
                    let unsent = error.take_message();
                    let error = error.into_error();
                    let turned_away = unsent.is_none() && was_turned_away(&error);
                    if unsent.is_some() || error.is_closed() {
                        lock(&self.0.idle).clear();
                    }
                    match unsent.or_else(|| copy.filter(|_| turned_away)) {
                        Some(again) if sends < MAX_SENDS => {
                            tracing::debug!(%error, "a request was not taken; it is sent again");
                            request = restored(again, target);
                            sends += 1;
                        }
                        Some(_) => return Err(NetError::not_taken(&error)),
                        None => return Err(error.into()),
                    }
                }
            }
        }
    }

    /// A connection: one that waits, or a new one.
    async fn connection(&self) -> Result<Connection, NetError> {
        if let Some(waiting) = lock(&self.0.idle).take() {
            return Ok(waiting);
        }
        // Few requests come this far, and the others need not carry the room for it.
        Box::pin(async {
            if self.0.dialer.may_find_http2() {
                return self.shared_connection().await;
            }
            self.one_more().await
        })
        .await
    }

    /// A new connection, or one that was given back while there could be no more of them.
    async fn one_more(&self) -> Result<Connection, NetError> {
        let limit = self.0.dialer.timeout();
        let place = match Arc::clone(&self.0.places).try_acquire_owned() {
            Ok(place) => place,
            Err(_) => match timeout(limit, self.wait()).await {
                Ok(Room::Given(connection)) => return Ok(connection),
                Ok(Room::Place(place)) => place,
                Err(_) => return Err(NetError::no_place(self.0.bounds.connections, limit)),
            },
        };
        Connection::open(self.0.dialer.dial().await?, self.0.bounds, place).await
    }

    /// Waits until a connection is given back, or one of them ends.
    async fn wait(&self) -> Room {
        let _wanting = Wanting::new(&self.0.idle);
        loop {
            let mut returned = pin!(self.0.returned.notified());
            // Listen before looking, or one that is given back between the two would go unnoticed.
            returned.as_mut().enable();
            if let Some(given) = lock(&self.0.idle).take() {
                return Room::Given(given);
            }
            tokio::select! {
                () = returned => {}
                Ok(place) = Arc::clone(&self.0.places).acquire_owned() => return Room::Place(place),
            }
        }
    }

    /// The first connection decides for all who wait for one: they share it, or each makes its own.
    async fn shared_connection(&self) -> Result<Connection, NetError> {
        let limit = self.0.dialer.timeout();
        let turn = timeout(limit, self.0.dialing.lock()).await;
        let turn = turn.map_err(|_| NetError::connect_timeout(limit))?;
        let (waiting, only_http1) = {
            let mut idle = lock(&self.0.idle);
            (idle.take(), idle.is_only_http1())
        };
        if let Some(waiting) = waiting {
            return Ok(waiting);
        }
        if only_http1 {
            drop(turn);
        }
        let connection = self.one_more().await?;
        lock(&self.0.idle).note(&connection);
        if connection.is_http2() {
            self.keep_sweeping();
        }
        Ok(connection)
    }

    /// Ties a connection to the body of its response.
    fn lend(&self, response: http::Response<Incoming>, connection: Connection) -> Response {
        let lease = match connection {
            // What becomes of it is not HTTP any more.
            _ if response.status() == StatusCode::SWITCHING_PROTOCOLS => None,
            Connection::Http1(sender) => Some(Lease::Http1(sender, self.clone())),
            Connection::Http2(shared) => Some(Lease::Http2(shared.users())),
        };
        response.map(|incoming| Body::new(incoming, lease))
    }

    /// Takes a connection back whose response is complete.
    pub(super) fn take_back(self, mut sender: SendRequest<Full<Bytes>>) {
        if sender.is_ready() {
            return self.put(sender);
        }
        if sender.is_closed() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            // The task that reads it is about to find out that the response is complete.
            runtime.spawn(async move {
                if let Ok(Ok(())) = timeout(SETTLING_TIME, sender.ready()).await {
                    self.put(sender);
                }
            });
        }
    }

    fn put(&self, sender: SendRequest<Full<Bytes>>) {
        let (swept, wanted) = {
            let mut idle = lock(&self.0.idle);
            idle.put(sender);
            (idle.sweeper.is_some(), idle.wanted_by > 0)
        };
        if wanted {
            self.0.returned.notify_one();
        }
        if !swept {
            self.keep_sweeping();
        }
    }

    /// Sees to it that old connections are closed.
    fn keep_sweeping(&self) {
        let Ok(runtime) = Handle::try_current() else { return };
        let mut idle = lock(&self.0.idle);
        if idle.sweeper.is_none() {
            let pool = Arc::downgrade(&self.0);
            idle.sweeper = Some(runtime.spawn(sweep(pool)).abort_handle());
        }
    }
}

/// What a request that had to wait for a connection gets.
enum Room {
    Given(Connection),
    Place(OwnedSemaphorePermit),
}

/// A request that waits for a connection.
struct Wanting<'a>(&'a Mutex<Idle>);

impl<'a> Wanting<'a> {
    fn new(idle: &'a Mutex<Idle>) -> Self {
        lock(idle).wanted_by += 1;
        Self(idle)
    }
}

impl Drop for Wanting<'_> {
    fn drop(&mut self) {
        lock(self.0).wanted_by -= 1;
    }
}

/// Closes connections that nobody needs, until there are none.
async fn sweep(pool: Weak<Inner>) {
    loop {
        sleep(IDLE_TIME).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = lock(&pool.idle);
        idle.sweep();
        if idle.is_empty() {
            idle.sweeper = None;
            return;
        }
    }
}

/// A request as it was before it was written for a connection.
fn restored(mut request: Outgoing, target: &Target) -> Outgoing {
    request.headers_mut().insert(header::HOST, target.host.clone());
    request
}

impl Drop for Inner {
    fn drop(&mut self) {
        let idle = self.idle.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(sweeper) = idle.sweeper.take() {
            sweeper.abort();
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("dialer", &self.0.dialer).finish_non_exhaustive()
    }
}

/// Locks without poison: nothing in here leaves a half-changed state behind when it panics.
fn lock(mutex: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
