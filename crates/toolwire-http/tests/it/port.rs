//! A port of the loopback address that belongs to one test until its end.

use std::{io, net::SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

use crate::until;

/// A port that the system gives to nothing else. Connections to it are refused while nothing listens at it.
///
/// Linux lets a listener share its address with a socket that does not listen.
pub(crate) struct Port(TcpSocket);

impl Port {
    /// Reserves a free port with a socket that is bound and never listens.
    pub(crate) fn reserve() -> Self {
        Self(bound(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// Listens at the port, as soon as no other listener does.
    pub(crate) async fn listen(&self) -> TcpListener {
        let mut listener = None;
        until("the old listener has not been closed", async || {
            listener = bound(self.address()).and_then(|socket| socket.listen(128)).ok();
            listener.is_some()
        })
        .await;
        listener.unwrap()
    }
}

/// A socket that shares its address with others that do not listen.
fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}
