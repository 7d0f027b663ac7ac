//! Moves messages from a fair queue into a sink.

use std::io;

use crate::duplex::Sink;
use crate::fair::FairQueue;

/// Writes what `queue` holds to `sink` until the queue is closed and empty, then closes the sink.
///
/// Everything that waits is handed to the sink before it is flushed, so a busy connection makes one system
/// call for many messages. However this ends, the queue is closed afterwards: nobody waits for a writer
/// that is gone.
pub fn write_loop<S: Sink>(queue: FairQueue, mut sink: S) -> impl Future<Output = io::Result<()>> + Send {
    // Made here, so that it also counts for a future that is dropped before it was ever polled.
    let queue = CloseOnDrop(queue);
    async move {
        while let Some(message) = queue.0.next().await {
            sink.send(message).await?;
            while let Some(message) = queue.0.try_next() {
                sink.send(message).await?;
            }
            sink.flush().await?;
        }
        sink.close().await
    }
}

/// Nobody may go on waiting for a writer that is gone.
struct CloseOnDrop(FairQueue);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
