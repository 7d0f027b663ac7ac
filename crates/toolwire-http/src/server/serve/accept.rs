//! From a socket to connections, within the limits, and to their end.

use std::{future::Future, io, net::SocketAddr, pin::pin, sync::Arc};

use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use toolwire_server::engine::Acceptor;
use toolwire_transport::Listener;

#[cfg(feature = "ws")]
use super::GOODBYE_TIME;
use super::Serve;
use crate::server::{
    HttpService, PeerAddr,
    connection::{Connection, Http, Peer},
    graceful::Shutdown,
    peer::AddressShares,
};

/// A socket as a place where clients connect.
struct Tcp(TcpListener);

impl Listener for Tcp {
    type Connection = (TcpStream, SocketAddr);

    async fn accept(&mut self) -> io::Result<Self::Connection> {
        self.0.accept().await
    }
}

/// Accepts connections, and serves each.
pub(super) struct Accepting {
    service: HttpService,
    acceptor: Acceptor<Tcp>,
    /// `None` where everybody comes from the same place.
    shares: Option<AddressShares>,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
    http: Arc<Http>,
}

impl Accepting {
    pub(super) fn new(serve: Serve) -> Self {
        let config = &serve.service.shared().config;
        let limits = &config.limits;
        Self {
            acceptor: Acceptor::new(Tcp(serve.listener), limits.connections),
            shares: (!config.behind_proxy).then(|| AddressShares::new(limits.connections_per_address)),
            http: Arc::new(Http::new(limits)),
            service: serve.service,
            #[cfg(feature = "tls")]
            tls: serve.tls,
        }
    }

    /// Accepts connections until `end`, and gives what is needed to close them.
    pub(super) async fn accept_until(
        &mut self,
        end: impl Future<Output = ()> + Send,
        late: bool,
    ) -> Shutdown {
        let shutdown = Shutdown::new();
        let mut end = pin!(end);
        loop {
            let ((stream, address), permit) = tokio::select! {
                biased;
                () = &mut end => return shutdown,
                accepted = self.acceptor.accept() => accepted,
            };
            let Some(peer) = self.peer(PeerAddr(address)) else {
                // Closed and not kept waiting, or else the connections of others would wait behind it.
                tracing::debug!(%address, "an address has too many connections; one more is closed");
                continue;
            };
            let connection = Connection {
                service: self.service.clone(),
                http: Arc::clone(&self.http),
                shutdown: shutdown.signal(),
                late,
                peer,
                _permit: Some(permit),
            };
            #[cfg(feature = "tls")]
            if let Some(tls) = self.tls.clone() {
                self.acceptor.spawn(connection.run_tls(tls, stream));
                continue;
            }
            self.acceptor.spawn(connection.run_plain(stream));
        }
    }

    /// Who connects, if there may be one more from there.
    fn peer(&self, address: PeerAddr) -> Option<Peer> {
        match &self.shares {
            Some(shares) => Some(Peer { address: Some(address), _share: Some(shares.take(address)?) }),
            None => Some(Peer::default()),
        }
    }

    /// Lets everything that goes on come to its end, within its time. Whoever was sent away may come back for it, and
    /// nobody else is let in.
    pub(super) async fn drain(mut self, shutdown: Shutdown) {
        let service = self.service.clone();
        let limit = service.shared().server.limits().drain_timeout;
        let returning = async {
            let late = self.accept_until(service.shared().legacy.reconnects.all_back(), true).await;
            let connections = self.acceptor.into_tasks();
            late.shut_down().await;
            connections
        };
        let closed = timeout(limit, async { tokio::join!(shutdown.shut_down(), returning) });
        #[cfg(feature = "ws")]
        let (closed, websockets) =
            tokio::join!(closed, timeout(limit + GOODBYE_TIME, service.shared().websockets_closed()));
        #[cfg(not(feature = "ws"))]
        let (closed, websockets) = (closed.await, Ok::<(), ()>(()));
        if closed.is_err() || websockets.is_err() {
            tracing::warn!("some connections did not end in time and were closed");
        }
    }
}
