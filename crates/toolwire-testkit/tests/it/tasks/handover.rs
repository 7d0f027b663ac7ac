//! Endpoints over HTTP: when they begin to work on tasks, and what is left of these at their end.

use std::time::Duration;

use serde_json::json;
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::timeout,
};
use toolwire_http::server::HttpService;
use toolwire_store::Store;
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
