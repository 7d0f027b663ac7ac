//! Endpoints over HTTP: when they begin to work on tasks, and what is left of these at their end.

use std::time::Duration;

use serde_json::json;
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::JoinHandle,
    time::timeout,
};
use toolwire_http::server::HttpService;
use toolwire_server::{Extensions, Principal};
use toolwire_store::Store;
use toolwire_testkit::AnyDuplex;
use toolwire_transport::{
    Duplex,
    memory::{self, Memory},
};
use tower_service::Service;

use super::*;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A server with a tool that is never done, and the attempts of its runs.
fn endless(store: &Store) -> (Server, UnboundedReceiver<u32>) {
    let (begun, runs) = unbounded_channel();
    let work = move |cx: Context| {
        begun.send(cx.attempt()).unwrap();
        waits()
    };
    // A lease that is not given back is not over before the test has failed.
    let limits =
        Limits { drain_timeout: Duration::ZERO, task_lease: Duration::from_secs(3600), ..Limits::default() };
    let route = tool("work", work).task(TaskPolicy::optional());
    let server = Server::builder("tasks", "1.0").store(store.clone()).limits(limits).tool(route);
    (server.build().unwrap(), runs)
}

async fn attempt(runs: &mut UnboundedReceiver<u32>) -> u32 {
    timeout(PATIENCE, runs.recv()).await.expect("the task is not run").expect("its server is gone")
}

/// Serves until a signal, as a program does whose `main` returns then, and leaves a task.
fn leaves_a_task(store: &Store) {
    runtime().block_on(async {
        let (server, mut runs) = endless(store);
        let serving = HttpService::bind(server.clone(), "127.0.0.1:0").await.unwrap().spawn();
        let mut wire = Wire::builder(EXTENSION).capabilities(capabilities(EXTENSION)).connect(&server).await;
        start(&mut wire, "work", json!({})).await;
        assert_eq!(attempt(&mut runs).await, 1);
        serving.shutdown().await.unwrap();
    });
}

#[test]
fn an_endpoint_that_ends_leaves_its_tasks_to_others() {
    let store = Store::memory();
    leaves_a_task(&store);
    runtime().block_on(async {
        let (server, mut runs) = endless(&store);
        let _serving = HttpService::bind(server, "127.0.0.1:0").await.unwrap().spawn();
        assert_eq!(attempt(&mut runs).await, 1, "nothing was tried in vain");
    });
}

#[test]
fn an_endpoint_that_is_mounted_works_on_tasks_without_being_asked_and_leaves_them_when_it_is_told_to() {
    let store = Store::memory();
    leaves_a_task(&store);
    for _ in 0..2 {
        Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
            let (server, mut runs) = endless(&store);
            let _mounted = HttpService::new(server.clone());
            assert_eq!(attempt(&mut runs).await, 1);
            server.shutdown();
            server.end_tasks().await;
        });
    }
}

#[test]
fn an_endpoint_that_was_made_outside_of_a_runtime_works_on_tasks_from_its_first_request_on() {
    let store = Store::memory();
    leaves_a_task(&store);
    let (server, mut runs) = endless(&store);
    let mut mounted = HttpService::new(server);
    runtime().block_on(async {
        let request = http::Request::get("/nowhere").body(http_body_util::Empty::<&[u8]>::new()).unwrap();
        mounted.call(request).await.unwrap();
        assert_eq!(attempt(&mut runs).await, 1);
    });
}

/// Standard input and output, as far as a server can tell.
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

/// Serves a client over a transport that is made of this end of a connection.
async fn client<D: Duplex>(server: &Server, over: impl FnOnce(Memory) -> D) -> (Wire, JoinHandle<()>) {
    let (ours, theirs) = memory::pair();
    let (server, transport) = (server.clone(), over(theirs));
    let mut extensions = Extensions::default();
    extensions.insert(Principal::new("ada"));
    let serving = tokio::spawn(async move { server.serve_with(transport, extensions).await.unwrap() });
    let builder = Wire::builder(EXTENSION).capabilities(capabilities(EXTENSION));
    (builder.over(AnyDuplex::new(ours)).await, serving)
}

/// Runs a task over standard input and output until the input ends. Returns the status that the task has then.
async fn status_after_the_input(server: &Server, runs: &mut UnboundedReceiver<u32>) -> Value {
    let (mut wire, serving) = client(server, Stdio).await;
    let task = start(&mut wire, "work", json!({})).await;
    assert_eq!(attempt(runs).await, 1);
    wire.close().await;
    serving.await.unwrap();
    let (mut other, serving) = client(server, |end| end).await;
    let status = other.request("tasks/get", id(&task)).await.result()["status"].clone();
    other.close().await;
    serving.await.unwrap();
    status
}

#[tokio::test]
async fn the_end_of_standard_input_ends_no_task_while_a_mounted_endpoint_is_in_use() {
    let (begun, mut runs) = unbounded_channel();
    let work = move |cx: Context| {
        begun.send(cx.attempt()).unwrap();
        waits()
    };
    let route = tool("work", work).task(TaskPolicy::optional().live());
    let server = Server::builder("tasks", "1.0").tool(route).build().unwrap();
    let mut mounted = HttpService::new(server.clone());
    let request = http::Request::get("/nowhere").body(http_body_util::Empty::<&[u8]>::new()).unwrap();
    mounted.call(request).await.unwrap();
    let status = status_after_the_input(&server, &mut runs).await;
    assert_eq!(status, "working", "others may be of clients over HTTP");
    drop(mounted);
    let status = status_after_the_input(&server, &mut runs).await;
    assert_eq!(status, "failed", "the process ends");
}
