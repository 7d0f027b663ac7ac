//! What shells and manuals are told, from the same definitions as everything else.

use clap::{Args, CommandFactory};

use crate::{
    args::Cli,
    failure::{Code, Failure, Result},
};

/// Print the completions for a shell
#[derive(Args, Debug)]
pub(crate) struct CompletionsOptions {}

/// Prints the completions.
pub(crate) fn completions(_options: &CompletionsOptions) -> Result<()> {
    let _ = Cli::command();
    Err(Failure::new(Code::Other, "not built yet"))
}

/// Prints the manual page.
pub(crate) fn man() -> Result<()> {
    Err(Failure::new(Code::Other, "not built yet"))
}
