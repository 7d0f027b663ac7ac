//! A link between two ends: what is on the way, who waits, and what goes wrong.

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Sleep, sleep};

use super::{Break, Cut, Faults, Plan, Random};

/// What is done at a certain poll.
type Action = Box<dyn FnOnce() + Send>;

/// Which of the two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    There,
    Back,
}

/// A hand on a link, to look at it and to cut it. Clones are about the same one.
#[derive(Clone)]
pub struct LinkHandle(Arc<Mutex<State>>);

struct State {
    there: Way,
    back: Way,
    polls: u64,
    cut: Option<Cut>,
    at_poll: Option<(u64, Action)>,
}

struct Way {
    faults: Faults,
    random: Random,
    pieces: VecDeque<Bytes>,
    delivered: u64,
    sender_gone: bool,
    receiver_gone: bool,
    reset: bool,
    sender: Option<Waker>,
    receiver: Option<Waker>,
}

impl LinkHandle {
    pub(super) fn new(random: &mut Random, plan: Plan) -> Self {
        let state = State {
            there: Way::new(plan.there, random.fork()),
            back: Way::new(plan.back, random.fork()),
            polls: 0,
            cut: plan.cut,
            at_poll: None,
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Ends the link now.
    pub fn cut(&self, how: Break) {
        self.lock().end(how);
    }

    /// Does something at this poll of either end, counted from 1.
    pub fn at_poll(&self, poll: u64, action: impl FnOnce() + Send + 'static) {
        self.lock().at_poll = Some((poll, Box::new(action)));
    }

    /// How often the ends were polled so far.
    pub fn polls(&self) -> u64 {
        self.lock().polls
    }

    /// Counts a poll, and does what is to be done at it.
    fn tick(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.polls += 1;
        let polls = state.polls;
        if let Some(cut) = state.cut.take_if(|cut| cut.at_poll <= polls) {
            state.end(cut.how);
        }
        let Some((_, action)) = state.at_poll.take_if(|(poll, _)| *poll <= polls) else { return state };
        // Without the lock: whatever is ended by this may let go of an end.
        drop(state);
        action();
        self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LinkHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkHandle").field("polls", &self.polls()).finish_non_exhaustive()
    }
}

impl State {
    fn way(&mut self, direction: Direction) -> &mut Way {
        match direction {
            Direction::There => &mut self.there,
            Direction::Back => &mut self.back,
        }
    }

    fn end(&mut self, how: Break) {
        if how == Break::HalfClose {
            self.there.sender_gone = true;
            return self.there.wake();
        }
        for way in [&mut self.there, &mut self.back] {
            (way.sender_gone, way.receiver_gone) = (true, true);
            if how == Break::Reset {
                way.reset = true;
                way.pieces.clear();
            }
            way.wake();
        }
    }
}

impl Way {
    fn new(faults: Faults, random: Random) -> Self {
        Self {
            faults,
            random,
            pieces: VecDeque::new(),
            delivered: 0,
            sender_gone: false,
            receiver_gone: false,
            reset: false,
            sender: None,
            receiver: None,
        }
    }

    fn wake(&mut self) {
        for waker in [self.sender.take(), self.receiver.take()].into_iter().flatten() {
            waker.wake();
        }
    }

    fn wakes_for_nothing(&mut self) -> bool {
        self.random.percent(self.faults.needless_wakes)
    }

    /// What the next piece has to wait for.
    fn gate(&mut self) -> Gate {
        if let Some(stall) = self.faults.stall.take_if(|stall| stall.after <= self.delivered) {
            return stall.time.map_or(Gate::Never, Gate::after);
        }
        match u64::try_from(self.faults.delay.as_millis()).unwrap_or(u64::MAX) {
            0 => Gate::Open,
            longest => Gate::after(Duration::from_millis(self.random.below(longest + 1))),
        }
    }
}

/// Whether the next piece may arrive.
enum Gate {
    Open,
    Later(Pin<Box<Sleep>>),
    Never,
}

impl Gate {
    fn after(time: Duration) -> Self {
        if time.is_zero() { Self::Open } else { Self::Later(Box::pin(sleep(time))) }
    }

    fn poll(&mut self, task: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Open => Poll::Ready(()),
            Self::Later(sleep) => sleep.as_mut().poll(task),
            Self::Never => Poll::Pending,
        }
    }
}

/// One end's half that receives.
pub(super) struct Receiving {
    link: LinkHandle,
    direction: Direction,
    /// Made when the next piece is there: it takes its time from then on.
    gate: Option<Gate>,
}

impl Receiving {
    pub(super) fn new(link: &LinkHandle, direction: Direction) -> Self {
        Self { link: link.clone(), direction, gate: None }
    }

    /// The next piece, of at most so many bytes; `None` when nothing more will come.
    pub(super) fn poll_piece(
        &mut self,
        task: &mut Context<'_>,
        most: usize,
    ) -> Poll<io::Result<Option<Bytes>>> {
        let mut state = self.link.tick();
        let way = state.way(self.direction);
        if way.reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let waits = match way.pieces.front() {
            None if way.sender_gone => return Poll::Ready(Ok(None)),
            None => true,
            Some(_) => self.gate.get_or_insert_with(|| way.gate()).poll(task).is_pending(),
        };
        if waits {
            way.receiver = Some(task.waker().clone());
            if way.wakes_for_nothing() {
                task.waker().wake_by_ref();
            }
            return Poll::Pending;
        }
        let Some(mut piece) = way.pieces.pop_front() else { return Poll::Ready(Ok(None)) };
        if piece.len() > most {
            way.pieces.push_front(piece.split_off(most));
        } else {
            way.delivered += 1;
            self.gate = None;
        }
        if let Some(sender) = way.sender.take() {
            sender.wake();
        }
        Poll::Ready(Ok(Some(piece)))
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        let mut state = self.link.lock();
        let way = state.way(self.direction);
        way.receiver_gone = true;
        way.pieces.clear();
        way.wake();
    }
}

/// One end's half that sends.
pub(super) struct Sending {
    link: LinkHandle,
    direction: Direction,
}

impl Sending {
    pub(super) fn new(link: &LinkHandle, direction: Direction) -> Self {
        Self { link: link.clone(), direction }
    }

    /// Waits until there is room for a piece, and says how large it may be.
    pub(super) fn poll_room(&mut self, task: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut state = self.link.tick();
        let way = state.way(self.direction);
        if way.sender_gone || way.receiver_gone {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if way.pieces.len() < way.faults.capacity {
            return Poll::Ready(Ok(way.faults.piece_bytes));
        }
        way.sender = Some(task.waker().clone());
        if way.wakes_for_nothing() {
            task.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Sends a piece on its way, for which there is room.
    pub(super) fn put(&mut self, piece: Bytes) {
        let mut state = self.link.lock();
        let way = state.way(self.direction);
        way.pieces.push_back(piece);
        if let Some(receiver) = way.receiver.take() {
            receiver.wake();
        }
    }

    /// Says that nothing more will come.
    pub(super) fn end(&mut self) {
        let mut state = self.link.lock();
        let way = state.way(self.direction);
        way.sender_gone = true;
        way.wake();
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.end();
    }
}
