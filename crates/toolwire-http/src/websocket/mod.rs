//! WebSocket as a connection that carries messages both ways: one message per text frame.
//!
//! What both sides share: once the handshake is done, they differ only in who masks its frames. To the rest it is a
//! [`Duplex`], so both eras are spoken over it as over a pipe.
//!
//! A connection that is silent is asked whether it is still there, and given up when it does not answer. So is one
//! whose peer begins a message and does not complete it in time. What it deliberately does not do: compress, or take
//! binary frames.

mod drive;
mod fragments;
mod heard;

use std::{
    future::Future,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::protocol::{Role, WebSocketConfig},
};
use toolwire_transport::{
    BoxFuture, Diagnostics, Duplex,
    ledger::{Account, BufferCharge, Ledger},
    memory::{self, Memory, MemorySink, MemorySource},
};

use self::heard::{Ear, Heard};

/// The name by which both sides know that they mean this protocol.
pub(crate) const SUBPROTOCOL: &str = "mcp";

/// How long the peer may take to agree that a connection is over.
pub(crate) const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// How much is read at once, and how much is gathered before it is written: connections are many and mostly idle.
const BUFFER_BYTES: usize = 16 * 1024;

/// How often a silent peer is asked before it is given up.
const PINGS: u32 = 3;

/// What a connection is bounded by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The longest message that is taken.
    pub(crate) message_bytes: usize,
    /// How long the peer may say nothing at all.
    pub(crate) silence: Duration,
    /// The time that a message may take from its first byte to its last.
    pub(crate) message_time: Duration,
}

/// A connection after its handshake: what the engine is given, and the work of moving its messages, which somebody
/// has to do until it is done. What it buffers is charged to `ledger`, if there is one.
pub(crate) async fn open<S>(
    stream: S,
    role: Role,
    bounds: Bounds,
    ledger: Option<&Ledger>,
) -> (Connection, impl Future<Output = ()> + Send + use<S>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // What is written is bounded by one message: the next one is taken when there is room.
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(Some(bounds.message_bytes))
        .max_frame_size(Some(bounds.message_bytes));
    let charge = |account| ledger.map(|ledger| BufferCharge::new(ledger, account));
    let ear = Arc::new(Ear::new(charge(Account::RequestBytes)));
    let sending = charge(Account::AnswerBytes);
    let stream = Heard::new(stream, Arc::clone(&ear), bounds.message_bytes);
    let socket = WebSocketStream::from_raw_socket(stream, role, Some(config)).await;
    let (near, far) = memory::pair();
    let (over, end) = watch::channel(());
    let why = Arc::<OnceLock<String>>::default();
    let connection = Connection { memory: near, end: Arc::new(End { why: Arc::clone(&why), over: end }) };
    let driving = async move {
        if let Some(reason) = drive::run(socket, far, role, bounds, &ear, sending).await {
            tracing::debug!(reason, "a WebSocket ended");
            let _ = why.set(reason);
        }
        drop(over);
    };
    (connection, driving)
}

/// One side of a WebSocket.
#[derive(Debug)]
pub(crate) struct Connection {
    memory: Memory,
    end: Arc<End>,
}

impl Duplex for Connection {
    type Source = MemorySource;
    type Sink = MemorySink;

    fn split(self) -> (MemorySource, MemorySink) {
        self.memory.split()
    }

    fn diagnostics(&self) -> Option<Arc<dyn Diagnostics>> {
        Some(Arc::clone(&self.end) as Arc<dyn Diagnostics>)
    }
}

/// Why and when the connection was over.
#[derive(Debug)]
struct End {
    why: Arc<OnceLock<String>>,
    /// Closed by the one who moves the messages, when that is done.
    over: watch::Receiver<()>,
}

impl End {
    fn over(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut over = self.over.clone();
        async move {
            // Nothing is ever sent, so this waits until the sender is gone.
            let _ = over.changed().await;
        }
    }
}

impl Diagnostics for End {
    fn why_closed(&self) -> BoxFuture<'static, Option<String>> {
        let (over, why) = (self.over(), Arc::clone(&self.why));
        Box::pin(async move {
            over.await;
            why.get().cloned()
        })
    }

    fn shutdown(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.over())
    }
}

#[cfg(test)]
mod tests;
