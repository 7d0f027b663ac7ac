//! `toolwire trace`: show, replay or serve a recorded conversation.

use clap::Args;

use crate::{
    failure::{Code, Failure, Result},
    terminal::Terminal,
};

/// Show, replay or serve a recorded conversation
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// [SERVER] and what belongs to the command
    pub(crate) words: Vec<String>,
}

/// Runs the command.
pub(crate) async fn run(_options: &Options, _terminal: &Terminal) -> Result<()> {
    Err(Failure::new(Code::Other, "not built yet"))
}
