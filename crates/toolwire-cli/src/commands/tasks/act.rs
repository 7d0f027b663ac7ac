//! `toolwire tasks wait|show|answer|cancel`.

use serde_json::{Map, Value, json};
use toolwire::{
    Client,
    client::{ErrorKind, TaskHandle, TaskState},
    wire::{ElicitRequestParams, ElicitResult, InputRequest},
};

use super::{Meant, ReplyOptions, TaskOptions, WaitOptions, left, show};
use crate::{
    arguments,
    ask::Asker,
    failure::{Code, Failure, Result},
    render::Live,
    schema,
    session::{self, Stop},
    target,
    terminal::{Table, Terminal, printable, printable_line},
    tickets::Tickets,
};

pub(super) async fn wait(options: &WaitOptions, terminal: Terminal) -> Result<()> {
    let task = &options.task;
    let meant = Meant::find(&task.id, task.server.as_ref(), &task.target, terminal)?;
    let (live, stop) = (Live::new(terminal, "connecting"), Stop::default());
    let asker = Asker::new(terminal, &meant.target.name, &options.answers, &live, &stop)?;
    let builder = asker.attend(target::builder(&meant.target));
    let mut begun = None;
    let work = async |client: &Client| {
        let task = meant.handle(client)?;
        asker.in_task(begun.insert(meant.left(task.id())).clone());
        let tool = task.tool().unwrap_or("task").to_owned();
        let outcome = task.result_with(|state| live.doing(&show::line(&tool, state))).await;
        forget_if_over(&task, outcome.as_ref().err().map(toolwire::client::Error::kind))?;
        Ok((tool, outcome?))
    };
    let outcome = session::attended(&meant.target, builder, &stop, work).await;
    asker.leave();
    let (tool, outcome) = outcome.map_err(|failure| match &begun {
        Some(task) if failure.code() == Code::Interrupted => left(task),
        _ => failure,
    })?;
    show::result(&outcome, options.output.as_deref(), terminal, &tool)
}

/// Forgets the ticket of a task that has come to its end.
pub(crate) fn forget_if_over(task: &TaskHandle, failed: Option<ErrorKind>) -> Result<()> {
    let over = match failed {
        None | Some(ErrorKind::TaskGone | ErrorKind::TaskCancelled) => true,
        Some(_) => task.last_state().is_some_and(|state| state.has_ended()),
    };
    if over { Tickets::here().forget(task.id()) } else { Ok(()) }
}

pub(super) async fn show(options: &TaskOptions, terminal: Terminal) -> Result<()> {
    let meant = Meant::find(&options.id, options.server.as_ref(), &options.target, terminal)?;
    let work = async |client: &Client| {
        let task = meant.handle(client)?;
        let state = task.get().await;
        if state.as_ref().is_err_and(|error| error.kind() == ErrorKind::TaskGone) {
            Tickets::here().forget(task.id())?;
        }
        Ok(state?)
    };
    let state = session::with_client(&meant.target, target::builder(&meant.target), work).await?;
    let tool = meant.kept.as_ref().map(|kept| kept.tool.as_str());
    if terminal.json {
        return terminal.print_json(&show::to_json(&state, tool));
    }
    let mut table = Table::default();
    let task = state.as_task();
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            table.row([name.to_owned(), printable_line(value)]);
        }
    };
    row("id", state.id());
    row("server", &meant.target.name);
    row("tool", tool.unwrap_or_default());
    row("status", show::status(state.status()));
    row("message", state.message().unwrap_or_default());
    row("created", &task.created_at);
    row("updated", &task.last_updated_at);
    let ttl = state.ttl().map_or_else(|| "without an end".to_owned(), |ttl| format!("{} s", ttl.as_secs()));
    row("kept for", &ttl);
    for (key, question) in state.questions() {
        row("asks", &format!("{key}: {}", asked(question)));
    }
    terminal.print(table)
}

/// What a question asks, in words.
fn asked(question: &InputRequest) -> String {
    match question {
        InputRequest::Elicit(params) => params.message().to_owned(),
        InputRequest::CreateMessage(_) => "an answer of a model".to_owned(),
        other => other.method().to_owned(),
    }
}

pub(super) async fn answer(options: &ReplyOptions, terminal: Terminal) -> Result<()> {
    let meant = Meant::find(&options.id, options.server.as_ref(), &options.target, terminal)?;
    let work = async |client: &Client| {
        let task = meant.handle(client)?;
        let state = task.get().await?;
        let reply = reply(options, &state, terminal)?;
        task.answer(&*options.key, &reply).await.map_err(|error| match error.kind() {
            ErrorKind::NotInThisVersion => Failure::from(error).hint(format!(
                "in this version its questions are asked by: {}",
                meant.left(task.id()).command("wait", "")
            )),
            _ => Failure::from(error),
        })
    };
    session::with_client(&meant.target, target::builder(&meant.target), work).await?;
    if terminal.json {
        return terminal.print_json(&json!({ "answered": options.key }));
    }
    terminal.print(printable(&format!("answered `{}`", options.key)))
}

/// The answer to a form, checked by its schema.
fn reply(options: &ReplyOptions, state: &TaskState, terminal: Terminal) -> Result<ElicitResult> {
    if options.decline {
        return Ok(ElicitResult::decline());
    }
    let question = state.questions().find(|(key, _)| *key == options.key).map(|(_, question)| question);
    match question {
        Some(InputRequest::Elicit(ElicitRequestParams::Form(form))) => {
            let schema = serde_json::to_value(&form.requested_schema).unwrap_or_default();
            let mut content = arguments::assign(&options.fields, &schema, Map::new())?;
            toolwire::protocol::schema::fill_defaults(&schema, &mut content);
            checked(&schema, &content, terminal)?;
            Ok(ElicitResult::accept(content))
        }
        Some(other) => {
            let text =
                format!("`{}` asks for {}, and only forms are answered here", options.key, asked(other));
            Err(Failure::new(Code::Unanswerable, printable(&text))
                .hint("toolwire tasks wait asks for the rest"))
        }
        None => {
            let open: Vec<String> = state.questions().map(|(key, _)| format!("`{key}`")).collect();
            let hint = match open.as_slice() {
                [] => "it asks nothing at present".to_owned(),
                open => format!("it asks {}", printable(&open.join(", "))),
            };
            Err(Failure::new(Code::UnknownName, format!("the task does not ask `{}`", options.key))
                .hint(hint))
        }
    }
}

fn checked(schema: &Value, content: &Map<String, Value>, terminal: Terminal) -> Result<()> {
    schema::check("the answer", schema, &Value::Object(content.clone()), terminal).map_err(|violations| {
        let lines: Vec<String> = violations.iter().map(|violation| format!("  {violation}")).collect();
        Failure::new(
            Code::InvalidArguments,
            printable(&format!("the answer does not fit:\n{}", lines.join("\n"))),
        )
    })
}

pub(super) async fn cancel(options: &TaskOptions, terminal: Terminal) -> Result<()> {
    let meant = Meant::find(&options.id, options.server.as_ref(), &options.target, terminal)?;
    let work = async |client: &Client| {
        let task = meant.handle(client)?;
        let cancelled = task.cancel().await;
        if cancelled.as_ref().is_ok()
            || cancelled.as_ref().is_err_and(|error| error.kind() == ErrorKind::TaskGone)
        {
            Tickets::here().forget(task.id())?;
        }
        cancelled?;
        Ok(task.id().to_owned())
    };
    let id = session::with_client(&meant.target, target::builder(&meant.target), work).await?;
    if terminal.json {
        return terminal.print_json(&json!({ "cancelled": id }));
    }
    terminal.print(printable(&format!("the server was asked to end {id}")))
}
