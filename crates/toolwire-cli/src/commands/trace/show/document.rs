//! A conversation for scripts.

use serde_json::{Map, Value, json};

use crate::{
    commands::trace::Recorded,
    trace::{Conversation, Exchange, Item, Outcome},
};

/// The whole conversation as one document.
pub(super) fn of(recorded: &Recorded) -> Value {
    let Recorded { header, problems, conversation } = recorded;
    json!({ "trace": header, "problems": problems, "conversation": items(conversation, &conversation.items) })
}

fn items(conversation: &Conversation, items: &[Item]) -> Vec<Value> {
    items.iter().map(|it| item(conversation, it)).collect()
}

fn item(conversation: &Conversation, item: &Item) -> Value {
    match item {
        Item::Exchange(index) => {
            let mut rounds = conversation.rounds(*index).map(|round| exchange(conversation, round));
            let mut first = rounds.next().unwrap_or_default();
            let more: Vec<_> = rounds.collect();
            if !more.is_empty() {
                first["rounds"] = more.into();
            }
            first
        }
        Item::Notice(notice) => json!({
            "micros": notice.micros, "server": notice.server, "from": notice.from,
            "notification": notice.method, "params": notice.params,
        }),
        Item::Failed { micros, server, why } => json!({ "micros": micros, "server": server, "failed": why }),
        Item::Closed { micros, server, why } => json!({ "micros": micros, "server": server, "closed": why }),
    }
}

fn exchange(conversation: &Conversation, exchange: &Exchange) -> Value {
    let mut members = Map::new();
    let mut add = |name: &str, value: Value| members.insert(name.to_owned(), value);
    add("micros", exchange.begun.into());
    add("server", exchange.server.as_str().into());
    add("from", json!(exchange.from));
    add("request", exchange.method.as_str().into());
    add("params", exchange.params.clone());
    if !exchange.during.is_empty() {
        add("during", items(conversation, &exchange.during).into());
    }
    match &exchange.outcome {
        Some(Outcome::Result(result)) => add("result", result.clone()),
        Some(Outcome::Error(error)) => add("error", error.clone()),
        None => add("answered", false.into()),
    };
    if let Some(took) = exchange.took() {
        add("took", took.into());
    }
    if exchange.cancelled {
        add("cancelled", true.into());
    }
    Value::Object(members)
}
