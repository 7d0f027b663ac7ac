//! Plays one scenario of the conformance suite against the server at a URL.
//!
//! The suite says in the environment which one it is.

use std::{env, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::Parser;
use tokio::time::timeout;
use toolwire_conformance::client::{DEADLINE, ScenarioContext, play};
use toolwire_http::client::Http;

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
    let scenario =
        env::var("MCP_CONFORMANCE_SCENARIO").context("MCP_CONFORMANCE_SCENARIO names no scenario")?;
    let context = match env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => serde_json::from_str(&text).context("MCP_CONFORMANCE_CONTEXT cannot be read")?,
        Err(_) => ScenarioContext::default(),
    };
    let played = play(&scenario, context, Http::new(&url)?);
    timeout(DEADLINE, played).await.with_context(|| format!("{scenario} took longer than {DEADLINE:?}"))?
}
