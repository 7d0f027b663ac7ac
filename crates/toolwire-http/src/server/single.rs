//! One connection that somebody else has accepted.

use std::{pin::pin, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};

use super::{
    HttpService,
    connection::{Connection, Http, Peer},
    graceful::Shutdown,
};

impl HttpService {
    /// Serves one connection over any stream, until its client goes away or
    /// [`Server::shutdown`](toolwire_server::Server::shutdown): HTTP/1.1 or HTTP/2, whichever the client speaks.
    ///
    /// For streams that are accepted in a way of their own. [`serve`](Self::serve) also limits how many connections
    /// there are. A stream has no address, so requests without a [`Principal`](super::Principal) are refused unless the
    /// endpoint is [without addresses](super::HttpBuilder::without_peer_addresses).
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    ///
    /// ```
    /// use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    /// use toolwire_http::server::HttpService;
    /// use toolwire_server::Server;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::builder("clock", "1.0").build()?;
    /// let mcp = HttpService::builder(server).without_peer_addresses().build()?;
    /// let (mut client, stream) = tokio::io::duplex(4096);
    /// tokio::spawn(async move { mcp.serve_connection(stream).await });
    /// client.write_all(b"PUT / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
    /// let mut answer = String::new();
    /// client.read_to_string(&mut answer).await?;
    /// assert!(answer.starts_with("HTTP/1.1 405 "));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn serve_connection<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shared = self.shared();
        let shutdown = Shutdown::new();
        let connection = Connection {
            service: self.clone(),
            http: Arc::new(Http::new(&shared.config.limits)),
            shutdown: shutdown.signal(),
            late: false,
            peer: Peer::default(),
            _permit: None,
        };
        let mut serving = pin!(connection.open(stream, None, None));
        tokio::select! {
            biased;
            () = &mut serving => return,
            () = shared.server.until_shutdown() => {}
        }
        let closed = async { tokio::join!(serving, shutdown.shut_down()) };
        if timeout(shared.server.limits().drain_timeout, closed).await.is_err() {
            tracing::debug!("a connection did not end in time and was closed");
        }
    }
}
