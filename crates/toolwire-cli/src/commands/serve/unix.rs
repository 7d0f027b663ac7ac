//! Serving whoever comes to a unix socket.

use std::path::Path;

use toolwire::{Server, UnixSocket};

use super::http::announce;
use crate::{failure::Result, terminal::Terminal};

/// Listens, says where, and serves until the server is shut down.
pub(super) async fn serve(server: &Server, path: &Path, terminal: Terminal) -> Result<()> {
    let listener = UnixSocket::new(path).listen().await?;
    announce(&format!("unix:{}", listener.path().display()), "unix", terminal)?;
    server.serve_listener(listener).await;
    Ok(())
}
