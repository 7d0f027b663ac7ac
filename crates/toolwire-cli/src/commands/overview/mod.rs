//! `toolwire` alone: the servers that are configured on this machine, and whether they work.
//!
//! Listing is a success whatever was found; servers that fail and files that are broken are part of what is
//! told. Everything that was started to find out is ended before the table is shown, and also by Ctrl-C.

mod live;
mod nothing;
mod row;
mod show;
mod visit;

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use clap::Args;
use tokio::{sync::Semaphore, task::JoinSet};

use crate::{
    config::{self, Found, Host, Places},
    depth,
    failure::{Code, Failure, Result},
    session, target,
    terminal::Terminal,
    trust::Gate,
    waits,
};
use live::Live;
use row::Row;
use visit::Visited;

/// How long a server may take, unless `--timeout` says otherwise.
const TIMEOUT: Duration = Duration::from_secs(15);
/// How many servers are visited at once.
const MAX_AT_ONCE: usize = 16;

/// Lines are broken by hand, because clap does it only with a feature that asks the terminal for its width.
const AFTER_HELP: &str = "\
Reads the settings of Claude Desktop, Claude Code, Cursor, VS Code, Windsurf, Zed, Codex,
Gemini CLI, of the project (.mcp.json or mcp.json, up to the root of the repository) and
Toolwire's own; connects to all servers, and ends what it has started. This runs the
programs that the settings name, as the hosts do; --no-connect runs nothing. Files of the
project are used only if you have trusted them: see toolwire trust --help.

TOKENS estimates what the list of tools costs a model: the bytes of its JSON, divided by 4.
The exit code is 0 even if servers fail: --json tells which.

Hosts: project, toolwire, claude-code, claude-desktop, cursor, vscode, windsurf, zed, codex, gemini

Examples:
  toolwire list --host cursor
  toolwire list --no-connect --json";

/// List the servers that are configured on this machine, and whether they work
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// Only what this host has configured; may be given several times
    #[arg(long = "host", value_name = "HOST", hide_possible_values = true)]
    pub(crate) hosts: Vec<Host>,

    /// Only list, start and connect to nothing
    #[arg(long)]
    pub(crate) no_connect: bool,

    /// Use the project's files in this run, trusted or not
    #[arg(long)]
    pub(crate) trust: bool,

    /// Seconds that each server may take
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, default_value = "15", value_parser = target::seconds)]
    pub(crate) timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { hosts: Vec::new(), no_connect: false, trust: false, timeout: waits::stretched(TIMEOUT) }
    }
}

/// Runs the program without a command. Somebody who has configured that as a server did not mean it.
pub(crate) async fn alone(terminal: Terminal) -> Result<()> {
    let no_connect = depth::is_child();
    if no_connect {
        terminal
            .note("started as a host starts a server, so nothing is connected to; toolwire list does that");
    }
    run(&Options { no_connect, ..Options::default() }, terminal).await
}

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    if !options.no_connect {
        depth::check_all()?;
    }
    let places = Places::here();
    let hosts = if options.hosts.is_empty() { Host::ALL.to_vec() } else { options.hosts.clone() };
    let mut found = config::find_in(&places, &hosts);
    if !options.no_connect {
        Gate { terminal, open: options.trust }.ask_about_all(&mut found, &places)?;
        found.unnamed(&places, options.trust);
    }
    let Found { servers, broken, searched, .. } = found;
    if !terminal.json {
        for failure in &broken {
            terminal.warn(failure);
        }
    }
    let rows = row::rows(servers, options.hosts.is_empty());
    if rows.is_empty() && !terminal.json {
        return nothing::show(&places, &hosts, terminal);
    }
    let visited = if options.no_connect {
        rows.into_iter().map(Visited::not_tried).collect()
    } else {
        visit_all(rows, options.timeout, terminal).await?
    };
    if terminal.json {
        return terminal.print_json(&show::json(&visited, &broken, &searched, &places));
    }
    terminal.print(show::page(&visited, &places))
}

/// Visits all servers, some at a time, and gives them in their order.
async fn visit_all(rows: Vec<Row>, timeout: Duration, terminal: Terminal) -> Result<Vec<Visited>> {
    let live = Live::new(terminal);
    let signalled = session::signalled();
    let free = Arc::new(Semaphore::new(MAX_AT_ONCE));
    let mut visits = JoinSet::new();
    for (index, row) in rows.into_iter().enumerate() {
        let (free, live, stderr) = (Arc::clone(&free), live.clone(), terminal.passes_on());
        visits.spawn(async move {
            // It is never closed, and if it were, nothing would need to wait.
            let _turn = free.acquire_owned().await;
            let shown = live.line(&row);
            let outcome = visit::visit(row, timeout, stderr).await;
            shown.done(&outcome);
            (index, outcome)
        });
    }
    let mut visited = Vec::new();
    let finished = async {
        while let Some(visit) = visits.join_next().await {
            visited.push(visit.map_err(|error| Failure::new(Code::Other, error.to_string()))?);
        }
        Ok(())
    };
    let outcome = tokio::select! {
        outcome = finished => outcome,
        signal = signalled => {
            Err(Failure::new(Code::Interrupted, "interrupted; all servers are ended").signal(signal))
        }
    };
    live.clear();
    // What is still under way is dropped here, and what it had started with it.
    visits.shutdown().await;
    outcome?;
    visited.sort_by_key(|(index, _)| *index);
    Ok(visited.into_iter().map(|(_, visited)| visited).collect())
}
