//! Unix sockets: many clients of one server on the same machine, told apart by the permissions of a file.
//!
//! Each connection carries one message per line, as a pipe does. What it deliberately does not do: refuse somebody for
//! who connects. Whoever may open the file may talk to the server, which by default is the user who runs it; a server is
//! told which user that was.

mod fault;
mod file;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener as Incoming, UnixSocket as Socket, UnixStream};
use toolwire_protocol::framing::DEFAULT_MAX_MESSAGE_BYTES;

use crate::duplex::LocalPeer;
use crate::lines::Lines;
use crate::listener::Listener;
use file::SocketFile;

pub use fault::UnixError;

/// Who may connect unless [`UnixSocket::mode`] says otherwise: only the user who runs the server.
pub const DEFAULT_MODE: u32 = 0o600;

/// How many clients may wait to be accepted before the system refuses further ones.
pub const BACKLOG: u32 = 128;

/// The time that a message may take from its first byte to its last unless [`UnixSocket::message_timeout`] says otherwise.
pub const DEFAULT_MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection over a unix socket, on either side.
pub type UnixConnection = Lines<OwnedReadHalf, OwnedWriteHalf>;

/// A unix socket by its path: listened at by a server, connected to by clients.
///
/// ```
/// use toolwire_transport::{Duplex, Listener, Sink, Source, UnixSocket};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// # let path = std::env::temp_dir().join(format!("toolwire-doc-{}.sock", std::process::id()));
/// let socket = UnixSocket::new(path);
/// let mut listener = socket.listen().await?;
///
/// let (_, mut sink) = socket.connect().await?.split();
/// sink.send("{}".into()).await?;
/// sink.flush().await?;
///
/// let (mut source, _) = listener.accept().await?.split();
/// assert_eq!(source.receive().await.unwrap().unwrap(), "{}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixSocket {
    path: PathBuf,
    mode: u32,
    max_message_bytes: usize,
    message_timeout: Duration,
}

impl UnixSocket {
    /// The socket at `path`. Nothing is opened yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            mode: DEFAULT_MODE,
            max_message_bytes: DEFAULT_MAX_MESSAGE_BYTES,
            message_timeout: DEFAULT_MESSAGE_TIMEOUT,
        }
    }

    /// Sets the permissions of the file that [`listen`](Self::listen) makes; [`DEFAULT_MODE`] by default. To write
    /// is to connect, so `0o660` lets the group in.
    #[must_use]
    pub const fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the longest message that is received.
    ///
    /// In the worst case the read buffer of each connection takes about twice as much memory.
    #[must_use]
    pub const fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// Sets the timeout for receiving a message that has begun; [`DEFAULT_MESSAGE_TIMEOUT`] by default. A connection
    /// whose peer takes longer ends. One that is between two messages may be idle for any time.
    #[must_use]
    pub const fn message_timeout(mut self, timeout: Duration) -> Self {
        self.message_timeout = timeout;
        self
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Connects to the server that listens there.
    ///
    /// # Errors
    ///
    /// A [`UnixError`] that says what to do when there is no such file, nobody listens, or it may not be opened.
    pub async fn connect(&self) -> io::Result<UnixConnection> {
        let stream = UnixStream::connect(&self.path);
        let stream = stream.await.map_err(|error| UnixError::connecting(&self.path, error))?;
        Ok(framed(stream, self))
    }

    /// Makes the file and listens there. A file that a dead server has left behind is replaced.
    ///
    /// # Errors
    ///
    /// A [`UnixError`] that says what to do when a server listens there already, when there is a file that is no
    /// socket, or when the file cannot be made.
    pub async fn listen(&self) -> io::Result<UnixListener> {
        let failed = |error| io::Error::from(UnixError::listening(&self.path, error));
        let socket = Socket::new_stream()?;
        if let Err(error) = socket.bind(&self.path) {
            if error.kind() != io::ErrorKind::AddrInUse {
                return Err(failed(error));
            }
            file::clear(&self.path).await?;
            socket.bind(&self.path).map_err(failed)?;
        }
        // Nobody can connect before `listen`, so nobody gets in with the permissions that the file is born with.
        let file = SocketFile::made(&self.path, self.mode).map_err(failed)?;
        let incoming = socket.listen(BACKLOG).map_err(failed)?;
        Ok(UnixListener { incoming, file, socket: self.clone() })
    }
}

/// A unix socket that is listened at. Dropping it removes the file.
#[derive(Debug)]
pub struct UnixListener {
    incoming: Incoming,
    file: SocketFile,
    socket: UnixSocket,
}

impl UnixListener {
    /// Where clients connect.
    pub fn path(&self) -> &Path {
        self.file.path()
    }
}

impl Listener for UnixListener {
    type Connection = UnixConnection;

    async fn accept(&mut self) -> io::Result<UnixConnection> {
        let (stream, _) = self.incoming.accept().await?;
        Ok(framed(stream, &self.socket))
    }
}

fn framed(stream: UnixStream, socket: &UnixSocket) -> UnixConnection {
    // Who connected, not who has the socket now. If the system does not tell, it is a stranger.
    let peer = stream.peer_cred().map(|peer| LocalPeer::with_uid(peer.uid()));
    let (reader, writer) = stream.into_split();
    let lines = Lines::new(reader, writer)
        .max_message_bytes(socket.max_message_bytes)
        .message_timeout(socket.message_timeout);
    match peer {
        Ok(peer) => lines.local_peer(peer),
        Err(_) => lines,
    }
}
