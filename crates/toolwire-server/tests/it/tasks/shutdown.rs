//! Servers that end, and what is left of their tasks for others.

use toolwire_server::{Context, Extensions, TaskPolicy, tool};
use toolwire_store::memory::Clock;
use toolwire_transport::{
    Duplex,
    memory::{self, Memory},
};

use super::{
    durable::stored,
    tap::{Fate, Tap},
    *,
};

/// Runs what is to be done in a runtime that ends with it, as that of a program whose `main` returns.
fn program<T>(main: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(main)
}

/// The clock of the machine, which is the same in every runtime, also where those are paused.
#[derive(Debug)]
struct WallClock;

impl Clock for WallClock {
    fn now_ms(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        u64::try_from(since.as_millis()).unwrap()
    }
}

/// A store that outlives runtimes.
fn bench() -> Bench {
    let memory = MemoryStore::with_clock(MemoryLimits::default(), Arc::new(WallClock));
    Bench { store: memory.store(), memory }
}

/// Works on tasks that are never done.
fn endless(builder: ServerBuilder) -> Server {
    let work = || std::future::pending::<&str>();
    builder.tool(tool("work", work).task(TaskPolicy::optional())).build().unwrap()
}

fn who() -> Extensions {
    let mut extensions = Extensions::default();
    extensions.insert(ada());
    extensions
}

/// Standard input and output, as far as the server can tell.
struct Stdio(Memory);

impl Duplex for Stdio {
    type Source = <Memory as Duplex>::Source;
    type Sink = <Memory as Duplex>::Sink;

    fn split(self) -> (Self::Source, Self::Sink) {
        self.0.split()
    }

    fn ends_process(&self) -> bool {
        true
    }
}

/// Another node goes on with the one task that there is within a second, and nothing was tried in vain.
async fn goes_on_elsewhere(bench: &Bench) {
    let (begun, mut attempts) = tokio::sync::mpsc::unbounded_channel();
    let work = move |cx: Context| {
        begun.send(cx.attempt()).unwrap();
        async { "done" }
    };
    let server = bench.builder().tool(tool("work", work).task(TaskPolicy::optional())).build().unwrap();
    server.start_tasks();
    let attempt = tokio::time::timeout(seconds(1), attempts.recv()).await;
    assert_eq!(attempt.expect("no node goes on with it"), Some(1));
}

#[test]
fn a_connection_that_ends_by_a_shutdown_leaves_its_tasks_to_others() {
    let bench = bench();
    program(async {
        let server = endless(bench.builder());
        let (ours, theirs) = memory::pair();
        let serving = tokio::spawn({
            let server = server.clone();
            async move { server.serve_with(theirs, who()).await }
        });
        Modern(Wire::over(ours)).start("work").await;
        server.shutdown();
        serving.await.unwrap().unwrap();
    });
    program(goes_on_elsewhere(&bench));
}

#[test]
fn a_listener_that_ends_leaves_the_tasks_of_all_its_connections_to_others() {
    let bench = bench();
    program(async {
        let server = endless(bench.builder());
        let (connect, listener) = Listening::new();
        let serving = tokio::spawn({
            let server = server.clone();
            async move { server.serve_listener(listener).await }
        });
        let (ours, theirs) = memory::pair();
        connect.send(theirs).unwrap();
        let mut client = Modern(Wire::over(ours));
        client.start("work").await;
        // Its connection ends before.
        drop(client);
        server.shutdown();
        serving.await.unwrap();
    });
    program(goes_on_elsewhere(&bench));
}

/// A place where clients connect by memory.
struct Listening(tokio::sync::mpsc::UnboundedReceiver<Memory>);

impl Listening {
    fn new() -> (tokio::sync::mpsc::UnboundedSender<Memory>, Self) {
        let (connect, connected) = tokio::sync::mpsc::unbounded_channel();
        (connect, Self(connected))
    }
}

impl toolwire_transport::Listener for Listening {
    type Connection = Memory;

    async fn accept(&mut self) -> std::io::Result<Memory> {
        match self.0.recv().await {
            Some(connection) => Ok(connection),
            None => std::future::pending().await,
        }
    }
}

#[test]
fn the_end_of_standard_input_gives_tasks_back_at_once() {
    let bench = bench();
    program(async {
        let server = endless(bench.builder());
        let (ours, theirs) = memory::pair();
        let serving = tokio::spawn(async move { server.serve(Stdio(theirs)).await });
        let mut client = Modern(Wire::over(ours));
        client.start("work").await;
        drop(client);
        let ended = tokio::time::Instant::now();
        serving.await.unwrap().unwrap();
        assert!(
            ended.elapsed() < seconds(1),
            "the parent of the process may not wait: {:?}",
            ended.elapsed()
        );
    });
    program(goes_on_elsewhere(&bench));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_standard_input_ends_nothing_while_others_are_served_and_a_server_can_be_served_again() {
    let bench = Bench::new();
    let work = || async {
        tokio::time::sleep(seconds(60)).await;
        "done"
    };
    let server =
        bench.builder().tool(tool("work", work).task(TaskPolicy::optional().live())).build().unwrap();
    let serve = || {
        let (ours, theirs) = memory::pair();
        let server = server.clone();
        let mut extensions = Extensions::default();
        extensions.insert(ada());
        let serving = tokio::spawn(async move { server.serve_with(Stdio(theirs), extensions).await });
        (Modern(Wire::over(ours)), serving)
    };
    let (mut client, serving) = serve();
    let other = Wire::connect(&server);
    let id = client.start("work").await;
    drop(client);
    serving.await.unwrap().unwrap();
    assert_eq!(told(&bench.ended(id).await), "done", "another client may still come for it");

    drop(other);
    tokio::time::sleep(seconds(1)).await;
    let (mut client, serving) = serve();
    let id = client.start("work").await;
    drop(client);
    serving.await.unwrap().unwrap();
    assert_eq!(told(&bench.ended(id).await), "the process that ran this task was shut down");

    let (mut client, _serving) = serve();
    let id = client.start("work").await;
    assert_eq!(told(&bench.ended(id).await), "done");
}

#[tokio::test(start_paused = true)]
async fn tasks_that_are_done_in_time_come_to_their_end_and_live_ones_fail() {
    let bench = Bench::new();
    let quick = || async {
        tokio::time::sleep(seconds(3)).await;
        "quick"
    };
    let server = bench
        .builder()
        .tool(tool("quick", quick).task(TaskPolicy::optional()))
        .tool(tool("live", std::future::pending::<()>).task(TaskPolicy::optional().live()))
        .build()
        .unwrap();
    let mut client = Modern::connect(&server);
    let (quick, live) = (client.start("quick").await, client.start("live").await);
    server.shutdown();
    let ended = tokio::time::Instant::now();
    server.end_tasks().await;
    assert!(ended.elapsed() < seconds(6), "{:?}", ended.elapsed());
    assert_eq!(told(&bench.view(quick).await.unwrap()), "quick");
    assert_eq!(told(&bench.view(live).await.unwrap()), "the process that ran this task was shut down");
    server.end_tasks().await;
    assert!(ended.elapsed() < seconds(6), "once more is nothing: {:?}", ended.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_under_way_at_the_end_is_given_back() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let server = endless(tap.node(&bench));
    stored(&bench, "work").await;
    tap.plan(|name| if name == "claim" { Fate::Takes(seconds(4)) } else { Fate::Done });
    server.start_tasks();
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(tap.calls("claim"), 1, "it is on its way");
    server.shutdown();
    server.end_tasks().await;
    goes_on_elsewhere(&bench).await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_given_back_is_not_waited_for_for_ever() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let server = endless(tap.node(&bench));
    let mut client = Modern::connect(&server);
    client.start("work").await;
    tap.all(Fate::Fails);
    server.shutdown();
    let ended = tokio::time::Instant::now();
    server.end_tasks().await;
    let took = ended.elapsed();
    assert!(took >= seconds(5) && took < seconds(11), "{took:?}");
}
