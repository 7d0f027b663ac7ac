//! What the commands do, one folder each.

mod demo;

use anyhow::Result;

use crate::args::Command;

/// Runs a command.
pub(crate) fn run(command: Command) -> Result<()> {
    match command {
        Command::Demo(options) => demo::run(&options),
    }
}
