//! The two ends of a link, for whole messages and for bytes.

use std::{
    fmt,
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use toolwire_transport::{Duplex, ReceiveError, Sink, Source};

use super::{
    LinkHandle, Plan, Random,
    link::{Direction, Receiving, Sending},
};

/// Two ends that carry whole messages.
pub fn message_link(random: &mut Random, plan: Plan) -> (MessageEnd, MessageEnd, LinkHandle) {
    let link = LinkHandle::new(random, plan);
    let end = |receives, sends| MessageEnd {
        source: MessageSource(Receiving::new(&link, receives)),
        sink: MessageSink(Sending::new(&link, sends)),
    };
    (end(Direction::Back, Direction::There), end(Direction::There, Direction::Back), link)
}

/// Two ends that carry bytes.
pub fn byte_link(random: &mut Random, plan: Plan) -> (ByteEnd, ByteEnd, LinkHandle) {
    let link = LinkHandle::new(random, plan);
    let end = |receives, sends| ByteEnd {
        receiving: Receiving::new(&link, receives),
        sending: Sending::new(&link, sends),
    };
    (end(Direction::Back, Direction::There), end(Direction::There, Direction::Back), link)
}

/// One end of a [`message_link`].
pub struct MessageEnd {
    source: MessageSource,
    sink: MessageSink,
}

/// The half of a [`MessageEnd`] that receives.
pub struct MessageSource(Receiving);

/// The half of a [`MessageEnd`] that sends.
pub struct MessageSink(Sending);

impl Duplex for MessageEnd {
    type Source = MessageSource;
    type Sink = MessageSink;

    fn split(self) -> (MessageSource, MessageSink) {
        (self.source, self.sink)
    }
}

impl Source for MessageSource {
    async fn receive(&mut self) -> Result<Option<Bytes>, ReceiveError> {
        poll_fn(|task| self.0.poll_piece(task, usize::MAX)).await.map_err(ReceiveError::Io)
    }
}

impl Sink for MessageSink {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        poll_fn(|task| self.0.poll_room(task)).await?;
        self.0.put(message);
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.end();
        Ok(())
    }
}

/// One end of a [`byte_link`].
pub struct ByteEnd {
    receiving: Receiving,
    sending: Sending,
}

impl AsyncRead for ByteEnd {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(piece) = ready!(self.receiving.poll_piece(task, buf.remaining()))? {
            buf.put_slice(&piece);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ByteEnd {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let most = ready!(self.sending.poll_room(task))?;
        let piece = bytes.get(..most).unwrap_or(bytes);
        if !piece.is_empty() {
            self.sending.put(Bytes::copy_from_slice(piece));
        }
        Poll::Ready(Ok(piece.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sending.end();
        Poll::Ready(Ok(()))
    }
}

macro_rules! opaque {
    ($($name:ident)+) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )+};
}

opaque!(MessageEnd MessageSource MessageSink ByteEnd);

#[cfg(test)]
mod tests;
