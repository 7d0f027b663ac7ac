//! One run: a server, its clients, the time, and what was seen.

use std::{
    any::Any,
    fmt::Write as _,
    future::Future,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::{
    runtime::{Builder, Handle},
    task::{AbortHandle, JoinHandle, JoinSet, yield_now},
    time::{Instant, sleep, timeout},
};
use toolwire_http::server::HttpService;
use toolwire_protocol::Version;
use toolwire_server::{Server, Usage, tool};
use toolwire_testkit::simulation::Random;

use crate::{
    handlers::{self, Running},
    http, legacy, modern, pipe, socket, talk,
};

/// Longer than all clients take.
const RUN_TIME: Duration = Duration::from_secs(2000);

/// Longer than every limit of the server.
const ALL_LIMITS: Duration = Duration::from_secs(300);

/// How often all tasks get a turn before those that were ended are believed to be gone.
const TURNS: usize = 200;

/// What h2 says in debug builds when a connection is dropped that has open streams, which is nothing bad:
/// <https://github.com/hyperium/h2/issues/907>.
pub(crate) const H2_ASSERTION: &str = "assertion failed: !self.has_streams()";

/// What has come out of a run.
pub(crate) struct Report {
    pub(crate) seed: u64,
    /// What was said, line by line.
    pub(crate) lines: Vec<String>,
    /// What was against the rules.
    pub(crate) faults: Vec<String>,
}

impl Report {
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.lines.hash(&mut hasher);
        hasher.finish()
    }

    /// Everything, for whoever has to find out what went wrong.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("seed {}: TOOLWIRE_SEED={} repeats it\n", self.seed, self.seed);
        for line in self.lines.iter().chain(&self.faults) {
            let _ = writeln!(text, "{line}");
        }
        text
    }
}

/// What the clients of a run share.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) service: HttpService,
    /// Whether there is little room, and one client takes nothing.
    pub(crate) is_crowded: bool,
    running: Running,
    start: Instant,
    lines: Mutex<Vec<String>>,
    faults: Mutex<Vec<String>>,
    /// Everything that clients do.
    tasks: Mutex<JoinSet<()>>,
    /// What the server does: its name, and whether it has to end without being told.
    serving: Mutex<Vec<(String, bool, JoinHandle<()>)>>,
    /// Connections whose client never closes them, although nothing gets through any more.
    dead: Mutex<JoinSet<()>>,
    /// Ends of links whose client does nothing any more, and never goes away.
    limbo: Mutex<Vec<Box<dyn Any + Send>>>,
    is_shut: AtomicBool,
}

impl World {
    fn new(random: &mut Random) -> Arc<Self> {
        let running = Running::default();
        let is_crowded = random.percent(25);
        let server = handlers::server(handlers::limits(random, is_crowded), &running);
        Arc::new(Self {
            service: handlers::service(random, &server),
            server,
            is_crowded,
            running,
            start: Instant::now(),
            lines: Mutex::default(),
            faults: Mutex::default(),
            tasks: Mutex::default(),
            serving: Mutex::default(),
            dead: Mutex::default(),
            limbo: Mutex::default(),
            is_shut: AtomicBool::new(false),
        })
    }

    /// Writes down what has happened.
    pub(crate) fn note(&self, who: &str, what: &str) {
        let line = format!("{:>7} {who} {what}", self.start.elapsed().as_millis());
        lock(&self.lines).push(line);
    }

    /// Writes down a message, without what is different in each run.
    pub(crate) fn note_message(&self, who: &str, arrow: &str, message: &Value) {
        let mut message = message.clone();
        for path in ["/result/requestState", "/params/requestState"] {
            if let Some(state) = message.pointer_mut(path) {
                *state = "…".into();
            }
        }
        let text = message.to_string();
        let short: String = text.chars().take(400).collect();
        self.note(who, &format!("{arrow} {short}"));
    }

    /// Writes down what is against the rules.
    pub(crate) fn fault(&self, who: &str, what: &str) {
        self.note(who, &format!("FAULT {what}"));
        lock(&self.faults).push(format!("{who}: {what}"));
    }

    pub(crate) fn is_shut(&self) -> bool {
        self.is_shut.load(Ordering::Relaxed)
    }

    /// Runs a part of a client.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        lock(&self.tasks).spawn(task);
    }

    /// Runs a part of the server. If it `ends_alone`, it has to end within the limits, whatever its client does.
    pub(crate) fn serve(
        &self,
        who: &str,
        ends_alone: bool,
        serving: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        let task = tokio::spawn(serving);
        let abort = task.abort_handle();
        lock(&self.serving).push((who.to_owned(), ends_alone, task));
        abort
    }

    /// Keeps something until the limits are over.
    pub(crate) fn keep(&self, end: impl Any + Send) {
        lock(&self.limbo).push(Box::new(end));
    }

    /// Runs a part of a client that outlives all limits.
    pub(crate) fn keep_driving<T>(&self, connection: impl Future<Output = T> + Send + 'static) {
        lock(&self.dead).spawn(async move { drop(connection.await) });
    }

    /// Changes what the server offers, and shuts it down if it is time.
    async fn disturb(self: Arc<Self>, mut random: Random) {
        let shutdown = random.percent(20).then(|| Duration::from_millis(random.below(12_000)));
        let start = Instant::now();
        for _ in 0..random.below(8) {
            sleep(Duration::from_millis(random.below(3000))).await;
            if shutdown.is_some_and(|time| start.elapsed() >= time) {
                break;
            }
            match random.below(4) {
                0 => drop(self.server.add_tool(tool("more", || async { "more" }))),
                1 => drop(self.server.remove_tool("more")),
                2 => self.server.notify().resource_updated("sim://a"),
                _ => self.server.notify().resource_updated("sim://b/c"),
            }
        }
        if let Some(time) = shutdown {
            sleep(time.saturating_sub(start.elapsed())).await;
            self.note("--", "shutdown");
            self.is_shut.store(true, Ordering::Relaxed);
            self.server.shutdown();
        }
    }

    /// Nothing may be left of clients that are gone.
    fn check_nothing_held(&self, when: &str) {
        let usage = self.server.usage();
        if usage != Usage::default() {
            self.fault("--", &format!("{when}, something is still held: {usage:?}"));
        }
        let (running, subscribers) = (self.running.count(), self.server.notify().subscribers());
        if running > 0 {
            self.fault("--", &format!("{when}, {running} handlers still run"));
        }
        if subscribers > 0 {
            self.fault("--", &format!("{when}, {subscribers} subscribers are left"));
        }
    }
}

/// Runs a seed.
pub(crate) fn run(seed: u64) -> Report {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime needs nothing");
    runtime.block_on(simulate(seed))
}

async fn simulate(seed: u64) -> Report {
    let mut random = Random::new(seed);
    let world = World::new(&mut random);
    let mut clients = JoinSet::new();
    for number in 0..random.between(1, 4) {
        start_client(&mut clients, &world, number, random.fork());
    }
    world.spawn(Arc::clone(&world).disturb(random.fork()));
    let all =
        async { while clients.join_next().await.transpose().expect("clients do not panic").is_some() {} };
    if timeout(RUN_TIME, all).await.is_err() {
        world.fault("--", "a client waits for ever");
    }
    drop(clients);
    let mut tasks = std::mem::take(&mut *lock(&world.tasks));
    tasks.shutdown().await;
    finish(&world).await;
    let world = Arc::into_inner(world).expect("nobody else is left");
    let World { server, service, lines, faults, limbo, .. } = world;
    drop((server, service, limbo));
    turns().await;
    let mut faults = faults.into_inner().unwrap_or_else(PoisonError::into_inner);
    let alive = Handle::current().metrics().num_alive_tasks();
    if alive > 0 {
        faults.push(format!("--: {alive} tasks are alive after everything was dropped"));
    }
    Report { seed, lines: lines.into_inner().unwrap_or_else(PoisonError::into_inner), faults }
}

fn start_client(clients: &mut JoinSet<()>, world: &Arc<World>, number: u64, mut random: Random) {
    let legacy = *random.pick(&[Version::V2025_03_26, Version::V2025_06_18, Version::V2025_11_25]);
    let (world, version) = (Arc::clone(world), if random.percent(50) { Version::LATEST } else { legacy });
    let sleepy = Duration::from_millis(random.below(1500));
    let kind = *random.pick(if world.is_crowded { &[0, 0, 1, 3] } else { &[0, 1, 2, 3] });
    clients.spawn(async move {
        sleep(sleepy).await;
        match (kind, version.is_modern()) {
            (0, _) => {
                let name = format!("pipe{number}");
                let line = pipe::connect(&world, &name, &mut random, number == 0);
                talk::run(world, name, random, version, line).await;
            }
            (3, _) => {
                let name = format!("ws{number}");
                if let Some(line) = socket::connect(&world, &name, &mut random, number == 0).await {
                    talk::run(world, name, random, version, line).await;
                }
            }
            (1, true) => modern::run(http::Peer::new(world, format!("http{number}"), false), random).await,
            (_, true) => modern::run(http::Peer::new(world, format!("h2-{number}"), true), random).await,
            (_, false) => {
                legacy::run(http::Peer::new(world, format!("old{number}"), false), random, version).await;
            }
        }
    });
}

/// Lets all limits pass, looks at what is left, ends it, and looks again.
async fn finish(world: &Arc<World>) {
    sleep(ALL_LIMITS).await;
    for (who, ends_alone, task) in &*lock(&world.serving) {
        if (*ends_alone || world.is_shut()) && !task.is_finished() {
            world.fault(who, "the connection is still served after all limits have passed");
        }
    }
    if lock(&world.limbo).is_empty() {
        world.check_nothing_held("after all limits have passed");
    }
    let serving = std::mem::take(&mut *lock(&world.serving));
    for (_, _, task) in &serving {
        task.abort();
    }
    for (who, _, task) in serving {
        match task.await {
            Err(error) if error.is_panic() && !error.to_string().contains(H2_ASSERTION) => {
                world.fault(&who, &format!("the server panicked: {error}"));
            }
            _ => {}
        }
    }
    lock(&world.limbo).clear();
    let mut dead = std::mem::take(&mut *lock(&world.dead));
    dead.shutdown().await;
    turns().await;
    // Sessions of a server that was shut down, or of connections that were ended just now.
    sleep(ALL_LIMITS).await;
    world.check_nothing_held("after everything has ended");
}

async fn turns() {
    for _ in 0..TURNS {
        yield_now().await;
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
