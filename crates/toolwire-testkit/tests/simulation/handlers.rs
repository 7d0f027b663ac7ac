//! The server under test: handlers that do what handlers do, and some that misbehave.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;
use toolwire_http::server::{HttpLimits, HttpService, LegacyStream};
use toolwire_server::{
    Answer, Args, BoxError, Context, Extension, Limits, Log, Progress, Server, State, prompt, resource, tool,
};
use toolwire_testkit::simulation::Random;

/// What panics of handlers say, so that nobody takes them for a failure.
pub(crate) const PANIC: &str = "a simulated panic";

/// The tools, in no particular order.
pub(crate) const TOOLS: [&str; 12] = [
    "now",
    "wait",
    "work",
    "talk",
    "ask",
    "ask_twice",
    "panic",
    "late_panic",
    "leak",
    "large",
    "hang",
    "away",
];

/// Those that are used in a crowded run: what takes room, and what needs some.
pub(crate) const CROWDED_TOOLS: [&str; 5] = ["large", "talk", "ask", "ask_twice", "now"];

/// How many handlers run.
#[derive(Clone, Default)]
pub(crate) struct Running(Arc<AtomicUsize>);

impl Running {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn enter(&self) -> Inside {
        self.0.fetch_add(1, Ordering::Relaxed);
        Inside(self.clone())
    }
}

/// A handler that runs, until this is dropped.
struct Inside(Running);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Deserialize, JsonSchema)]
struct Work {
    /// How long one step takes.
    ms: u64,
    /// How many steps.
    steps: u32,
    /// Names the call, through all of its rounds.
    tag: String,
}

impl Work {
    async fn step(&self) {
        match self.ms {
            0 => tokio::task::yield_now().await,
            ms => sleep(Duration::from_millis(ms)).await,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    yes: bool,
}

async fn now(State(running): State<Running>) -> &'static str {
    let _inside = running.enter();
    "now"
}

async fn wait(State(running): State<Running>, Args(work): Args<Work>) -> &'static str {
    let _inside = running.enter();
    work.step().await;
    "waited"
}

async fn work(State(running): State<Running>, progress: Progress, Args(work): Args<Work>) -> &'static str {
    let _inside = running.enter();
    for done in 1..=work.steps {
        progress.report(f64::from(done), f64::from(work.steps));
        work.step().await;
    }
    "worked"
}

async fn talk(State(running): State<Running>, log: Log, Args(work): Args<Work>) -> &'static str {
    let _inside = running.enter();
    for step in 0..work.steps * 20 {
        log.info(format!("step {step} {}", "x".repeat(100)));
        if step % 10 == 0 {
            work.step().await;
        }
    }
    "talked"
}

async fn ask_once(cx: &Context, work: &Work, round: u32) -> Result<bool, BoxError> {
    let question = cx.elicit::<Confirm>(&work.tag).key(format!("q{round}"));
    let answer = question.timeout(Duration::from_secs(8)).await?;
    Ok(matches!(answer, Answer::Accept(Confirm { yes: true })))
}

async fn ask(
    cx: Context,
    State(running): State<Running>,
    Args(work): Args<Work>,
) -> Result<&'static str, BoxError> {
    let _inside = running.enter();
    Ok(if ask_once(&cx, &work, 1).await? { "yes" } else { "no" })
}

async fn ask_twice(
    cx: Context,
    State(running): State<Running>,
    Args(work): Args<Work>,
) -> Result<&'static str, BoxError> {
    let _inside = running.enter();
    cx.progress().report(1.0, None);
    if !ask_once(&cx, &work, 1).await? {
        return Ok("no");
    }
    cx.progress().report(2.0, None);
    Ok(if ask_once(&cx, &work, 2).await? { "yes" } else { "not quite" })
}

async fn panics(State(running): State<Running>) -> &'static str {
    let _inside = running.enter();
    std::panic::panic_any(PANIC)
}

async fn panics_late(
    State(running): State<Running>,
    progress: Progress,
    Args(work): Args<Work>,
) -> &'static str {
    let _inside = running.enter();
    progress.report(1.0, None);
    work.step().await;
    std::panic::panic_any(PANIC)
}

/// Leaves a task behind that knows nothing of cancellation, and that talks after the answer.
async fn leak(cx: Context, State(running): State<Running>, Args(work): Args<Work>) -> &'static str {
    let inside = running.enter();
    tokio::spawn(async move {
        let _inside = inside;
        for step in 0..3 {
            work.step().await;
            cx.progress().report(f64::from(step), None);
            cx.log().info("too late");
        }
    });
    "left something behind"
}

async fn large(State(running): State<Running>, Args(work): Args<Work>) -> String {
    let _inside = running.enter();
    work.step().await;
    "y".repeat(900 * work.steps as usize)
}

/// Goes on until it is stopped.
async fn hang(State(running): State<Running>) -> &'static str {
    let _inside = running.enter();
    std::future::pending().await
}

/// Sends its client away while it works.
async fn away(
    State(running): State<Running>,
    stream: Option<Extension<LegacyStream>>,
    Args(work): Args<Work>,
) -> &'static str {
    let _inside = running.enter();
    if let Some(Extension(stream)) = stream {
        stream.close();
    }
    work.step().await;
    "back"
}

/// The limits of a run: small ones, so that they are met.
///
/// In a `crowded` run, what waits for one client is felt by the others.
pub(crate) fn limits(random: &mut Random, crowded: bool) -> Limits {
    let few = |random: &mut Random, usual: usize| {
        if random.percent(40) { usize::try_from(random.between(1, 4)).unwrap() } else { usual }
    };
    let bytes = |random: &mut Random, usual: usize| match random.below(100) {
        _ if crowded => usize::try_from(random.between(1500, 6000)).unwrap(),
        0..20 => usize::try_from(random.between(1500, 12_000)).unwrap(),
        _ => usual,
    };
    let usual = Limits::default();
    Limits {
        message_bytes: 4096,
        requests: few(random, usual.requests),
        requests_in_flight: few(random, usual.requests_in_flight),
        queued_requests: few(random, usual.queued_requests),
        queued_bytes: bytes(random, usual.queued_bytes),
        held_bytes: bytes(random, usual.held_bytes),
        held_bytes_per_connection: bytes(random, usual.held_bytes_per_connection),
        listeners: few(random, usual.listeners),
        pending_asks: few(random, usual.pending_asks),
        subscriptions: few(random, usual.subscriptions),
        page_items: few(random, usual.page_items),
        batch_messages: few(random, usual.batch_messages),
        handler_timeout: Duration::from_secs(random.between(5, 20)),
        drain_timeout: Duration::from_secs(random.between(1, 4)),
        ..usual
    }
}

pub(crate) fn server(limits: Limits, running: &Running) -> Server {
    Server::builder("simulated", "1.0")
        .state(running.clone())
        .limits(limits)
        .tool(tool("now", now))
        .tool(tool("wait", wait))
        .tool(tool("work", work))
        .tool(tool("talk", talk))
        .tool(tool("ask", ask))
        .tool(tool("ask_twice", ask_twice))
        .tool(tool("panic", panics))
        .tool(tool("late_panic", panics_late))
        .tool(tool("leak", leak))
        .tool(tool("large", large))
        .tool(tool("hang", hang))
        .tool(tool("away", away))
        .prompt(prompt("hello", || async { "hello" }))
        .resource(resource("sim://a", || async { "a" }))
        .resource(resource("sim://b", || async { "b" }))
        .build()
        .expect("the server is described well")
}

pub(crate) fn service(random: &mut Random, server: &Server) -> HttpService {
    let seconds = |random: &mut Random, low, high| Duration::from_secs(random.between(low, high));
    let limits = HttpLimits {
        body_bytes: 4096,
        body_timeout: seconds(random, 2, 8),
        header_timeout: seconds(random, 5, 15),
        keep_alive: seconds(random, 1, 5),
        write_timeout: seconds(random, 5, 15),
        websocket_silence: seconds(random, 5, 30),
        sessions: if random.percent(20) { 1 } else { 100 },
        session_idle: seconds(random, 30, 60),
        session_handshake: seconds(random, 5, 20),
        stream_events: if random.percent(20) { 2 } else { 64 },
        event_timeout: seconds(random, 5, 30),
        retry: Duration::from_millis(random.between(10, 1000)),
        ..HttpLimits::default()
    };
    HttpService::builder(server.clone())
        .limits(limits)
        .websocket(true)
        .without_peer_addresses()
        .build()
        .expect("the endpoint is described well")
}
