//! `toolwire` alone: the servers that are configured on this machine, and whether they work.

use clap::Args;

use crate::{
    failure::{Code, Failure, Result},
    terminal::Terminal,
};

/// List the servers that are configured on this machine, and whether they work
#[derive(Args, Debug, Default)]
pub(crate) struct Options {}

/// Runs the command.
pub(crate) async fn run(_options: &Options, _terminal: &Terminal) -> Result<()> {
    Err(Failure::new(Code::Other, "not built yet"))
}
