//! Moves messages between a WebSocket and the engine, until one of them ends.

use std::{
    borrow::Cow,
    future::{Future as _, poll_fn},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    time::{Instant, MissedTickBehavior, Sleep, interval_at, sleep, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message, Utf8Bytes,
        protocol::{CloseFrame, Role, frame::coding::CloseCode},
    },
};
use toolwire_transport::{
    Duplex as _, Sink as _, Source as _,
    ledger::{BufferCharge, LimitReached},
    memory::{Memory, MemorySink, MemorySource},
};

use super::{
    Bounds, CLOSE_PATIENCE, PINGS,
    heard::{Ear, Heard},
};

/// How a connection ended.
enum Ending {
    /// The engine has nothing more to say.
    Done,
    /// The peer has closed it, and may have said why.
    Left(Option<CloseFrame>),
    /// The peer did something that cannot be answered: with this code, for this reason.
    Refused(CloseCode, Cow<'static, str>),
    /// Nobody is there any more.
    Lost(String),
}

/// Moves messages until there is an end, and says what was wrong, if anything was.
pub(super) async fn run<S>(
    socket: WebSocketStream<Heard<S>>,
    engine: Memory,
    role: Role,
    bounds: Bounds,
    ear: &Ear,
    sending: Option<BufferCharge>,
) -> Option<String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sink, mut stream) = socket.split();
    let (mut outgoing, mut incoming) = engine.split();
    // What is there to be written goes out before the end of the peer is noticed.
    let ending = tokio::select! {
        biased;
        ending = write(&mut sink, &mut outgoing, bounds.silence / PINGS, sending) => ending,
        ending = read(&mut stream, &mut incoming, role, bounds, ear) => ending,
        () = silent(ear, bounds.silence) => Ending::Lost(format!("nothing was heard for {:?}", bounds.silence)),
    };
    // The engine need not wait until the peer has agreed.
    drop((outgoing, incoming));
    let why = ending.why();
    let _ = timeout(CLOSE_PATIENCE, close(ending, role, sink, stream)).await;
    why
}

/// Takes what comes. It ends when the peer does, or must.
async fn read<S>(
    stream: &mut SplitStream<WebSocketStream<S>>,
    incoming: &mut MemorySink,
    role: Role,
    bounds: Bounds,
    ear: &Ear,
) -> Ending
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // Clients mask their frames, which takes four bytes.
    let head = if role == Role::Server { 6 } else { 2 };
    let mut clock = None;
    loop {
        let next = poll_fn(|task| poll_next(stream, ear, &mut clock, bounds, task));
        let text = match next.await {
            Ok(Some(Message::Text(text))) => text,
            // These only show that somebody is there, and are answered below.
            Ok(Some(Message::Ping(data) | Message::Pong(data))) => {
                ear.discount(head + data.len());
                continue;
            }
            Ok(Some(Message::Frame(_))) => continue,
            Ok(Some(Message::Close(frame))) => return Ending::Left(frame),
            Ok(Some(Message::Binary(_))) => {
                let reason = "a message must be a text frame, and a binary one came";
                return Ending::Refused(CloseCode::Unsupported, reason.into());
            }
            Ok(None) => return Ending::Left(None),
            Err(ending) => return ending,
        };
        let came = ear.complete();
        clock = None;
        // An engine that takes nothing more may still have something to say, so this is not the end.
        ear.cover(true);
        let _ = incoming.send(text.into()).await;
        ear.cover(false);
        // From here on, the engine has charged it.
        ear.release(came);
    }
}

/// Polls for the next message. The clock runs while one has begun and is not complete.
fn poll_next<S>(
    stream: &mut SplitStream<WebSocketStream<S>>,
    ear: &Ear,
    clock: &mut Option<Pin<Box<Sleep>>>,
    bounds: Bounds,
    task: &mut Context<'_>,
) -> Poll<Result<Option<Message>, Ending>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if let Poll::Ready(next) = stream.poll_next_unpin(task) {
        return Poll::Ready(next.transpose().map_err(|error| Ending::of(&error, bounds.message_bytes)));
    }
    if !ear.is_unfinished() {
        *clock = None;
        return Poll::Pending;
    }
    let limit = bounds.message_time;
    ready!(clock.get_or_insert_with(|| Box::pin(sleep(limit))).as_mut().poll(task));
    let reason = format!("a message was not complete within {limit:?}");
    Poll::Ready(Err(Ending::Refused(CloseCode::Policy, reason.into())))
}

/// Sends what the engine says, and asks every so often whether somebody is there.
async fn write<S>(
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
    outgoing: &mut MemorySource,
    every: Duration,
    mut charge: Option<BufferCharge>,
) -> Ending
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut pings = interval_at(Instant::now() + every, every.max(Duration::from_millis(1)));
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // Asked first, or a peer that only listens would not be asked as long as there is something to tell it.
        let sent = tokio::select! {
            biased;
            _ = pings.tick() => sink.send(Message::Ping(Bytes::new())).await,
            message = outgoing.receive() => match message {
                Ok(Some(message)) => send_all(sink, outgoing, message, &mut charge).await,
                Ok(None) | Err(_) => return Ending::Done,
            },
        };
        match sent {
            Ok(()) => {}
            // The reading side knows better why.
            Err(Error::ConnectionClosed | Error::AlreadyClosed | Error::Protocol(_)) => {
                std::future::pending::<()>().await;
            }
            Err(error) => return Ending::Lost(error.to_string()),
        }
    }
}

/// Sends one message and all that wait behind it, together.
async fn send_all<S>(
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
    outgoing: &mut MemorySource,
    first: Bytes,
    charge: &mut Option<BufferCharge>,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut next, mut before) = (Some(first), 0);
    while let Some(message) = next {
        if let Some(charge) = charge {
            // The one before may not be written yet.
            charge.set_unchecked(before + message.len());
        }
        before = message.len();
        match Utf8Bytes::try_from(message) {
            Ok(text) => sink.feed(Message::Text(text)).await?,
            // JSON is text, so the engine never makes one.
            Err(error) => tracing::error!(%error, "a message that is not text was not sent"),
        }
        next = tokio::select! {
            biased;
            message = outgoing.receive() => message.ok().flatten(),
            () = std::future::ready(()) => None,
        };
    }
    sink.flush().await?;
    if let Some(charge) = charge {
        charge.set_unchecked(0);
    }
    Ok(())
}

/// Resolves when nothing at all has come for that long.
async fn silent(ear: &Ear, limit: Duration) {
    let every = (limit / PINGS).max(Duration::from_millis(1));
    let mut quiet = 0;
    while quiet < PINGS {
        sleep(every).await;
        quiet = if ear.has_heard() { 0 } else { quiet + 1 };
    }
}

/// Says goodbye, and waits for the peer to do the same.
async fn close<S>(
    ending: Ending,
    role: Role,
    mut sink: SplitSink<WebSocketStream<Heard<S>>, Message>,
    mut stream: SplitStream<WebSocketStream<Heard<S>>>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut agreed = matches!(ending, Ending::Left(_));
    let frame = match ending {
        Ending::Lost(_) => return,
        Ending::Left(_) => None,
        Ending::Done if role == Role::Server => Some((CloseCode::Away, "the server is done".into())),
        Ending::Done => Some((CloseCode::Normal, "the client is done".into())),
        Ending::Refused(code, reason) => Some((code, reason)),
    };
    if let Some((code, reason)) = frame {
        let frame = CloseFrame { code, reason: Utf8Bytes::from(&*reason) };
        if sink.send(Message::Close(Some(frame))).await.is_err() {
            return;
        }
    }
    // This also sends the answer to a goodbye of the peer.
    while let Some(Ok(message)) = stream.next().await {
        agreed |= message.is_close();
    }
    // What a peer that cannot be understood still sends is read all the same, or else the system would take back
    // what that peer was told last.
    if !agreed && let Ok(socket) = sink.reunite(stream) {
        // Without the counting, as nothing of it is kept.
        let mut stream = socket.into_inner().into_inner();
        let mut rest = vec![0; super::BUFFER_BYTES];
        while matches!(stream.read(&mut rest).await, Ok(read) if read > 0) {}
    }
}

impl Ending {
    fn of(error: &Error, limit: usize) -> Self {
        if let Some(reached) = limit_reached(error) {
            return Self::Refused(CloseCode::Again, reached.to_string().into());
        }
        match error {
            Error::Capacity(_) => {
                Self::Refused(CloseCode::Size, format!("a message is longer than {limit} bytes").into())
            }
            Error::Utf8(_) => Self::Refused(CloseCode::Invalid, "a text frame is not UTF-8".into()),
            Error::Protocol(error) if !is_gone(error) => {
                Self::Refused(CloseCode::Protocol, "this is not the WebSocket protocol".into())
            }
            error => Self::Lost(error.to_string()),
        }
    }

    /// What was wrong, in words for a person.
    fn why(&self) -> Option<String> {
        match self {
            Self::Done | Self::Left(None) => None,
            Self::Left(Some(frame)) if frame.code == CloseCode::Normal => None,
            Self::Left(Some(frame)) => Some(format!(
                "the other side closed the WebSocket: {} {}",
                u16::from(frame.code),
                frame.reason
            )),
            Self::Refused(_, reason) => Some(reason.clone().into_owned()),
            Self::Lost(reason) => Some(format!("the WebSocket was lost: {reason}")),
        }
    }
}

/// The limit that made reading fail, if that was the reason.
fn limit_reached(error: &Error) -> Option<&LimitReached> {
    match error {
        Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// Whether the peer has gone without a word, which is not a matter of how it speaks.
fn is_gone(error: &tokio_tungstenite::tungstenite::error::ProtocolError) -> bool {
    matches!(error, tokio_tungstenite::tungstenite::error::ProtocolError::ResetWithoutClosingHandshake)
}
