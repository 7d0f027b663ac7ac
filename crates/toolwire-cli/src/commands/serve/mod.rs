//! `toolwire serve`: serve the demonstration server.

use clap::Args;

use crate::{
    failure::{Code, Failure, Result},
    terminal::Terminal,
};

/// Serve the demonstration server
#[derive(Args, Debug)]
pub(crate) struct Options {}

/// Runs the command.
pub(crate) async fn run(_options: &Options, _terminal: &Terminal) -> Result<()> {
    Err(Failure::new(Code::Other, "not built yet"))
}
