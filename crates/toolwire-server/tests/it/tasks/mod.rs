//! Calls that become tasks, as the store sees them.

mod detaching;
mod durable;
mod limits;
mod outage;
mod shutdown;
mod simulation;
mod steps;
mod strangers;
mod tap;
mod waiting;

use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwire_protocol::{RawJson, journal::Entry, wire::TaskStatus};
use toolwire_server::{Limits, Principal, Server, ServerBuilder};
use toolwire_store::{
    Answer, Answered, Outcome, Owner, Store, TaskId, TaskStore, TaskView,
    memory::{MemoryLimits, MemoryStore},
};

use crate::wire::{Wire, modern, request};

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A store, and somebody who calls servers that have it.
struct Bench {
    store: Store,
    memory: MemoryStore,
}

fn ada() -> Principal {
    Principal::new("ada")
}

fn owner() -> Owner {
    Owner::Principal(*ada().key().as_bytes())
}

impl Bench {
    fn new() -> Self {
        let memory = MemoryStore::new(MemoryLimits::default());
        Self { store: memory.store(), memory }
    }

    fn builder(&self) -> ServerBuilder {
        Server::builder("t", "1").store(self.store.clone())
    }

    fn tasks(&self) -> &dyn TaskStore {
        &**self.memory.tasks()
    }

    async fn view(&self, id: TaskId) -> Option<TaskView> {
        self.tasks().view(&owner(), &id).await.unwrap()
    }

    /// The task when `wanted` is true of it, which has to happen within a day.
    async fn when(&self, id: TaskId, wanted: impl Fn(&TaskView) -> bool) -> TaskView {
        for _ in 0..100_000 {
            let view = self.view(id).await.expect("the task is there");
            if wanted(&view) {
                return view;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("it never happened: {:?}", self.view(id).await);
    }

    async fn ended(&self, id: TaskId) -> TaskView {
        self.when(id, |view| view.head.status.is_terminal()).await
    }

    /// The task when it waits for answers, and the keys that it wants.
    async fn asked(&self, id: TaskId) -> Vec<String> {
        let view = self.when(id, |view| view.head.status == TaskStatus::InputRequired).await;
        view.open.into_iter().map(|open| open.key).collect()
    }

    async fn answer(&self, id: TaskId, key: &str, content: Value) -> Answered {
        let reply = json!({"action": "accept", "content": content});
        let entry = RawJson::of(&Entry::answer(key, RawJson::from(&reply))).unwrap();
        let answers = vec![Answer { key: key.to_owned(), entry }];
        self.tasks().answer(&owner(), &id, answers).await.unwrap().unwrap()
    }
}

/// A modern client that knows tasks.
struct Modern(Wire);

impl Modern {
    fn connect(server: &Server) -> Self {
        Self(Wire::connect_as(server, Some(ada())))
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        ask(&mut self.0, &call(tool, arguments)).await
    }

    /// Calls a tool whose call becomes a task.
    async fn start(&mut self, tool: &str) -> TaskId {
        task_id(&self.call(tool, json!({})).await)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "written with a literal everywhere")]
fn call(tool: &str, arguments: Value) -> Value {
    let mut call = modern(1, "tools/call", json!({"name": tool, "arguments": arguments}));
    call["params"]["_meta"][CAPABILITIES] =
        json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    call
}

/// A call of 2025-11-25 that asks for a task.
#[expect(clippy::needless_pass_by_value, reason = "written with a literal everywhere")]
fn core_call(tool: &str, arguments: Value) -> Value {
    request(1, "tools/call", json!({"name": tool, "arguments": arguments, "task": {"ttl": 60_000}}))
}

/// Asks, and takes the answer from among what else the server has to say.
async fn ask(wire: &mut Wire, message: &Value) -> Value {
    wire.send(message).await;
    loop {
        let received = wire.receive().await;
        if received.get("id") == Some(&message["id"]) {
            return received;
        }
    }
}

fn task_id(answer: &Value) -> TaskId {
    let result = &answer["result"];
    let id = result["taskId"].as_str().or_else(|| result["task"]["taskId"].as_str());
    id.unwrap_or_else(|| panic!("no task: {answer}")).parse().unwrap()
}

/// The first text of a result, or the message of an error.
fn told(view: &TaskView) -> String {
    match view.outcome.as_ref().expect("it has ended") {
        Outcome::Result(result) => {
            let result: Value = result.decode().unwrap();
            result["content"][0]["text"].as_str().unwrap().to_owned()
        }
        Outcome::Error(error) => {
            let error: Value = error.decode().unwrap();
            error["message"].as_str().unwrap().to_owned()
        }
    }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}

/// Counts how often something has happened.
#[derive(Clone, Default)]
struct Count(Arc<std::sync::atomic::AtomicUsize>);

impl Count {
    fn add(&self) -> usize {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1
    }

    fn get(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}
