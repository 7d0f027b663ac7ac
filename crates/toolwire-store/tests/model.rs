//! Every order of events, up to a bound, that three nodes and two tasks can meet.
//!
//! The protocol of leases, fences, answers and cancellations is written down here a second time, as a few rules of
//! who holds what, and the real store in memory is compared with them after each event: claims, writes whose reply is
//! lost and which are repeated, nodes that die, that are late, or that give up, leases that run out, answers and
//! cancellations at any moment. Other stores are bound to the one in memory by the contract that all of them pass.
//!
//! The explorer is our own, because it runs the real store, and because from each state that it finds it also has to be
//! possible for one healthy node to bring all tasks to their end.

#![expect(clippy::unwrap_used, reason = "a test that fails by panicking")]

use std::{
    collections::{BTreeSet, HashSet, VecDeque},
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use toolwire_protocol::{
    RawJson, Version,
    wire::TaskStatus::{self, Cancelled, Completed, InputRequired, Working},
};
use toolwire_store::{
    Advance, Answer, Claim, Finish, Hub, Lease, NewTask, NodeId, OpenQuestion, Outcome, Owner, Park, Quota,
    StoreError, TaskId, TaskNote, TaskRequest, TaskStore, Token,
    memory::{Clock, MemoryLimits, MemoryTasks, TasksAtOnce},
};

const NODES: usize = 3;
const TASKS: usize = 2;
const LEASE: Duration = Duration::from_secs(20);
/// Longer than any lease, and any pause after one.
const TICK: Duration = Duration::from_secs(20 * 20);
const OWNER: Owner = Owner::Local(None);

/// What the function of each task does: a step, a question, another step, the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Work {
    First,
    Ask,
    Second,
    Finish,
}

/// What is in a journal, as bits.
const FIRST: u8 = 1;
const ANSWER: u8 = 2;
const SECOND: u8 = 4;

impl Work {
    fn after(knows: u8) -> Self {
        match knows {
            knows if knows & FIRST == 0 => Self::First,
            knows if knows & ANSWER == 0 => Self::Ask,
            knows if knows & SECOND == 0 => Self::Second,
            _ => Self::Finish,
        }
    }

    fn write(self) -> Advance {
        match self {
            Self::First => Advance::Record(vec![json(r#""first""#)]),
            Self::Second => Advance::Record(vec![json(r#""second""#)]),
            Self::Finish => Advance::Finish(Finish::new(Outcome::Result(json("{}")))),
            Self::Ask => {
                let mut park = Park::default();
                park.open = vec![OpenQuestion { key: "q".to_owned(), question: json("{}") }];
                Advance::Park(park)
            }
        }
    }
}

fn json(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

/// The bits of a journal. Each entry may be there once.
fn bits(journal: &[RawJson]) -> u8 {
    let mut bits = 0;
    for entry in journal {
        let bit = match entry.text() {
            r#""first""# => FIRST,
            r#""answer""# => ANSWER,
            r#""second""# => SECOND,
            other => panic!("nobody wrote {other}"),
        };
        assert_eq!(bits & bit, 0, "{} was recorded twice", entry.text());
        bits |= bit;
    }
    bits
}

/// What a node believes of a task that it works on.
#[derive(Clone, Debug)]
struct Run {
    lease: Lease,
    knows: u8,
    /// The number of its last write.
    n: u64,
    /// A write whose reply was lost, which it has to repeat.
    unsure: Option<Work>,
}

/// How a task stands, by the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Ready,
    /// Whether its time is over, so that somebody else may claim it.
    Leased {
        over: bool,
    },
    Parked,
    Ended(bool),
}

#[derive(Clone, Debug)]
struct Rules {
    phase: Phase,
    /// Whose writes are taken.
    holder: Option<Token>,
    /// Who may repeat what he wrote: the last one whose writes were taken.
    last: Option<Token>,
    fence: u64,
    recorded: u8,
    open: bool,
}

impl Rules {
    fn status(&self) -> TaskStatus {
        match self.phase {
            Phase::Ended(true) => Cancelled,
            Phase::Ended(false) => Completed,
            _ if self.open => InputRequired,
            _ => Working,
        }
    }

    fn claimable(&self) -> bool {
        matches!(self.phase, Phase::Ready | Phase::Leased { over: true })
    }

    /// What follows on a write that is taken for the first time.
    fn written(&mut self, work: Work) {
        match work {
            Work::First => self.recorded |= FIRST,
            Work::Second => self.recorded |= SECOND,
            Work::Ask => {
                assert_eq!(self.recorded & ANSWER, 0, "nobody asks who knows the answer");
                (self.phase, self.holder, self.open) = (Phase::Parked, None, true);
            }
            Work::Finish => (self.phase, self.holder, self.open) = (Phase::Ended(false), None, false),
        }
    }
}

/// How often what makes the number of orders endless may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Left {
    claims: u8,
    ticks: u8,
    crashes: u8,
    lost_replies: u8,
    releases: u8,
    cancels: u8,
    answers: u8,
}

#[derive(Clone)]
struct World {
    stored: TasksAtOnce,
    now_ms: u64,
    tasks: [Rules; TASKS],
    nodes: [[Option<Run>; TASKS]; NODES],
    /// Writes that were taken, so that they may be repeated.
    taken: BTreeSet<(Token, u64)>,
    tokens: u8,
    left: Left,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Claim { node: usize },
    Work { node: usize, task: usize, reply_lost: bool },
    Release { node: usize, task: usize },
    Renew { node: usize },
    Crash { node: usize },
    Answer { task: usize },
    Cancel { task: usize },
    Tick,
}

#[derive(Debug, Default)]
struct HandClock(AtomicU64);

impl Clock for HandClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The real store, which is set to the state of whichever world is looked at.
struct Store {
    tasks: MemoryTasks,
    clock: Arc<HandClock>,
}

/// A store in memory never waits.
fn now<T>(operation: impl Future<Output = T>) -> T {
    match pin!(operation).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the store waited"),
    }
}

fn id(task: usize) -> TaskId {
    TaskId::from_bytes([u8::try_from(task).unwrap() + 1; 24])
}

fn node_id(node: usize) -> NodeId {
    NodeId::from_bytes([u8::try_from(node).unwrap() + 1; 8])
}

impl Store {
    fn new() -> Self {
        let clock = Arc::new(HandClock::default());
        Self { tasks: MemoryTasks::with(MemoryLimits::default(), clock.clone(), Hub::new()), clock }
    }

    /// Two tasks: one that is ready, and one that the first node has begun to work on when it created it.
    fn begin(&self, left: Left) -> World {
        let request = || TaskRequest::new("tool", Version::V2026_07_28, json("{}"));
        let quota = Quota::from_bytes([0; 32]);
        now(self.tasks.create(NewTask::new(id(0), OWNER, quota, request()))).unwrap();
        let token = Token::from_bytes([255; 16]);
        let mut begun = NewTask::new(id(1), OWNER, quota, request());
        begun.lease = Some(toolwire_store::NewLease { node: node_id(0), token, lease: LEASE });
        let lease = now(self.tasks.create(begun)).unwrap().lease.unwrap();
        let ready =
            Rules { phase: Phase::Ready, holder: None, last: None, fence: 0, recorded: 0, open: false };
        let leased = Rules {
            phase: Phase::Leased { over: false },
            holder: Some(token),
            last: Some(token),
            fence: lease.fence,
            ..ready.clone()
        };
        let mut nodes = [const { [const { None }; TASKS] }; NODES];
        nodes[0][1] = Some(Run { lease, knows: 0, n: 0, unsure: None });
        World {
            stored: self.tasks.snapshot(),
            now_ms: 0,
            tasks: [ready, leased],
            nodes,
            taken: BTreeSet::new(),
            tokens: 0,
            left,
        }
    }

    /// What follows when this happens.
    fn follow(&self, before: &World, event: Event) -> World {
        let mut world = before.clone();
        self.tasks.restore(&before.stored);
        self.clock.0.store(world.now_ms, Ordering::Relaxed);
        match event {
            Event::Claim { node } => self.claim(&mut world, node),
            Event::Work { node, task, reply_lost } => self.work(&mut world, node, task, reply_lost),
            Event::Release { node, task } => self.release(&mut world, node, task),
            Event::Renew { node } => self.renew(&mut world, node),
            Event::Answer { task } => self.answer(&mut world, task),
            Event::Cancel { task } => self.cancel(&mut world, task),
            Event::Crash { node } => {
                world.left.crashes -= 1;
                world.nodes[node] = [const { None }; TASKS];
            }
            Event::Tick => {
                world.left.ticks -= 1;
                world.now_ms += u64::try_from(TICK.as_millis()).unwrap();
                for rules in &mut world.tasks {
                    if let Phase::Leased { over } = &mut rules.phase {
                        *over = true;
                    }
                }
            }
        }
        self.clock.0.store(world.now_ms, Ordering::Relaxed);
        for (task, rules) in world.tasks.iter().enumerate() {
            let view = now(self.tasks.view(&OWNER, &id(task))).unwrap().expect("it is gone");
            assert_eq!(view.head.status, rules.status(), "task {task}");
            assert_eq!(view.open.len(), usize::from(rules.open), "task {task}");
        }
        world.stored = self.tasks.snapshot();
        world
    }

    fn claim(&self, world: &mut World, node: usize) {
        world.left.claims -= 1;
        world.tokens += 1;
        let token = Token::from_bytes([world.tokens; 16]);
        let claim = Claim::new(node_id(node), token, vec![("tool".to_owned(), 1)], 1, LEASE);
        let claimed = now(self.tasks.claim(&claim)).unwrap();
        let could = world.tasks.iter().any(Rules::claimable);
        assert_eq!(claimed.len(), usize::from(could), "what can be claimed is, and nothing else");
        for claimed in claimed {
            let task = usize::from(claimed.lease.id.as_bytes()[0]) - 1;
            let rules = &mut world.tasks[task];
            assert!(rules.claimable(), "task {task} was given away");
            assert!(claimed.lease.fence > rules.fence, "a fence was given twice");
            assert_eq!(bits(&claimed.journal), rules.recorded, "a recorded step would run again");
            (rules.phase, rules.holder) = (Phase::Leased { over: false }, Some(token));
            rules.last = rules.holder;
            rules.fence = claimed.lease.fence;
            let run = Run { lease: claimed.lease, knows: rules.recorded, n: 0, unsure: None };
            world.nodes[node][task] = Some(run);
        }
    }

    fn work(&self, world: &mut World, node: usize, task: usize, reply_lost: bool) {
        let run = world.nodes[node][task].as_mut().unwrap();
        let rules = &mut world.tasks[task];
        let work = run.unsure.unwrap_or_else(|| Work::after(run.knows));
        let n = if run.unsure.is_some() { run.n } else { run.n + 1 };
        let before = world.taken.contains(&(run.lease.token, n));
        let written = now(self.tasks.advance(&run.lease, n, work.write()));
        if before {
            assert_eq!(
                written.is_ok(),
                rules.last == Some(run.lease.token),
                "{written:?}: it may be repeated"
            );
        } else if rules.holder == Some(run.lease.token) {
            written.as_ref().expect("the holder may write");
            rules.written(work);
            world.taken.insert((run.lease.token, n));
        } else {
            assert!(matches!(written, Err(StoreError::Lost)), "{written:?}: two may write");
        }
        run.n = n;
        if reply_lost {
            world.left.lost_replies -= 1;
            run.unsure = Some(work);
            return;
        }
        run.unsure = None;
        match work {
            Work::First => run.knows |= FIRST,
            Work::Second => run.knows |= SECOND,
            Work::Ask | Work::Finish => {}
        }
        if written.is_err() || matches!(work, Work::Ask | Work::Finish) {
            world.nodes[node][task] = None;
        }
    }

    fn release(&self, world: &mut World, node: usize, task: usize) {
        world.left.releases -= 1;
        let run = world.nodes[node][task].take().unwrap();
        let rules = &mut world.tasks[task];
        let released = now(self.tasks.advance(&run.lease, run.n + 1, Advance::Release));
        assert_eq!(released.is_ok(), rules.holder == Some(run.lease.token));
        if released.is_ok() {
            (rules.phase, rules.holder) = (Phase::Ready, None);
        }
    }

    fn renew(&self, world: &mut World, node: usize) {
        let leases: Vec<Lease> = world.nodes[node].iter().flatten().map(|run| run.lease).collect();
        let renewed = now(self.tasks.renew(&leases, LEASE)).unwrap();
        for (task, rules) in world.tasks.iter_mut().enumerate() {
            let Some(run) = &world.nodes[node][task] else { continue };
            let holds = rules.holder == Some(run.lease.token);
            assert_eq!(renewed.lost.contains(&id(task)), !holds);
            if holds {
                rules.phase = Phase::Leased { over: false };
            } else {
                world.nodes[node][task] = None;
            }
        }
    }

    fn answer(&self, world: &mut World, task: usize) {
        world.left.answers -= 1;
        let rules = &mut world.tasks[task];
        let answer = Answer { key: "q".to_owned(), entry: json(r#""answer""#) };
        let answered = now(self.tasks.answer(&OWNER, &id(task), vec![answer])).unwrap().unwrap();
        assert_eq!(!answered.taken.is_empty(), rules.open, "an answer is taken when it is asked for, once");
        assert_eq!(answered.ready, rules.open && rules.phase == Phase::Parked);
        if rules.open {
            rules.open = false;
            rules.recorded |= ANSWER;
            if rules.phase == Phase::Parked {
                rules.phase = Phase::Ready;
            }
        }
    }

    fn cancel(&self, world: &mut World, task: usize) {
        world.left.cancels -= 1;
        let rules = &mut world.tasks[task];
        let cancelled = now(self.tasks.cancel(&OWNER, &id(task), TaskNote::default())).unwrap().unwrap();
        let ended = matches!(rules.phase, Phase::Ended(_));
        assert_eq!(cancelled.was_terminal, ended);
        if !ended {
            (rules.phase, rules.holder, rules.open) = (Phase::Ended(true), None, false);
            rules.last = None;
        }
    }

    /// Whatever has happened, one node that is left alone and a client that answers bring all tasks to their end.
    fn can_end(&self, world: &World) {
        let mut world = world.clone();
        world.nodes = [const { [const { None }; TASKS] }; NODES];
        world.left = Left { claims: 9, ticks: 9, crashes: 0, answers: 9, ..world.left };
        world = self.follow(&world, Event::Tick);
        for _ in 0..2 * TASKS {
            world = self.follow(&world, Event::Claim { node: 0 });
            for task in 0..TASKS {
                while world.nodes[0][task].is_some() {
                    world = self.follow(&world, Event::Work { node: 0, task, reply_lost: false });
                }
                if world.tasks[task].open {
                    world = self.follow(&world, Event::Answer { task });
                }
            }
        }
        assert!(world.tasks.iter().all(|rules| matches!(rules.phase, Phase::Ended(_))), "a task is lost");
    }
}

impl World {
    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for node in 0..NODES {
            if self.left.claims > 0 {
                events.push(Event::Claim { node });
            }
            for task in 0..TASKS {
                if self.nodes[node][task].is_none() {
                    continue;
                }
                events.push(Event::Work { node, task, reply_lost: false });
                if self.left.lost_replies > 0 {
                    events.push(Event::Work { node, task, reply_lost: true });
                }
                let sure = self.nodes[node][task].as_ref().is_some_and(|run| run.unsure.is_none());
                if self.left.releases > 0 && sure {
                    events.push(Event::Release { node, task });
                }
            }
            if self.nodes[node].iter().any(Option::is_some) {
                events.push(Event::Renew { node });
                if self.left.crashes > 0 {
                    events.push(Event::Crash { node });
                }
            }
        }
        if self.left.ticks > 0 {
            events.push(Event::Tick);
        }
        for task in 0..TASKS {
            if self.left.answers > 0 {
                events.push(Event::Answer { task });
            }
            if self.left.cancels > 0 {
                events.push(Event::Cancel { task });
            }
        }
        events
    }

    /// What makes it different from others: not which node is which, nor which token is whose.
    fn digest(&self) -> impl Eq + std::hash::Hash + use<> {
        let tasks = self.tasks.clone().map(|rules| (rules.phase, rules.recorded, rules.open));
        let mut nodes = self.nodes.each_ref().map(|runs| {
            let run = |task: usize| {
                let run: &Run = runs[task].as_ref()?;
                let (holder, last) = (self.tasks[task].holder, self.tasks[task].last);
                let holds = [holder, last].map(|token| token == Some(run.lease.token));
                let taken = self.taken.contains(&(run.lease.token, run.n));
                Some((holds, run.knows, run.unsure, taken))
            };
            [run(0), run(1)]
        });
        nodes.sort_unstable();
        (tasks, nodes, self.left)
    }
}

/// Goes through all orders, and says how many different states there are.
fn explore(left: Left) -> usize {
    let store = Store::new();
    let first = store.begin(left);
    let mut seen = HashSet::from([first.digest()]);
    let mut waiting = VecDeque::from([first]);
    while let Some(world) = waiting.pop_front() {
        store.can_end(&world);
        for event in world.events() {
            let next = store.follow(&world, event);
            if seen.insert(next.digest()) {
                waiting.push_back(next);
            }
        }
    }
    seen.len()
}

const NOTHING: Left =
    Left { claims: 0, ticks: 0, crashes: 0, lost_replies: 0, releases: 0, cancels: 0, answers: 0 };

#[test]
fn nodes_that_die_are_late_and_repeat_themselves_never_lose_a_task_nor_write_both() {
    let states = explore(Left { claims: 3, ticks: 2, crashes: 1, lost_replies: 1, answers: 1, ..NOTHING });
    assert!(states > 10_000, "only {states} states");
}

#[test]
fn an_answer_is_taken_once_however_often_it_is_sent() {
    let states = explore(Left { claims: 2, ticks: 1, lost_replies: 1, answers: 3, ..NOTHING });
    assert!(states > 5_000, "only {states} states");
}

#[test]
fn cancellations_and_nodes_that_give_up_come_at_any_moment() {
    let states = explore(Left {
        claims: 2,
        ticks: 1,
        lost_replies: 1,
        releases: 1,
        cancels: 1,
        answers: 1,
        ..NOTHING
    });
    assert!(states > 5_000, "only {states} states");
}
