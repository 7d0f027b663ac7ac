//! `toolwire probe`: find out what a server speaks.
//!
//! It connects as every client would, then for each era and version that this has not shown, and reports the outcome of
//! each. A server on stdio is started once per connection, so no connection is made for an outcome that is known. What
//! is wrong with a server that cannot be reached is for `toolwire doctor` to find out.

mod report;
mod times;

use std::{
    cmp::Reverse,
    time::{Duration, Instant},
};

use clap::Args;
use tokio::task::JoinSet;
use toolwire::{
    Client, Era, Version,
    client::EraChoice,
    protocol::probe::ProbeLink,
    wire::{Implementation, ServerCapabilities},
};

use crate::{
    commands::doctor::{
        Children, connect,
        web::{self, Look},
    },
    failure::{Explain, Result},
    session,
    target::{Address, Target, TargetOptions},
    terminal::Terminal,
    waits,
};
use times::Times;

/// How long a server that has answered before may be silent when it is asked in another way.
const PATIENCE: Duration = Duration::from_secs(6);

const USAGE: &str = "toolwire probe [SERVER] [OPTIONS] [-- COMMAND [ARGUMENTS]...]";

const AFTER_HELP: &str = "\
Examples:
  toolwire probe github
  toolwire probe http://127.0.0.1:3000/mcp
  toolwire probe --json -- some-server";

/// Find out what a server speaks, how that was found out, and how fast it answers
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, override_usage = USAGE)]
pub(crate) struct Options {
    /// The server: a configured name or a URL
    pub(crate) server: Option<String>,

    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// What was found out.
#[derive(Debug)]
struct Findings {
    name: String,
    transport: &'static str,
    version: Version,
    /// How the version was found, step by step.
    how: Vec<String>,
    server: Option<Implementation>,
    capabilities: ServerCapabilities,
    instructions: Option<String>,
    /// From the start until the first answer.
    start: Duration,
    /// How long answers take.
    answers: Times,
    /// The attempts, the newest version first.
    attempts: Vec<Attempt>,
    /// What HTTP says, if it is spoken.
    http: Option<Look>,
}

/// An attempt to speak one version, or in the case of an era any of its versions.
#[derive(Debug)]
struct Attempt {
    era: Era,
    /// The version that was asked for; any of the era if there is none.
    asked: Option<Version>,
    /// The version that was agreed on, or why there is none.
    outcome: std::result::Result<Version, String>,
}

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let target = options.target.target(options.server.as_ref(), terminal)?;
    let doctor = format!("why not? toolwire doctor {}", target.typed());
    // Many connections are many states to be kept, which do not belong on the stack of every command.
    let findings = session::interruptible(Box::pin(examine(&target))).await.hint(doctor)?;
    report::print(&findings, terminal)
}

async fn examine(target: &Target) -> Result<Findings> {
    let begun = Instant::now();
    let client = connect(target, target.era, &Children::default()).await?;
    let start = begun.elapsed();
    let answers = Times::measure(&client).await;
    // Boxed, because it holds several connections while it is being made.
    let attempts = Box::pin(attempts(target, client.version(), start)).await;
    let http = match &target.address {
        Address::Http(remote) => web::look(remote, target.timeout).await,
        _ => None,
    };
    let findings = Findings {
        name: target.name.clone(),
        transport: transport(target, &client),
        version: client.version(),
        how: how(&client, &attempts).await,
        server: client.server_info().cloned(),
        capabilities: client.capabilities().clone(),
        instructions: client.instructions().map(str::to_owned),
        start,
        answers,
        attempts,
        http,
    };
    client.close().await?;
    Ok(findings)
}

fn transport(target: &Target, client: &Client) -> &'static str {
    match (&target.address, client.link().family()) {
        (Address::Http(_), ProbeLink::Http) => "Streamable HTTP",
        (Address::Http(_), ProbeLink::Duplex) => "HTTP+SSE (2024-11-05)",
        (address, _) => address.transport(),
    }
}

/// Tries each era, and each version of the legacy one if that is spoken at all. `spoken` is the version of a connection
/// that was made before.
async fn attempts(target: &Target, spoken: Version, start: Duration) -> Vec<Attempt> {
    // A server that has just answered within `start` is not slow; it is silent because it does not understand.
    let patience = waits::stretched(PATIENCE).max(start.saturating_mul(2)).min(target.timeout);
    let target = Target { timeout: patience, ..target.clone() };
    let known = |era, asked| Attempt { era, asked, outcome: Ok(spoken) };
    let modern = async {
        match spoken {
            Version::LATEST => known(Era::Modern, Some(spoken)),
            _ => attempt(&target, Era::Modern, Some(Version::LATEST)).await,
        }
    };
    let legacy = async {
        // Without a choice of the user, the newest version of the era was asked for.
        match (target.era, spoken.era()) {
            (EraChoice::Auto | EraChoice::Legacy, Era::Legacy) => known(Era::Legacy, None),
            _ => attempt(&target, Era::Legacy, None).await,
        }
    };
    let (modern, legacy) = tokio::join!(modern, legacy);
    let agreed = legacy.outcome.as_ref().ok().copied();
    let mut attempts = vec![modern, legacy];
    if let Some(agreed) = agreed {
        attempts.extend(versions(&target, agreed).await);
    }
    attempts
}

/// Tries the versions of the legacy era at once, but for the one that was agreed on. The newest comes first in the
/// answer.
async fn versions(target: &Target, agreed: Version) -> Vec<Attempt> {
    // So many processes at a time are slower than one.
    let target = Target { timeout: target.timeout.saturating_mul(2), ..target.clone() };
    let mut trying = JoinSet::new();
    for version in Version::ALL.into_iter().filter(|version| !version.is_modern() && *version != agreed) {
        let target = target.clone();
        trying.spawn(async move { attempt(&target, Era::Legacy, Some(version)).await });
    }
    let mut attempts = trying.join_all().await;
    attempts.push(Attempt { era: Era::Legacy, asked: Some(agreed), outcome: Ok(agreed) });
    attempts.sort_by_key(|attempt| Reverse(attempt.asked));
    attempts
}

async fn attempt(target: &Target, era: Era, asked: Option<Version>) -> Attempt {
    let choice = asked.map_or(EraChoice::Legacy, EraChoice::Version);
    let outcome = match connect(target, choice, &Children::default()).await {
        Ok(client) => {
            let version = client.version();
            // It may have been asked to leave while it was leaving.
            let _ = client.close().await;
            Ok(version)
        }
        Err(failure) => {
            let message = failure.message();
            let prefix = format!("{}: ", target.name);
            Err(message.strip_prefix(&prefix).unwrap_or(message).to_owned())
        }
    };
    Attempt { era, asked, outcome }
}

/// How the version that is spoken was found.
async fn how(client: &Client, attempts: &[Attempt]) -> Vec<String> {
    if client.era() == Era::Modern {
        let mut how = vec!["server/discover was answered".to_owned()];
        if let Ok(discovered) = client.discover().await {
            let versions = discovered.supported_versions.iter().take(Version::ALL.len() * 2);
            let versions: Vec<_> = versions.map(String::as_str).collect();
            how.push(format!("it offers {}", versions.join(", ")));
        }
        return how;
    }
    let refusal = attempts
        .iter()
        .find(|attempt| attempt.era == Era::Modern)
        .and_then(|attempt| attempt.outcome.as_ref().err());
    let mut how: Vec<_> = refusal.map(|why| refused(first_line(why))).into_iter().collect();
    how.push(format!("initialize was answered with {}", client.version()));
    how
}

/// Why the first question was not answered, with the question.
fn refused(why: &str) -> String {
    if why.contains("server/discover") { why.to_owned() } else { format!("server/discover: {why}") }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
