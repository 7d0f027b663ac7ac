//! `toolwire explain`: explain an error code.

use clap::Args;

use crate::{
    failure::{Code, Failure, Result},
    terminal::Terminal,
};

/// Explain an error code
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// An error code
    pub(crate) code: Option<String>,
}

/// Runs the command.
pub(crate) fn run(_options: &Options, _terminal: &Terminal) -> Result<()> {
    Err(Failure::new(Code::Other, "not built yet"))
}
