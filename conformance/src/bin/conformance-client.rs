//! Plays one scenario of the conformance suite against the server at a URL.
//!
//! The suite says in the environment which one it is.

use std::{env, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::Parser;
use tokio::time::timeout;
use toolwire_conformance::client::{DEADLINE, Scenario, play};

/// The client that the conformance suite watches.
#[derive(Debug, Parser)]
struct Options {
    /// Where the server is.
    url: String,
}

#[tokio::main]
#[expect(clippy::print_stderr, reason = "the suite shows what a client says when it fails")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let Options { url } = Options::parse();
    let name = env::var("MCP_CONFORMANCE_SCENARIO").context("MCP_CONFORMANCE_SCENARIO names no scenario")?;
    let mut scenario = Scenario::new(&name);
    scenario.revision = env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").ok();
    if let Ok(text) = env::var("MCP_CONFORMANCE_CONTEXT") {
        scenario.context = serde_json::from_str(&text).context("MCP_CONFORMANCE_CONTEXT cannot be read")?;
    }
    let played = timeout(DEADLINE, play(scenario, &url)).await;
    played.with_context(|| format!("{name} took longer than {DEADLINE:?}"))?
}
