//! `toolwire auth`: what is known about logins.

mod explain;
mod status;

use clap::{Args, Subcommand};

use crate::{failure::Result, terminal::Terminal};

/// Show logins, or the way to one
#[derive(Args, Debug)]
#[command(after_help = "Log in with toolwire login SERVER, and out with toolwire logout SERVER")]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Status(status::Options),
    Explain(Box<explain::Options>),
}

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    match &options.action {
        Action::Status(options) => status::run(options, terminal),
        Action::Explain(options) => explain::run(options, terminal).await,
    }
}
