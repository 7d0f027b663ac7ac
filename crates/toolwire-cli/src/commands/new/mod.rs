//! `toolwire new`: make a new server project.

use clap::Args;

use crate::{
    failure::{Code, Failure, Result},
    terminal::Terminal,
};

/// Make a new server project
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The name of the project and its folder
    pub(crate) name: String,
}

/// Runs the command.
pub(crate) fn run(_options: &Options, _terminal: &Terminal) -> Result<()> {
    Err(Failure::new(Code::Other, "not built yet"))
}
