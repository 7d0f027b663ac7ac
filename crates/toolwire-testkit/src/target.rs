//! What a test talks to, and over what.

use std::{ffi::OsString, fmt, io};

use toolwire_server::Server;
use toolwire_transport::{ChildProcess, lines::Lines, memory};

use crate::AnyDuplex;

/// How many bytes a [`Link::Pipe`] holds in each direction, like a pipe of the operating system.
pub const PIPE_BYTES: usize = 64 * 1024;

/// A kind of transport between a test and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Link {
    /// Whole messages inside this process.
    Memory,
    /// Lines over byte streams inside this process, with the server's limit on the length of a line.
    Pipe,
    /// Lines over the standard input and output of a child process.
    Child,
    /// HTTP over a socket of this machine: Streamable HTTP, and HTTP+SSE for the revision that has nothing else.
    ///
    /// It is no [`Duplex`](toolwire_transport::Duplex), so it is for Toolwire's own client and not for a
    /// [`Wire`](crate::Wire).
    #[cfg(feature = "http")]
    Http,
    /// WebSocket over a socket of this machine, for Toolwire's own client.
    #[cfg(feature = "http")]
    WebSocket,
    /// A unix socket, for Toolwire's own client.
    #[cfg(all(unix, feature = "unix"))]
    Unix,
}

impl Link {
    /// The links that reach a [`Server`] in this process, byte by byte.
    pub const IN_PROCESS: [Self; 2] = [Self::Memory, Self::Pipe];

    /// The links that Toolwire's own client can take to a [`Server`] in this process; the features `http` and
    /// `unix` add theirs.
    pub const OF_CLIENTS: &[Self] = &[
        Self::Memory,
        Self::Pipe,
        #[cfg(feature = "http")]
        Self::Http,
        #[cfg(feature = "http")]
        Self::WebSocket,
        #[cfg(all(unix, feature = "unix"))]
        Self::Unix,
    ];

    /// Whether it is one connection that carries messages both ways, and not a request for each.
    pub const fn is_duplex(self) -> bool {
        match self {
            #[cfg(feature = "http")]
            Self::Http => false,
            _ => true,
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Pipe => "a pipe",
            Self::Child => "a child process",
            #[cfg(feature = "http")]
            Self::Http => "HTTP",
            #[cfg(feature = "http")]
            Self::WebSocket => "WebSocket",
            #[cfg(all(unix, feature = "unix"))]
            Self::Unix => "a unix socket",
        })
    }
}

/// Something that can be connected to. Implement it to test a server that is reached in another way.
pub trait Target {
    /// Opens a connection to it.
    ///
    /// # Errors
    /// When it cannot be reached over this link.
    fn open(&self, link: Link) -> io::Result<AnyDuplex>;

    /// The link to take where the test does not say which.
    fn usual_link(&self) -> Link {
        Link::Memory
    }

    /// The server itself, where it is in this process; what goes by a socket needs it.
    fn server(&self) -> Option<&Server> {
        None
    }
}

impl Target for Server {
    fn open(&self, link: Link) -> io::Result<AnyDuplex> {
        let server = self.clone();
        match link {
            Link::Memory => {
                let (ours, theirs) = memory::pair();
                let serving = tokio::spawn(async move { server.serve(theirs).await });
                Ok(AnyDuplex::new(ours).served_by(serving))
            }
            Link::Pipe => {
                let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
                let limit = self.limits().message_bytes;
                let (reader, writer) = tokio::io::split(theirs);
                let theirs = Lines::new(reader, writer).max_message_bytes(limit);
                let serving = tokio::spawn(async move { server.serve(theirs).await });
                let (reader, writer) = tokio::io::split(ours);
                Ok(AnyDuplex::new(Lines::new(reader, writer)).served_by(serving))
            }
            Link::Child => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "a Server lives in this process; to test a program give its command as a Program",
            )),
            #[cfg(feature = "http")]
            Link::Http => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "HTTP does not carry a stream of messages; it is for `Setup::client`",
            )),
            #[cfg(feature = "http")]
            Link::WebSocket => Err(for_clients()),
            #[cfg(all(unix, feature = "unix"))]
            Link::Unix => Err(for_clients()),
        }
    }

    fn server(&self) -> Option<&Server> {
        Some(self)
    }
}

/// Why a raw client is not connected by a socket.
#[cfg(any(feature = "http", all(unix, feature = "unix")))]
fn for_clients() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "it takes a while to connect by a socket, so that is for `Setup::client`",
    )
}

/// A server that is a program of its own and speaks on its standard input and output.
///
/// ```no_run
/// use toolwire_protocol::Version;
/// use toolwire_testkit::{Program, Wire};
///
/// # async fn example() {
/// let program = Program::new("target/debug/my-server").arg("--stdio");
/// let wire = Wire::connect(&program, Version::LATEST).await;
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Program {
    command: OsString,
    args: Vec<OsString>,
}

impl Program {
    /// The program to start.
    pub fn new(command: impl Into<OsString>) -> Self {
        Self { command: command.into(), args: Vec::new() }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }
}

impl Target for Program {
    fn open(&self, link: Link) -> io::Result<AnyDuplex> {
        match link {
            Link::Child => {
                let child = ChildProcess::command(&self.command).args(&self.args).spawn()?;
                Ok(AnyDuplex::new(child))
            }
            other => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("a program is reached as a child process, not over {other}"),
            )),
        }
    }

    fn usual_link(&self) -> Link {
        Link::Child
    }
}
