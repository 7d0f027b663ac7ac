//! `toolwire trace replay`: ask again what was asked, and see what has changed.

mod book;
mod compare;
mod report;
mod rounds;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use clap::Args;
use serde_json::{Map, Value, json};
use toolwire::{Client, client::ClientBuilder};

use super::Recorded;
use crate::{
    failure::{Code, Failure, Result},
    redact::REDACTED,
    session,
    target::{self, Target, TargetOptions},
    terminal::Terminal,
    trace::{Exchange, Outcome, Side},
};
use book::Book;
use compare::Volatile;
use report::{Report, Verdict};

const USAGE: &str = "toolwire trace replay FILE [SERVER] [OPTIONS] [-- COMMAND [ARGUMENTS]...]";

const AFTER_HELP: &str = "\
What the server asks back is answered as in the trace. The exit code is 0 if every
answer is the same, and 1 if one is not.

Examples:
  toolwire trace replay talk.jsonl -- some-server
  toolwire trace replay talk.jsonl github --ignore timestamp";

/// Send the requests of a trace again, and show what changed
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, override_usage = USAGE)]
pub(super) struct Options {
    /// The trace
    file: PathBuf,

    /// The server (not with -- COMMAND)
    #[arg(value_name = "SERVER")]
    words: Vec<String>,

    /// Do not compare this member of answers; may be given several times
    #[arg(long, value_name = "MEMBER")]
    ignore: Vec<String>,

    #[command(flatten)]
    target: TargetOptions,
}

/// What belongs to a connection and not to what is said over it.
const UPKEEP: [&str; 7] = [
    "initialize",
    "server/discover",
    "ping",
    "logging/setLevel",
    "subscriptions/listen",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// The answers of the trace, shared with the handlers of the client.
type SharedBook = Arc<Mutex<Book>>;

/// Runs the command.
pub(super) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let recorded = super::read(&options.file, terminal)?;
    let words = options.target.words(&options.words, terminal)?;
    if let Some(word) = words.rest.first() {
        return Err(Failure::new(Code::Usage, format!("`{word}` is one word too many")));
    }
    let book = Arc::new(Mutex::new(Book::of(&recorded.conversation)));
    let builder = handlers(target::builder(&words.target), &words.target, &recorded, &book);
    let volatile = Volatile::new(&options.ignore);
    let mut report = Report::new(terminal);
    session::with_client(&words.target, builder, async |client| {
        replay(client, &recorded, &book, &volatile, &mut report).await
    })
    .await?;
    report.finish()
}

async fn replay(
    client: &Client,
    recorded: &Recorded,
    book: &SharedBook,
    volatile: &Volatile,
    report: &mut Report,
) -> Result<()> {
    let conversation = &recorded.conversation;
    let mut cursors = Cursors::default();
    for index in conversation.asked() {
        let Some(exchange) = conversation.exchange(index) else { continue };
        if exchange.from != Side::Client || UPKEEP.contains(&exchange.method.as_str()) {
            continue;
        }
        if exchange.server != recorded.header.server {
            report.skipped(exchange, "it was sent to another server")?;
            continue;
        }
        let last = conversation.rounds(index).last().and_then(|round| round.outcome.as_ref());
        let Some(was) = last.map(plain) else {
            report.skipped(exchange, "it has no answer in the trace")?;
            continue;
        };
        let params = cursors.translated(essential(&exchange.params));
        let redacted = Value::Object(params.clone()).to_string().contains(REDACTED);
        let now = rounds::ask(client, &exchange.method, params, book).await?;
        cursors.learn(&was, &now);
        let verdict = Verdict::of(volatile.normal(&was), volatile.normal(&now), redacted);
        report.compared(exchange, &verdict)?;
    }
    Ok(())
}

/// A client that can do what the recorded one could, and answers as it did.
fn handlers(
    builder: ClientBuilder,
    target: &Target,
    recorded: &Recorded,
    book: &SharedBook,
) -> ClientBuilder {
    let can = recorded.conversation.all().iter().find_map(capabilities).cloned().unwrap_or_default();
    let has = |path: &str| can.pointer(path).is_some();
    let mut builder = builder;
    if has("/elicitation") {
        let book = Arc::clone(book);
        builder = builder.elicit_url(has("/elicitation/url")).on_elicit(move |question| {
            let answer = look_up(&book, "elicitation/create", &json!(question.params()));
            async move { book::elicit_reply(answer) }
        });
    }
    if has("/sampling") {
        let book = Arc::clone(book);
        builder = builder.sample_tools(has("/sampling/tools")).sample_context(has("/sampling/context"));
        builder = builder.on_sample(move |question| {
            let answer = look_up(&book, "sampling/createMessage", &json!(question));
            async move { book::sample_reply(answer) }
        });
    }
    if has("/roots") && target.roots.is_empty() {
        builder = builder.roots(book::roots(look_up(book, "roots/list", &Value::Null)));
    }
    builder
}

fn look_up(book: &SharedBook, method: &str, params: &Value) -> Option<Value> {
    book.lock().unwrap_or_else(PoisonError::into_inner).answer(method, params)
}

/// What the recorded client said that it can do.
fn capabilities(exchange: &Exchange) -> Option<&Value> {
    let modern = || exchange.params.pointer("/_meta/io.modelcontextprotocol~1clientCapabilities");
    match (exchange.from, exchange.method.as_str()) {
        (Side::Client, "initialize") => exchange.params.get("capabilities"),
        (Side::Client, _) => modern(),
        (Side::Server, _) => None,
    }
}

/// Parameters without what the client adds by itself.
fn essential(params: &Value) -> Map<String, Value> {
    let mut params = params.as_object().cloned().unwrap_or_default();
    if let Some(Value::Object(meta)) = params.get_mut("_meta") {
        meta.retain(|name, _| !name.starts_with("io.modelcontextprotocol/") && name != "progressToken");
        if meta.is_empty() {
            params.remove("_meta");
        }
    }
    params
}

fn plain(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Result(result) => json!({ "result": result }),
        Outcome::Error(error) => json!({ "error": error }),
    }
}

/// Where pages begin: each server has its own words for it.
#[derive(Default)]
struct Cursors(Vec<(Value, Value)>);

impl Cursors {
    fn learn(&mut self, was: &Value, now: &Value) {
        if let (Some(was), Some(now)) = (was.pointer("/result/nextCursor"), now.pointer("/result/nextCursor"))
        {
            self.0.push((was.clone(), now.clone()));
        }
    }

    fn translated(&self, mut params: Map<String, Value>) -> Map<String, Value> {
        if let Some(cursor) = params.get_mut("cursor")
            && let Some((_, now)) = self.0.iter().rev().find(|(was, _)| was == cursor)
        {
            *cursor = now.clone();
        }
        params
    }
}

#[cfg(test)]
mod tests;
