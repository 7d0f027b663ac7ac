//! `toolwire tasks`: which tasks there are.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolwire::{
    Client,
    client::{Error, ErrorKind, TaskState},
    wire::Task,
};

use super::show;
use crate::{
    failure::{Failure, Result},
    session,
    target::{self, Target, TargetOptions},
    terminal::{Table, Terminal, printable_line},
    tickets::{Ticket, Tickets},
};

pub(super) async fn run(server: Option<&String>, options: &TargetOptions, terminal: Terminal) -> Result<()> {
    if server.is_none() && options.command.is_empty() {
        return kept(terminal);
    }
    let target = options.target(server, terminal)?;
    let builder = target::builder(&target);
    let rows =
        session::with_client(&target, builder, async |client: &Client| at(client, &target).await).await?;
    if terminal.json {
        let tasks: Vec<&Value> = rows.iter().map(|row| &row.json).collect();
        return terminal.print_json(&json!({ "tasks": tasks }));
    }
    if rows.is_empty() {
        terminal.note(format!("{} has no tasks of yours", target.name));
        return Ok(());
    }
    let mut table = Table::headed(["ID", "TOOL", "STATUS", "CREATED", "MESSAGE"]);
    for row in rows {
        table.row(row.cells);
    }
    terminal.print(table)
}

/// The tasks that were begun here. No server is asked.
fn kept(terminal: Terminal) -> Result<()> {
    let all = Tickets::here().all()?;
    if terminal.json {
        let tasks: Vec<Value> = all.iter().map(of_ticket).collect();
        return terminal.print_json(&json!({ "tasks": tasks }));
    }
    if all.is_empty() {
        terminal.note("no tasks of this user go on; toolwire call … --detach begins one where a tool can");
        return Ok(());
    }
    let mut table = Table::headed(["ID", "SERVER", "TOOL", "BEGUN"]);
    for ticket in &all {
        let cells = [&ticket.id, &ticket.place(), &ticket.tool, &ticket.begun];
        table.row(cells.map(|cell| printable_line(cell)));
    }
    terminal.print(table)
}

fn of_ticket(ticket: &Ticket) -> Value {
    json!({ "taskId": ticket.id, "server": ticket.place(), "tool": ticket.tool, "begun": ticket.begun })
}

/// A task at the server that was asked.
struct Row {
    cells: Vec<String>,
    json: Value,
}

async fn at(client: &Client, target: &Target) -> Result<Vec<Row>> {
    match client.tasks().collect().await {
        Ok(tasks) => {
            let kept = Tickets::here().all()?;
            let kept: HashMap<&str, &str> = kept.iter().map(|ticket| (&*ticket.id, &*ticket.tool)).collect();
            let tool = |task: &Task| kept.get(&*task.task_id).copied();
            Ok(tasks.iter().map(|task| row(task, tool(task), json!(task))).collect())
        }
        Err(error) if is_not_listed(&error) => looked_at(client, target).await,
        Err(error) => Err(Failure::from(error)),
    }
}

/// Whether there are tasks, but no list of them.
fn is_not_listed(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotInThisVersion | ErrorKind::NotAdvertised)
}

/// Looks at the tasks that were begun here. Those that the server does not know any more are forgotten.
async fn looked_at(client: &Client, target: &Target) -> Result<Vec<Row>> {
    let tickets = Tickets::here();
    let mut rows = Vec::new();
    for ticket in tickets.all()?.into_iter().rev().filter(|ticket| ticket.place() == target.typed()) {
        match client.task(&ticket.text)?.get().await {
            Ok(state) => rows.push(of_state(&state, &ticket.tool)),
            Err(error) if error.kind() == ErrorKind::TaskGone => tickets.forget(&ticket.id)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(rows)
}

fn of_state(state: &TaskState, tool: &str) -> Row {
    row(state.as_task(), Some(tool), show::to_json(state, Some(tool)))
}

fn row(task: &Task, tool: Option<&str>, mut json: Value) -> Row {
    if let Some(tool) = tool {
        json["tool"] = json!(tool);
    }
    let message = task.status_message.as_deref().unwrap_or_default();
    let message = message.lines().next().unwrap_or_default();
    let cells = [&task.task_id, tool.unwrap_or("-"), show::status(task.status), &task.created_at, message];
    Row { cells: cells.map(printable_line).to_vec(), json }
}
