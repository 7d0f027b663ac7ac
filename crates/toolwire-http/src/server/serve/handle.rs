//! An endpoint that is served in the background.

use std::{io, net::SocketAddr};

use tokio::{sync::oneshot, task::JoinHandle};

/// An endpoint that is served by a task; made by [`Serve::spawn`](super::Serve::spawn). Dropping it ends the task and
/// every connection at once.
#[derive(Debug)]
#[must_use = "the endpoint is gone when this is dropped"]
pub struct Serving {
    pub(super) address: SocketAddr,
    pub(super) url: String,
    pub(super) stop: Option<oneshot::Sender<()>>,
    /// `None` once it has ended.
    pub(super) task: Option<JoinHandle<io::Result<()>>>,
}

impl Serving {
    /// The address that is listened on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the endpoint, as [`Serve::url`](super::Serve::url).
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends it in an orderly way, as [`Serve::with_graceful_shutdown`](super::Serve::with_graceful_shutdown) does, and
    /// waits for the end.
    ///
    /// # Errors
    /// When it has failed before.
    pub async fn shutdown(mut self) -> io::Result<()> {
        drop(self.stop.take());
        self.ended().await
    }

    /// Waits until it has ended by itself: by the signal it was given, or because the server was shut down.
    ///
    /// # Errors
    /// When it has failed.
    ///
    /// # Cancel safety
    /// It goes on when this future is dropped, and can be waited for again.
    pub async fn ended(&mut self) -> io::Result<()> {
        let Some(task) = &mut self.task else { return Ok(()) };
        let ended = task.await;
        self.task = None;
        ended.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
