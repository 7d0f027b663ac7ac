//! `toolwire doctor`: find out what is wrong with a server.

use clap::Args;

use crate::{
    failure::{Code, Failure, Result},
    target::TargetOptions,
    terminal::Terminal,
};

/// Find out what is wrong with a server
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// [SERVER] and what belongs to the command
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// Runs the command.
pub(crate) async fn run(_options: &Options, _terminal: &Terminal) -> Result<()> {
    Err(Failure::new(Code::Other, "not built yet"))
}
