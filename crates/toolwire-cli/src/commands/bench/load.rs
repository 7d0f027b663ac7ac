//! Callers that ask, wait, check the answer, and ask again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use toolwire::{Client, protocol::Method};

use super::latencies::Latencies;
use crate::failure::{Code, Failure, Result};

/// How many different errors are kept as examples.
const MAX_EXAMPLES: usize = 3;

/// What is asked.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// What every server answers at once.
    Nothing,
    /// A call of a tool.
    Tool { name: String, arguments: Map<String, Value> },
}

/// How much is asked.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) concurrency: u32,
    pub(super) duration: Duration,
    pub(super) warmup: Duration,
    pub(super) calls: Option<u32>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Measured {
    /// What was asked, for people.
    pub(super) what: String,
    /// The times of the answers that were correct.
    pub(super) latencies: Latencies,
    pub(super) errors: u64,
    /// Some of the errors.
    pub(super) examples: Vec<String>,
    /// How long the measurement took.
    pub(super) took: Duration,
}

impl Work {
    async fn ask(&self, client: &Client) -> Result<Value> {
        match self {
            Self::Nothing => {
                let answer = client.raw().request(self.method(client), json!({})).await?;
                answer.decode().map_err(|error| Failure::new(Code::InvalidAnswer, error.to_string()))
            }
            Self::Tool { name, arguments } => {
                let outcome = client.call(name, arguments).await?.into_result()?;
                serde_json::to_value(outcome.as_result())
                    .map_err(|error| Failure::new(Code::InvalidAnswer, error.to_string()))
            }
        }
    }

    fn method(&self, client: &Client) -> &'static str {
        let method = match self {
            Self::Tool { .. } => Method::CallTool,
            Self::Nothing if Method::Ping.info().from_client(client.version()) => Method::Ping,
            Self::Nothing => Method::Discover,
        };
        method.as_str()
    }

    fn shown(&self, client: &Client) -> String {
        match self {
            Self::Nothing => self.method(client).to_owned(),
            Self::Tool { name, .. } => format!("{} {name}", self.method(client)),
        }
    }
}

/// What all callers share.
struct Shared {
    client: Client,
    work: Work,
    shape: Value,
    /// How many calls may still be made.
    left: Option<AtomicU32>,
    warm: Instant,
    end: Instant,
}

/// What one caller saw.
struct Seen {
    latencies: Latencies,
    errors: u64,
    examples: Vec<String>,
}

impl Load {
    /// Asks once, to know what a correct answer looks like, and then as much as is wanted.
    pub(super) async fn run(&self, client: &Client, work: Work) -> Result<Measured> {
        let what = work.shown(client);
        let shape = shape(&work.ask(client).await?);
        let warm = Instant::now() + self.warmup;
        let shared = Arc::new(Shared {
            client: client.clone(),
            work,
            shape,
            left: self.calls.map(AtomicU32::new),
            warm,
            end: warm + self.duration,
        });
        let mut callers = JoinSet::new();
        for _ in 0..self.concurrency {
            callers.spawn(call(Arc::clone(&shared)));
        }
        let mut latencies = Latencies::new();
        let (mut errors, mut examples) = (0, Vec::new());
        for seen in callers.join_all().await {
            latencies.merge(&seen.latencies);
            errors += seen.errors;
            for example in seen.examples {
                keep(&mut examples, example);
            }
        }
        let took = Instant::now().saturating_duration_since(warm);
        Ok(Measured { what, latencies, errors, examples, took })
    }
}

async fn call(shared: Arc<Shared>) -> Seen {
    let mut seen = Seen { latencies: Latencies::new(), errors: 0, examples: Vec::new() };
    loop {
        let begun = Instant::now();
        let warm = begun >= shared.warm;
        if begun >= shared.end || (warm && !shared.take()) {
            return seen;
        }
        let answer = shared.work.ask(&shared.client).await;
        let took = begun.elapsed();
        let wrong = match &answer {
            Ok(answer) if shape(answer) == shared.shape => None,
            Ok(_) => Some("the answer is not like the first one".to_owned()),
            Err(failure) => Some(failure.message().to_owned()),
        };
        let dead = answer.is_err_and(|failure| failure.code() == Code::ConnectionClosed);
        match wrong {
            None if warm => seen.latencies.add(took),
            None => {}
            Some(why) => {
                seen.errors += 1;
                keep(&mut seen.examples, why);
                // A server that refuses at once must not keep a processor busy.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        if dead {
            return seen;
        }
    }
}

impl Shared {
    /// Takes one of the calls that are left.
    fn take(&self) -> bool {
        let Some(left) = &self.left else { return true };
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

fn keep(examples: &mut Vec<String>, example: String) {
    if examples.len() < MAX_EXAMPLES && !examples.contains(&example) {
        examples.push(example);
    }
}

/// What an answer looks like: its members and their types, but not its values.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => json!("null"),
        Value::Bool(_) => json!("boolean"),
        Value::Number(_) => json!("number"),
        Value::String(_) => json!("string"),
        // Lists may grow while they are measured, so only the kind of their entries counts.
        Value::Array(items) => Value::Array(items.first().map(shape).into_iter().collect()),
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), shape(value))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_alike_when_their_values_differ_and_not_when_their_members_do() {
        let one = shape(&json!({ "a": 1, "b": ["x"], "c": null }));
        assert_eq!(one, shape(&json!({ "a": 2.5, "b": ["y", "z"], "c": null })));
        for other in [json!({ "a": 1, "b": ["x"] }), json!({ "a": "1", "b": ["x"], "c": null }), json!(null)]
        {
            assert_ne!(one, shape(&other), "{other}");
        }
    }
}
