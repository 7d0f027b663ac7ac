//! Two ends inside one process, joined without any bytes being copied.
//!
//! For tests and for a client and a server that live in one program. Each direction holds at most
//! [`MESSAGES`] messages and about [`BYTES`] bytes; a sender that is ahead waits. There is no limit on the size of one
//! message, because both ends belong to the same program.
//!
//! Where a server is at one end, what waits in either direction is charged to its client as soon as it is more than 64 KiB,
//! and senders wait from there on if the client holds more than it may. So all pairs of a server together hold,
//! beyond what its limits allow, at most 64 KiB and one message for each connection and direction.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::duplex::{Duplex, LocalPeer, ReceiveError, Sink, Source};
use crate::ledger::{Account, BufferCharge, Ledger, UNCHARGED_BYTES};
use crate::lock::lock;

/// How many messages may wait in one direction.
pub const MESSAGES: usize = 64;

/// How many bytes may wait in one direction before the sender has to wait: 1 MiB.
///
/// The message that crosses the line is still accepted, so that one of any size can pass.
pub const BYTES: usize = 1024 * 1024;

/// Two connected ends: what one sends, the other receives.
pub fn pair() -> (Memory, Memory) {
    let there = Arc::new(Pipe::default());
    let back = Arc::new(Pipe::default());
    let left = Memory { source: MemorySource(Arc::clone(&back)), sink: MemorySink(Arc::clone(&there)) };
    let right = Memory { source: MemorySource(there), sink: MemorySink(back) };
    (left, right)
}

/// One end of a [`pair`].
#[derive(Debug)]
pub struct Memory {
    source: MemorySource,
    sink: MemorySink,
}

impl Duplex for Memory {
    type Source = MemorySource;
    type Sink = MemorySink;

    fn split(self) -> (MemorySource, MemorySink) {
        (self.source, self.sink)
    }

    fn local_peer(&self) -> Option<LocalPeer> {
        Some(LocalPeer::new())
    }
}

/// The receiving half of a [`Memory`]; dropping it makes the other end's sends fail.
#[derive(Debug)]
pub struct MemorySource(Arc<Pipe>);

/// The sending half of a [`Memory`]; dropping it ends what the other end receives.
#[derive(Debug)]
pub struct MemorySink(Arc<Pipe>);

impl Source for MemorySource {
    async fn receive(&mut self) -> Result<Option<Bytes>, ReceiveError> {
        poll_fn(|cx| lock(&self.0.state).poll_receive(cx)).await.map_err(ReceiveError::Io)
    }

    fn charge_to(&mut self, ledger: &Ledger) {
        self.0.charge(BufferCharge::new(ledger, Account::RequestBytes));
    }
}

impl Sink for MemorySink {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        let mut message = Some(message);
        poll_fn(|cx| lock(&self.0.state).poll_send(cx, &mut message)).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.end_sending();
        Ok(())
    }

    fn charge_to(&mut self, ledger: &Ledger) {
        self.0.charge(BufferCharge::new(ledger, Account::AnswerBytes));
    }
}

impl Drop for MemorySource {
    fn drop(&mut self) {
        self.0.end_receiving();
    }
}

impl Drop for MemorySink {
    fn drop(&mut self) {
        self.0.end_sending();
    }
}

/// One direction, with exactly one sender and one receiver.
#[derive(Debug, Default)]
struct Pipe {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Bytes>,
    bytes: usize,
    sender_gone: bool,
    receiver_gone: bool,
    sender: Option<Waker>,
    receiver: Option<Waker>,
    charge: Option<BufferCharge>,
}

impl Pipe {
    fn charge(&self, charge: BufferCharge) {
        let mut state = lock(&self.state);
        state.charge = Some(charge);
        state.update_charge();
    }

    fn end_sending(&self) {
        let mut state = lock(&self.state);
        state.sender_gone = true;
        wake(&mut state.receiver);
    }

    fn end_receiving(&self) {
        let mut state = lock(&self.state);
        state.receiver_gone = true;
        state.queue.clear();
        state.bytes = 0;
        state.update_charge();
        wake(&mut state.sender);
    }
}

impl State {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        if let Some(message) = self.queue.pop_front() {
            self.bytes -= message.len();
            self.update_charge();
            wake(&mut self.sender);
            return Poll::Ready(Ok(Some(message)));
        }
        if self.sender_gone {
            return Poll::Ready(Ok(None));
        }
        self.receiver = Some(cx.waker().clone());
        Poll::Pending
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, message: &mut Option<Bytes>) -> Poll<io::Result<()>> {
        if self.receiver_gone || self.sender_gone {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if self.queue.len() >= MESSAGES || self.bytes >= BYTES || self.is_over() {
            self.sender = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if let Some(message) = message.take() {
            self.bytes += message.len();
            self.queue.push_back(message);
            self.update_charge();
            wake(&mut self.receiver);
        }
        Poll::Ready(Ok(()))
    }

    /// Returns whether no more may wait than does, because of what else is held for the same client.
    fn is_over(&self) -> bool {
        self.bytes > UNCHARGED_BYTES && self.charge.as_ref().is_some_and(BufferCharge::is_over)
    }

    fn update_charge(&mut self) {
        if let Some(charge) = &mut self.charge {
            charge.set_unchecked(self.bytes);
        }
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
