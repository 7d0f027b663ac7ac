//! Clients at a WebSocket.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use http::Version;
use tokio::time::timeout;
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Error, Message},
};
use toolwire_testkit::simulation::{ByteEnd, Random, byte_link};
use toolwire_transport::{Duplex, ReceiveError, Sink, Source};

use crate::{
    http::PATIENCE,
    talk::{Line, plan},
    world::World,
};

/// The client's side of a WebSocket.
pub(crate) struct Socket(WebSocketStream<ByteEnd>);

pub(crate) struct SocketSource(SplitStream<WebSocketStream<ByteEnd>>);

pub(crate) struct SocketSink(SplitSink<WebSocketStream<ByteEnd>, Message>);

pub(crate) async fn connect(
    world: &Arc<World>,
    name: &str,
    random: &mut Random,
    is_first: bool,
) -> Option<Line<Socket>> {
    let plan = plan(world, random, is_first);
    let mut reliable = plan.is_reliable();
    world.note(name, &format!("connects: {plan:?}"));
    let (ours, theirs, link) = byte_link(random, plan);
    let service = world.service.clone();
    let serving = world.serve(name, true, async move {
        service.serve_connection(theirs, Version::HTTP_11).await;
    });
    if random.percent(10) {
        reliable = false;
        let (world, name, serving) = (Arc::clone(world), name.to_owned(), serving.clone());
        link.at_poll(random.between(1, 100), move || {
            world.note(&name, "is not served any more");
            serving.abort();
        });
    }
    let opened = timeout(PATIENCE, client_async("ws://localhost/", ours)).await;
    let Ok(Ok((end, _))) = opened else {
        world.note(name, "has no WebSocket");
        return None;
    };
    Some(Line { end: Socket(end), serving, reliable, is_prompt: false })
}

impl Duplex for Socket {
    type Source = SocketSource;
    type Sink = SocketSink;

    fn split(self) -> (SocketSource, SocketSink) {
        let (sink, source) = self.0.split();
        (SocketSource(source), SocketSink(sink))
    }
}

impl Source for SocketSource {
    async fn receive(&mut self) -> Result<Option<Bytes>, ReceiveError> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Ok(Some(text.into())),
                Some(Ok(Message::Close(_))) | None => return Ok(None),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(ReceiveError::Io(broken(error))),
            }
        }
    }
}

impl Sink for SocketSink {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        let text = String::from_utf8_lossy(&message).into_owned();
        self.0.send(Message::text(text)).await.map_err(broken)
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.0.flush().await.map_err(broken)
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.close().await.map_err(broken)
    }
}

fn broken(error: Error) -> io::Error {
    io::Error::other(error)
}
