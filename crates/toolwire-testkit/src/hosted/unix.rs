//! At a unix socket.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use toolwire_transport::UnixSocket;

use super::{Hosted, server};
use crate::Target;

impl Hosted<UnixSocket> {
    /// Serves `target` at a socket of its own.
    ///
    /// # Panics
    /// When it is not in this process, or no socket can be made.
    pub(crate) async fn unix(target: &impl Target) -> Self {
        let server = server(target);
        let socket = UnixSocket::new(path());
        let listener = socket.listen().await.expect("no socket can be made");
        Self::new(socket, async move { server.serve_listener(listener).await })
    }
}

fn path() -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("toolwire-testkit-{}-{number}.sock", std::process::id()))
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;
    use toolwire_client::Client;

    use super::*;
    use crate::wire::DEFAULT_PATIENCE;

    #[tokio::test]
    async fn the_socket_is_there_as_long_as_its_client_is() {
        let server = toolwire_server::Server::builder("demo", "1.0").build().unwrap();
        let hosted = Hosted::unix(&server).await;
        let path = hosted.connector.path().to_owned();
        let client = Client::builder("test", "1.0").connect(hosted).await.unwrap();
        client.discover().await.unwrap();
        assert!(path.exists());
        drop(client);
        let gone = async {
            while path.exists() {
                tokio::task::yield_now().await;
            }
        };
        timeout(DEFAULT_PATIENCE, gone).await.expect("it is still served");
    }
}
