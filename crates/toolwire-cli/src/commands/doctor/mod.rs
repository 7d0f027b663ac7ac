//! `toolwire doctor`: find out what is wrong with a server.
//!
//! [`gather`] collects facts into a [`Case`], [`checks`] judge them, [`report`] tells. Doctor changes nothing: what
//! it finds has a fix, and carrying it out is left to people.

mod case;
mod checks;
mod finding;
mod gather;
mod problem;
mod report;
pub(crate) mod web;

use std::{sync::Arc, time::Duration};

use clap::Args;
use tokio::{sync::Semaphore, task::JoinSet};

pub(crate) use finding::shortened;
pub(crate) use gather::{Children, connect};
pub(crate) use problem::Problem;

use crate::{
    config::{self, Host, Places},
    depth,
    failure::{Code, Failure, Result},
    session,
    target::{Target, TargetOptions},
    terminal::Terminal,
};
use report::Report;

/// How many servers are looked at at once.
const AT_ONCE: usize = 8;

/// How often the time for one answer all looks at a server may take, together with the end of its processes.
const ROUNDS: u32 = 8;

const USAGE: &str = "toolwire doctor [SERVER] [OPTIONS] [-- COMMAND [ARGUMENTS]...]";

const AFTER_HELP: &str = "\
Without a server, all that are configured are looked at.
The exit code is 0 if nothing is wrong, or only a little: --strict counts that as well.

Examples:
  toolwire doctor
  toolwire doctor github
  toolwire doctor --strict -- some-server";

/// Find out what is wrong with a server, and how to fix it
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, override_usage = USAGE)]
pub(crate) struct Options {
    /// The server: a configured name or a URL
    pub(crate) server: Option<String>,

    /// Count warnings as errors
    #[arg(long)]
    pub(crate) strict: bool,

    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let one = options.server.is_some() || !options.target.command.is_empty();
    let reports = if one {
        let target = options.target.target(options.server.as_ref(), terminal)?;
        let looking = async { Ok(examine(&target).await) };
        vec![Box::pin(session::interruptible(looking)).await?]
    } else {
        configured(options, terminal).await?
    };
    report::print(&reports, options.strict, terminal)?;
    verdict(&reports, options.strict)
}

/// Looks at all servers that are configured, several at once, and tells of them in the order of the configuration.
async fn configured(options: &Options, terminal: Terminal) -> Result<Vec<Report>> {
    depth::check_all()?;
    let places = Places::here();
    let mut found = config::find_in(&places, &Host::ALL);
    options.target.gate(terminal).ask_about_all(&mut found, &places)?;
    found.unnamed(&places, options.target.trust);
    let some = !found.servers.is_empty();
    // What its host does not use is not looked at, unless it is named.
    found.servers.retain(|server| !server.disabled);
    if found.servers.is_empty() && found.broken.is_empty() {
        let text = if some {
            "all servers that are configured here are switched off"
        } else {
            "no servers are configured here"
        };
        return Err(Failure::new(Code::Usage, text)
            .hint("name one: toolwire doctor URL, or toolwire doctor -- COMMAND [ARGUMENTS]"));
    }
    let mut reports: Vec<_> = found.broken.iter().map(Report::of_failure).collect();
    if terminal.is_live() {
        terminal.note(format!("looking at {} servers …", found.servers.len()));
    }
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut looks = JoinSet::new();
    for (index, server) in found.servers.into_iter().enumerate() {
        let target = server
            .address
            .and_then(|address| options.target.finish(server.name.clone(), address, terminal))
            .map_err(|failure| failure.context(format!("{} ({})", server.name, server.file.display())));
        let room = Arc::clone(&room);
        looks.spawn(async move {
            // It is never closed, so this waits for its turn.
            let _turn = room.acquire().await;
            let report = match target {
                Ok(target) => examine(&target).await,
                Err(failure) => Report::of_failure(&failure),
            };
            (index, report)
        });
    }
    let mut looked = session::interruptible(async { Ok(looks.join_all().await) }).await?;
    looked.sort_by_key(|(index, _)| *index);
    reports.extend(looked.into_iter().map(|(_, report)| report));
    Ok(reports)
}

/// Looks at one server. Whatever it does, this ends.
async fn examine(target: &Target) -> Report {
    let deadline = target.timeout.saturating_mul(ROUNDS).saturating_add(Duration::from_secs(10));
    if let Ok(case) = tokio::time::timeout(deadline, gather::gather(target)).await {
        Report::of_case(&case, checks::all(&case))
    } else {
        let text = format!("{}: the examination took more than {} s", target.name, deadline.as_secs());
        Report::of_failure(&Failure::new(Code::Timeout, text))
    }
}

/// What the program ends with: the worst that was found, or 1 if that is of several kinds.
fn verdict(reports: &[Report], strict: bool) -> Result<()> {
    let mut codes: Vec<_> = reports.iter().filter_map(|report| report.code(strict)).collect();
    codes.dedup_by_key(|code| code.exit());
    match codes[..] {
        [] => Ok(()),
        [code] => Err(Failure::told(code)),
        _ => Err(Failure::told(Code::Unhealthy)),
    }
}
