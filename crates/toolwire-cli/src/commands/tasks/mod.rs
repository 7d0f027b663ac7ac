//! `toolwire tasks`: work that goes on at a server after the call that began it.

mod act;
mod list;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use toolwire::{Client, client::TaskHandle};

use crate::{
    ask::AnswerOptions,
    failure::{Code, Failure, Result},
    target::{Target, TargetOptions},
    terminal::{Terminal, printable_line},
    tickets::{self, LeftTask, Ticket, Tickets},
};

pub(crate) use act::forget_if_over;
pub(crate) use show::line;

const USAGE: &str =
    "toolwire tasks [SERVER] [OPTIONS] [-- COMMAND [ARGUMENTS]...]\n       toolwire tasks COMMAND";

const AFTER_HELP: &str = "\
Without a server, the tasks that were begun here are listed. A server of 2025-11-25 lists its own; of others, those that
were begun here are looked at.

Examples:
  toolwire call reports report year=2026 --detach
  toolwire tasks                      those that were begun here
  toolwire tasks wait 3fa             the beginning of an id is enough";

/// Follow work that goes on at a server
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, override_usage = USAGE, args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Option<Action>,

    /// The server: a configured name or an address
    server: Option<String>,

    #[command(flatten)]
    target: TargetOptions,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Wait for the result of a task
    Wait(WaitOptions),
    /// Show how a task stands, and what it asks
    Show(TaskOptions),
    /// Answer a question of a task
    Answer(ReplyOptions),
    /// Ask the server to end a task
    Cancel(TaskOptions),
}

/// Which task is meant.
#[derive(Args, Debug)]
struct TaskOptions {
    /// The id of the task, its beginning, or its ticket
    id: String,

    /// The server; not needed for tasks that were begun here
    server: Option<String>,

    #[command(flatten)]
    target: TargetOptions,
}

#[derive(Args, Debug)]
struct WaitOptions {
    #[command(flatten)]
    task: TaskOptions,

    /// Save pictures and sounds to this file or folder
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,

    #[command(flatten)]
    answers: AnswerOptions,
}

const ANSWER_HELP: &str = "\
Examples:
  toolwire tasks answer 3fa depth levels=2
  toolwire tasks answer 3fa depth --decline";

#[derive(Args, Debug)]
#[command(after_help = ANSWER_HELP)]
struct ReplyOptions {
    /// The id of the task, its beginning, or its ticket
    id: String,

    /// The key of the question; toolwire tasks show ID has them
    key: String,

    /// The fields of the form, written as arguments of tools are
    #[arg(value_name = "KEY=VALUE")]
    fields: Vec<String>,

    /// Say no
    #[arg(long, conflicts_with = "fields")]
    decline: bool,

    /// The server; not needed for tasks that were begun here
    #[arg(long)]
    server: Option<String>,

    #[command(flatten)]
    target: TargetOptions,
}

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    match &options.action {
        None => list::run(options.server.as_ref(), &options.target, terminal).await,
        Some(Action::Wait(options)) => act::wait(options, terminal).await,
        Some(Action::Show(options)) => act::show(options, terminal).await,
        Some(Action::Answer(options)) => act::answer(options, terminal).await,
        Some(Action::Cancel(options)) => act::cancel(options, terminal).await,
    }
}

/// A task that is meant, and where it is.
struct Meant {
    target: Target,
    /// What the client goes on with.
    ticket: String,
    kept: Option<Ticket>,
    /// The ticket says where it is: no server was typed.
    by_ticket: bool,
}

impl Meant {
    /// Finds a task by what was typed.
    fn find(id: &str, server: Option<&String>, options: &TargetOptions, terminal: Terminal) -> Result<Self> {
        let kept = Tickets::here().find(id)?;
        let in_ticket = tickets::id_in(id);
        let target = match &kept {
            Some(kept) if server.is_none() && options.command.is_empty() => {
                let mut options = options.clone();
                options.command.clone_from(&kept.command);
                match &kept.server {
                    Some(server) => options.target(Some(server), terminal)?,
                    None if kept.command.is_empty() => {
                        let text =
                            "the program that runs this task was started with secrets, which are not kept";
                        return Err(
                            Failure::new(Code::Usage, text).hint("give it again: -- COMMAND [ARGUMENTS]")
                        );
                    }
                    None => options.target(None, terminal)?,
                }
            }
            None if server.is_none() && options.command.is_empty() => {
                let id = in_ticket.as_deref().unwrap_or(id);
                let text = format!("no unfinished task `{id}` is known here");
                return Err(Failure::new(Code::UnknownName, printable_line(&text)).hint(
                    "a task that is over is forgotten here, and its server may still know it: name the server as well",
                ));
            }
            _ => options.target(server, terminal)?,
        };
        let ticket = match &kept {
            _ if in_ticket.is_some() => id.to_owned(),
            Some(kept) => kept.text.clone(),
            None => serde_json::json!({ "toolwire-task": 1, "id": id }).to_string(),
        };
        let by_ticket = server.is_none() && options.command.is_empty();
        Ok(Self { target, ticket, kept, by_ticket })
    }

    fn handle(&self, client: &Client) -> Result<TaskHandle> {
        Ok(client.task(&self.ticket)?)
    }

    /// The task as it is named after it was left.
    fn left(&self, id: &str) -> LeftTask {
        LeftTask::new(id, &self.target, self.by_ticket)
    }
}

/// Leaving a task that goes on.
pub(crate) fn left(task: &LeftTask) -> Failure {
    let text = format!("left; {}", task.fate());
    Failure::new(Code::Interrupted, text).hint(task.next_steps("go on", ""))
}
