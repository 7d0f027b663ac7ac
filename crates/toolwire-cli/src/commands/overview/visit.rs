//! Connecting to a server, to see whether it works and what it has.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout, timeout_at};
use toolwire::{Client, Era, Version, client::EraChoice, wire::Tool};

use super::row::Row;
use crate::{
    ask,
    failure::{Code, Failure, Result},
    target::{self, Lost, Target},
    terminal::seconds,
    tools, waits,
};

/// How many bytes of JSON are taken for one token. It is a rule of thumb: models differ.
const BYTES_PER_TOKEN: usize = 4;
/// How long a server may take to end before it is killed; longer than its transport gives it.
const CLOSING: Duration = Duration::from_secs(6);

/// A server, and what came of visiting it.
#[derive(Debug)]
pub(super) struct Visited {
    pub(super) row: Row,
    pub(super) outcome: Outcome,
}

/// What came of a visit.
#[derive(Debug)]
pub(super) enum Outcome {
    Works(Reached),
    Failed(Failure),
    /// The configuration does not say how to reach it.
    Broken(Failure),
    /// Its file is not trusted.
    NotTrusted(Failure),
    /// Its hosts do not use it, so neither was it visited.
    Off,
    NotTried,
}

/// What a server that works has told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    pub(super) era: Era,
    pub(super) version: Version,
    /// The name and version that the server gives itself.
    pub(super) server: Option<(String, String)>,
    pub(super) tools: usize,
    /// The estimated tokens of the list of tools.
    pub(super) tokens: usize,
}

impl Visited {
    /// A server that is not visited.
    pub(super) fn not_tried(mut row: Row) -> Self {
        if row.disabled {
            return Self { row, outcome: Outcome::Off };
        }
        match row.address {
            Ok(_) => Self { row, outcome: Outcome::NotTried },
            Err(failure) => {
                // The reason moves to where it is shown.
                row.address = Err(Failure::told(failure.code()));
                let outcome = match failure.code() {
                    Code::NotTrusted => Outcome::NotTrusted(failure),
                    _ => Outcome::Broken(failure),
                };
                Self { row, outcome }
            }
        }
    }
}

/// Visits a server; it is ended again.
pub(super) async fn visit(row: Row, limit: Duration, stderr: Option<fn(&str)>) -> Visited {
    let mut visited = Visited::not_tried(row);
    if let (Outcome::NotTried, Ok(address)) = (&visited.outcome, &visited.row.address) {
        let target = Target {
            name: visited.row.name.clone(),
            address: address.clone(),
            era: EraChoice::Auto,
            timeout: limit,
            roots: Vec::new(),
            stderr,
            trace: None,
            lost: Lost::default(),
            max_message: target::MAX_MESSAGE_BYTES,
            roots_answered: Arc::default(),
        };
        visited.outcome = reach(&target).await.map_or_else(Outcome::Failed, Outcome::Works);
    }
    visited
}

async fn reach(target: &Target) -> Result<Reached> {
    let deadline = Instant::now() + target.timeout;
    let client = target::connect(target, ask::declare(target::builder(target))).await?;
    let tools = match timeout_at(deadline, target.within_limit(tools(&client))).await {
        Ok(tools) => tools,
        Err(_) => Err(Failure::new(
            Code::Timeout,
            format!("connected, but the tools were not listed within {}", seconds(target.timeout)),
        )
        .hint("give it more time: toolwire list --timeout 60")),
    };
    let info = client.server_info().map(|info| (info.name.clone(), info.version.clone()));
    let (era, version) = (client.era(), client.version());
    // It may not want to end; being dropped ends it anyway.
    let _ = timeout(waits::stretched(CLOSING), client.close()).await;
    let tools = tools.map_err(|failure| failure.context(&target.name))?;
    Ok(Reached { era, version, server: info, tools: tools.len(), tokens: tokens(&tools) })
}

async fn tools(client: &Client) -> Result<Vec<Tool>> {
    if client.capabilities().tools.is_none() {
        return Ok(Vec::new());
    }
    Ok(tools::all(client).await?.good)
}

/// What the tools cost a model that is told about all of them, roughly.
fn tokens(tools: &[Tool]) -> usize {
    let bytes = |tool: &Tool| serde_json::to_vec(tool).map_or(0, |json| json.len());
    tools.iter().map(bytes).sum::<usize>().div_ceil(BYTES_PER_TOKEN)
}
