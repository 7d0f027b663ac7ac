//! The trace as something that can be looked up.

use serde_json::{Value, json};
use toolwire::{ErrorCode, RpcError};

use crate::{
    commands::trace::{Recorded, summary},
    trace::{Conversation, Exchange, Item, Outcome, Side},
};

/// How many requests that nearly fit are told.
const MAX_CLOSE: usize = 3;
/// How much of two requests is compared to see how near they are.
const MAX_COMPARED_CHARS: usize = 400;

/// A conversation, and which of its answers were given.
pub(super) struct Recording {
    conversation: Conversation,
    entries: Vec<Entry>,
}

struct Entry {
    index: usize,
    method: String,
    params: Value,
    used: bool,
}

/// What to do about a request, in order.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Send this notification; its parameters are those of the trace.
    Tell(String, Value),
    /// Ask the client this, and wait for its answer.
    Ask(String, Value),
    Answer(Value),
    Refuse(RpcError),
}

impl Recording {
    pub(super) fn of(recorded: Recorded) -> Self {
        let Recorded { header, conversation, .. } = recorded;
        let asked = |(index, exchange): (usize, &Exchange)| {
            let ours = exchange.from == Side::Client && exchange.server == header.server;
            ours.then(|| Entry {
                index,
                method: exchange.method.clone(),
                params: essential(&exchange.method, &exchange.params),
                used: false,
            })
        };
        let entries = conversation.all().iter().enumerate().filter_map(asked).collect();
        Self { conversation, entries }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What to do about a request.
    pub(super) fn steps(&mut self, method: &str, params: &Value) -> Vec<Step> {
        match self.find(method, &essential(method, params)) {
            Some(index) => self.script(index),
            None => vec![self.unknown(method, &essential(method, params))],
        }
    }

    /// The next request of the trace that is the same; the last one if all of them were answered.
    fn find(&mut self, method: &str, params: &Value) -> Option<usize> {
        let state = params.get("requestState");
        let same = |entry: &Entry| entry.method == method && entry.params == *params;
        // A client may answer a question in another way than the recorded one did.
        let same_round = |entry: &Entry| {
            entry.method == method && state.is_some() && entry.params.get("requestState") == state
        };
        let tests: [&dyn Fn(&Entry) -> bool; 3] = [&|entry| !entry.used && same(entry), &same, &same_round];
        let fits = |(number, test): (usize, &&dyn Fn(&Entry) -> bool)| match number {
            0 => self.entries.iter().position(test),
            _ => self.entries.iter().rposition(test),
        };
        let found = tests.iter().enumerate().find_map(fits)?;
        let entry = self.entries.get_mut(found)?;
        entry.used = true;
        Some(entry.index)
    }

    fn script(&self, index: usize) -> Vec<Step> {
        let Some(exchange) = self.conversation.exchange(index) else { return Vec::new() };
        let mut steps: Vec<_> = exchange.during.iter().filter_map(|item| self.step(item)).collect();
        match &exchange.outcome {
            Some(Outcome::Result(result)) => steps.push(Step::Answer(result.clone())),
            Some(Outcome::Error(error)) => steps.push(Step::Refuse(rpc_error(error))),
            // It stays open for as long as the client wants.
            None if exchange.listens() => {}
            None => steps.push(Step::Refuse(RpcError::internal("the trace has no answer to this request"))),
        }
        steps
    }

    fn step(&self, item: &Item) -> Option<Step> {
        match item {
            Item::Notice(notice) if notice.from == Side::Server => {
                Some(Step::Tell(notice.method.clone(), notice.params.clone()))
            }
            Item::Exchange(index) => {
                let asked = self.conversation.exchange(*index)?;
                Some(Step::Ask(asked.method.clone(), asked.params.clone()))
            }
            _ => None,
        }
    }

    /// What is not in the trace: upkeep is answered, and the rest refused with what comes near.
    fn unknown(&self, method: &str, params: &Value) -> Step {
        if matches!(method, "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe") {
            return Step::Answer(json!({}));
        }
        let alike: Vec<_> = self.entries.iter().filter(|entry| entry.method == method).collect();
        if alike.is_empty() {
            let mut methods: Vec<_> = self.entries.iter().map(|entry| entry.method.as_str()).collect();
            methods.sort_unstable();
            methods.dedup();
            let text = format!("the trace has no {method}; it has {}", methods.join(", "));
            return Step::Refuse(RpcError::new(ErrorCode::METHOD_NOT_FOUND, text));
        }
        let wanted = comparable(params);
        let near = |entry: &&Entry| strsim::normalized_levenshtein(&wanted, &comparable(&entry.params));
        let mut close: Vec<_> = alike.into_iter().map(|entry| (near(&entry), entry)).collect();
        close.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let close: Vec<_> = close.into_iter().take(MAX_CLOSE).map(|(_, entry)| &entry.params).collect();
        let shown = close.first().map(|params| summary::request(method, params)).unwrap_or_default();
        let text = format!("the trace has no {method} with these parameters; the closest is: {shown}");
        Step::Refuse(RpcError::new(ErrorCode::INVALID_PARAMS, text).with_data(&json!({ "closest": close })))
    }
}

/// What tells one request from another.
fn essential(method: &str, params: &Value) -> Value {
    // Who opens the connection does not matter.
    if matches!(method, "initialize" | "server/discover") {
        return json!({});
    }
    let mut params = params.as_object().cloned().unwrap_or_default();
    params.remove("_meta");
    // No arguments and none at all are the same.
    if params.get("arguments").is_some_and(|arguments| *arguments == json!({})) {
        params.remove("arguments");
    }
    Value::Object(params)
}

fn comparable(params: &Value) -> String {
    params.to_string().chars().take(MAX_COMPARED_CHARS).collect()
}

fn rpc_error(error: &Value) -> RpcError {
    serde_json::from_value(error.clone())
        .unwrap_or_else(|_| RpcError::internal("the error in the trace is not valid"))
}
