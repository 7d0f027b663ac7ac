//! The bytes below HTTP: a socket, or TLS over one.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// What a connection is made of.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    /// To the server, or to a proxy.
    #[cfg(feature = "client-tls")]
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
    /// To the server, inside of what goes to the proxy.
    #[cfg(feature = "client-tls")]
    Nested(Box<tokio_rustls::client::TlsStream<Self>>),
    #[cfg(test)]
    Memory(tokio::io::DuplexStream),
}

/// Does the same to whatever it is.
macro_rules! either {
    ($stream:expr, $inner:ident => $do:expr) => {
        match $stream {
            Stream::Tcp($inner) => $do,
            #[cfg(feature = "client-tls")]
            Stream::Tls($inner) => $do,
            #[cfg(feature = "client-tls")]
            Stream::Nested($inner) => $do,
            #[cfg(test)]
            Stream::Memory($inner) => $do,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        either!(self, inner => inner.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_shutdown(cx))
    }
}
