//! `toolwire watch`: watch a server for changes.

use clap::Args;
use owo_colors::OwoColorize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolwire::{
    Client,
    client::{Change, EndReason, Listener},
    wire::{LoggingLevel, LoggingMessageNotificationParams, SubscriptionFilter},
};

use crate::{
    ask,
    failure::{Code, Failure, Result},
    render::log_line,
    session,
    target::{self, Target, TargetOptions},
    terminal::{Moment, Terminal, printable, printable_line},
};

/// How many log messages may wait to be printed; what comes faster is counted.
const MAX_WAITING_LOGS: usize = 1024;

const USAGE: &str = "toolwire watch [SERVER] [URI]... [OPTIONS] [-- COMMAND [ARGUMENTS]...]";

const AFTER_HELP: &str = "\
Examples:
  toolwire watch files
  toolwire watch files file:///tmp/notes.txt     a resource, besides the lists
  toolwire watch --json -- some-server           one JSON value per line";

/// Watch a server for changes
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, override_usage = USAGE)]
pub(crate) struct Options {
    /// The server (not with -- COMMAND), and the resources to watch besides the lists
    #[arg(value_name = "WORDS")]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// Runs the command. Ctrl-C is the way to end it, so that is no failure.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let words = options.target.words(&options.words, terminal)?;
    let (sender, mut logs) = mpsc::channel(MAX_WAITING_LOGS);
    let builder = ask::declare(target::builder(&words.target)).on_log(move |message| {
        // A server that logs faster than it can be printed loses messages, not us memory.
        let _ = sender.try_send(message);
    });
    let builder = if terminal.verbose > 0 { builder.log_level(LoggingLevel::Debug) } else { builder };
    let work = async |client: &Client| watch(client, &words.target, words.rest, &mut logs, terminal).await;
    match session::with_client(&words.target, builder, work).await {
        Err(failure) if failure.code() == Code::Interrupted => Ok(()),
        outcome => outcome,
    }
}

async fn watch(
    client: &Client,
    target: &Target,
    uris: &[String],
    logs: &mut mpsc::Receiver<LoggingMessageNotificationParams>,
    terminal: Terminal,
) -> Result<()> {
    let mut listener = listen(client, uris).await?;
    let watched = watched(listener.honoured());
    if watched.is_empty() {
        let text = format!("{} does not tell about any of its changes", target.name);
        return Err(Failure::new(Code::NotSupported, text));
    }
    if terminal.json {
        event(terminal, json!({ "watching": watched }))?;
    } else {
        terminal.note(printable_line(&format!("watching {}; Ctrl-C ends it", watched.join(", "))).dimmed());
    }
    loop {
        tokio::select! {
            biased;
            Some(message) = logs.recv() => log(&message, terminal)?,
            change = listener.next() => match change {
                Some(Change::Ended(reason)) => return ended(&reason, terminal),
                Some(change) => tell(&change, terminal)?,
                None => return Ok(()),
            },
        }
    }
}

/// Listens to every list that the server has, and to these resources.
async fn listen(client: &Client, uris: &[String]) -> Result<Listener> {
    let can = client.capabilities();
    let mut listen = client.listen();
    if can.tools.is_some() {
        listen = listen.tools();
    }
    if can.prompts.is_some() {
        listen = listen.prompts();
    }
    if can.resources.is_some() {
        listen = listen.resources();
    }
    for uri in uris {
        listen = listen.resource(uri);
    }
    Ok(listen.await?)
}

/// What the server has agreed to tell.
fn watched(filter: &SubscriptionFilter) -> Vec<String> {
    let lists = [
        (filter.tools_list_changed, "tools"),
        (filter.prompts_list_changed, "prompts"),
        (filter.resources_list_changed, "resources"),
    ];
    let lists = lists.into_iter().filter(|(told, _)| *told == Some(true)).map(|(_, name)| name.to_owned());
    lists.chain(filter.resource_subscriptions.iter().flatten().cloned()).collect()
}

fn tell(change: &Change, terminal: Terminal) -> Result<()> {
    let (word, text) = match change {
        Change::Tools => ("tools", "the list of tools has changed".to_owned()),
        Change::Prompts => ("prompts", "the list of prompts has changed".to_owned()),
        Change::Resources => ("resources", "the list of resources has changed".to_owned()),
        Change::Updated(uri) => ("updated", format!("{} has changed", printable_line(uri).green())),
        Change::Resync => ("resync", "connected again; anything may have changed meanwhile".to_owned()),
        _ => ("other", "something else has changed".to_owned()),
    };
    if !terminal.json {
        return terminal.print(format!("{}  {text}", Moment::now().clock().dimmed()));
    }
    match change {
        Change::Updated(uri) => event(terminal, json!({ "change": word, "uri": uri })),
        _ => event(terminal, json!({ "change": word })),
    }
}

fn log(message: &LoggingMessageNotificationParams, terminal: Terminal) -> Result<()> {
    if terminal.json {
        return event(terminal, json!({ "log": message }));
    }
    terminal.print(format!("{}  {}", Moment::now().clock().dimmed(), log_line(message)))
}

fn ended(reason: &EndReason, terminal: Terminal) -> Result<()> {
    let why = match reason {
        EndReason::Graceful => None,
        EndReason::Lost(why) | EndReason::Closed(why) => Some(printable(why)),
        _ => Some(String::new()),
    };
    if terminal.json {
        event(terminal, json!({ "ended": why.as_deref().unwrap_or("the server ended the subscription") }))?;
    }
    match why {
        None => {
            terminal.note("the server ended the subscription".dimmed());
            Ok(())
        }
        Some(why) => Err(Failure::new(Code::ConnectionClosed, format!("nothing more will come: {why}"))),
    }
}

/// One line of JSON, with its time.
fn event(terminal: Terminal, mut event: Value) -> Result<()> {
    event["time"] = json!(Moment::now().to_string());
    terminal.print_json(&event)
}
