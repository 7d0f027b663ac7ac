//! One connection that somebody else has accepted.

use std::{pin::pin, sync::Arc};

use http::Version;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};

use super::{
    HttpService,
    closing::Closing,
    connection::{Connection, Http, Spoken},
};

impl HttpService {
    /// Serves one connection over any stream, until its client goes away or
    /// [`Server::shutdown`](toolwire_server::Server::shutdown). It speaks HTTP/2 if that is the `version`, and
    /// HTTP/1.1 otherwise.
    ///
    /// For streams that are accepted in a way of their own. [`serve`](Self::serve) also limits how many connections
    /// there are, and finds out the version.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    ///
    /// ```
    /// use http::Version;
    /// use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    /// use toolwire_http::server::HttpService;
    /// use toolwire_server::Server;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mcp = HttpService::new(Server::builder("clock", "1.0").build()?);
    /// let (mut client, stream) = tokio::io::duplex(4096);
    /// tokio::spawn(async move { mcp.serve_connection(stream, Version::HTTP_11).await });
    /// client.write_all(b"PUT / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
    /// let mut answer = String::new();
    /// client.read_to_string(&mut answer).await?;
    /// assert!(answer.starts_with("HTTP/1.1 405 "));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn serve_connection<S>(&self, stream: S, version: Version)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shared = self.shared();
        let closing = Closing::new();
        let connection = Connection {
            service: self.clone(),
            http: Arc::new(Http::new(&shared.config.limits)),
            told: closing.told(),
            late: false,
            _permit: None,
        };
        let spoken = if version == Version::HTTP_2 { Spoken::Http2 } else { Spoken::Http1 };
        let mut serving = pin!(connection.run(stream, None, spoken));
        tokio::select! {
            biased;
            () = &mut serving => return,
            () = shared.server.until_shutdown() => {}
        }
        let closed = async { tokio::join!(serving, closing.close()) };
        if timeout(shared.server.limits().drain_timeout, closed).await.is_err() {
            tracing::debug!("a connection did not end in time and was closed");
        }
    }
}
