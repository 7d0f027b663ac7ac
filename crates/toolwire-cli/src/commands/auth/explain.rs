//! `toolwire auth explain`: the way to a login, step by step, up to where somebody would be asked.

use std::{fmt::Write as _, time::Duration};

use clap::Args;
use owo_colors::OwoColorize;
use serde_json::{Value, json};
use toolwire::{auth::client::Prospect, http::client::fetch::Fetcher};

use crate::{
    auth::{self, ChainOptions, Hop, Settings, Site, Walk},
    failure::{Code, Failure, Result},
    session,
    target::seconds,
    terminal::{Terminal, printable, printable_line},
    trust::Gate,
};

const AFTER_HELP: &str = "\
Nothing is registered, asked for or written.

Examples:
  toolwire auth explain https://example.com/mcp
  toolwire auth explain https://example.com/mcp --issuer https://login.example.com --json";

/// Go the way to a login, and tell each step: request, status, rule, verdict
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// The server: a URL or a configured name
    #[arg(value_name = "URL")]
    server: String,

    #[command(flatten)]
    chain: ChainOptions,

    /// Seconds to wait for the server's first answer
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    timeout: Duration,
}

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let site = auth::site(&options.server, Gate { terminal, open: false })?;
    let settings = options.chain.over(Settings::load(&auth::store_of_user()?, &site)?)?;
    let fetcher = Fetcher::new();
    let walk = session::interruptible(async {
        let knock = site.knock(&fetcher, options.timeout).await.map_err(|error| {
            Failure::new(Code::Unreachable, format!("{} cannot be asked: {error}", site.shown()))
        })?;
        auth::walk(&site, &settings, &fetcher, &knock).await
    })
    .await?;
    if walk.is_open() {
        return open(&site, &walk, terminal);
    }
    if terminal.json {
        terminal.print_json(&to_json(&site, &walk))?;
        return walk.outcome.map(|_| ()).map_err(|error| Failure::told(auth::failure(&error, &site).code()));
    }
    for hop in &walk.hops {
        terminal.print(shown(hop))?;
    }
    match walk.outcome {
        Ok(prospect) => terminal.print(format!("\n{}: toolwire login {}", words(&prospect), site.typed)),
        Err(error) => Err(auth::failure(&error, &site)),
    }
}

/// There is nothing to log in to.
fn open(site: &Site, walk: &Walk, terminal: Terminal) -> Result<()> {
    if terminal.json {
        return terminal.print_json(&to_json(site, walk));
    }
    for hop in &walk.hops {
        terminal.print(shown(hop))?;
    }
    terminal.print("\nNo login is needed: the server answers without one, and names nobody to log in at")
}

fn words(prospect: &Prospect) -> String {
    match prospect {
        Prospect::Register(at) => {
            format!("A client would be registered at {}, and a person asked", printable_line(&at.shown()))
        }
        _ => "A person would be asked now".to_owned(),
    }
}

fn shown(hop: &Hop) -> String {
    let mark = match hop.verdict {
        "fine" => "✓".green().to_string(),
        "next" => "·".to_owned(),
        "warning" => "!".yellow().to_string(),
        _ => "✗".red().to_string(),
    };
    let rule =
        if hop.rule.is_empty() { String::new() } else { format!(" [{}]", hop.rule).dimmed().to_string() };
    let mut text = format!("{mark} {}: {}{rule}", hop.step, printable(&hop.detail));
    if let Some(request) = &hop.request {
        let status = hop.status.map(|status| format!(" → {status}")).unwrap_or_default();
        let _ = write!(text, "\n    {}{status}", printable_line(request));
    }
    text
}

fn to_json(site: &Site, walk: &Walk) -> Value {
    let hops: Vec<Value> = walk.hops.iter().map(Hop::to_json).collect();
    let outcome = match &walk.outcome {
        _ if walk.is_open() => json!({ "next": "nothing" }),
        Ok(Prospect::Register(at)) => json!({ "next": "register", "at": at.shown() }),
        Ok(_) => json!({ "next": "ask" }),
        Err(error) => auth::failure(error, site).to_json(),
    };
    json!({ "server": site.shown(), "hops": hops, "outcome": outcome })
}
