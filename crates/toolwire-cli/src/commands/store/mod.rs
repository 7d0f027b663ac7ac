//! `toolwire store`: what operators do with the stores that servers keep their tasks in.
//!
//! Nothing here reads or changes a single task: that is for its server, which may have sealed it.

mod migrate;
mod place;
mod status;
mod sweep;

use clap::{Args, Subcommand};

use crate::{failure::Result, terminal::Terminal};

pub(crate) use place::Place;

const AFTER_HELP: &str = "\
The URL of a store is one of:
  sqlite:PATH                           a file
  redis://[USER[:PASSWORD]@]HOST        Redis or Valkey; rediss:// with TLS
  postgres://[USER[:PASSWORD]@]HOST/DB  Postgres

Examples:
  toolwire store status sqlite:tasks.db
  toolwire store migrate 'postgres://me@localhost/reports'
  toolwire store sweep redis://localhost";

/// Look at the store of a server, and tend it
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

const STATUS_HELP: &str = "\
It changes nothing that a server keeps, and applies no migrations. The exit code is 4 if the store
cannot be reached.

Examples:
  toolwire store status sqlite:tasks.db
  toolwire store status redis://localhost --json";

const MIGRATE_HELP: &str = "\
Servers do this when they start, unless their URL has migrate=off. It is done whatever the URL says
about it, once, also if several do it at the same time.

Examples:
  toolwire store migrate sqlite:tasks.db
  toolwire store migrate 'postgres://me@localhost/reports?migrate=off'";

const SWEEP_HELP: &str = "\
Servers do this as they run. It is for stores that no server uses any more, or that are full.

Examples:
  toolwire store sweep sqlite:tasks.db
  toolwire store sweep redis://localhost --json";

#[derive(Debug, Subcommand)]
enum Action {
    /// Show whether a store works, and what it promises
    #[command(after_help = STATUS_HELP)]
    Status(PlaceOptions),
    /// Make the tables of a store, or bring them up to date
    #[command(after_help = MIGRATE_HELP)]
    Migrate(PlaceOptions),
    /// Remove the tasks that have expired
    #[command(after_help = SWEEP_HELP)]
    Sweep(PlaceOptions),
}

/// Which store is meant.
#[derive(Args, Debug)]
struct PlaceOptions {
    /// The URL of the store
    url: String,
}

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    match &options.action {
        Action::Status(options) => status::run(&Place::of(&options.url), terminal).await,
        Action::Migrate(options) => migrate::run(&Place::of(&options.url), terminal).await,
        Action::Sweep(options) => sweep::run(&Place::of(&options.url), terminal).await,
    }
}
