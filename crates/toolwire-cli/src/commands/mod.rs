//! What the commands do, one folder each. The options of a command are defined beside what it does.

pub(crate) mod auth;
pub(crate) mod bench;
pub(crate) mod call;
pub(crate) mod complete;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod list;
pub(crate) mod login;
pub(crate) mod logout;
pub(crate) mod new;
pub(crate) mod overview;
pub(crate) mod probe;
pub(crate) mod prompt;
pub(crate) mod read;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod store;
pub(crate) mod tasks;
pub(crate) mod trace;
pub(crate) mod trust;
pub(crate) mod watch;

use std::time::Duration;

use crate::{
    args::{Cli, Command},
    depth,
    failure::{Explain, Result},
    redact,
    terminal::Terminal,
};

/// How long the program waits for its last tasks to be dropped, which takes a moment unless one of them blocks.
const LEAVING: Duration = Duration::from_millis(500);

/// Runs a command.
pub(crate) fn run(cli: Cli) -> Result<()> {
    let terminal = Terminal { json: cli.json, verbose: cli.verbose };
    // These need no runtime, and are asked for by shells on every start.
    match &cli.command {
        Some(Command::Completions(options)) => return shell::completions(options, terminal),
        Some(Command::Man(options)) => return shell::man(options, terminal),
        Some(Command::Explain(options)) => return explain::run(options, terminal),
        Some(Command::Demo(options)) => return demo::run(options, terminal),
        _ => {}
    }
    redact::learn_environment();
    depth::check()?;
    let runtime = tokio::runtime::Runtime::new().context("the runtime could not be started")?;
    let outcome = runtime.block_on(dispatch(cli.command, terminal));
    // Whatever was dropped on the way out is ended now, with the processes it had started. A prompt may still
    // be waiting for the keyboard; nobody waits longer for that.
    runtime.shutdown_timeout(LEAVING);
    outcome
}

async fn dispatch(command: Option<Command>, terminal: Terminal) -> Result<()> {
    let Some(command) = command else { return overview::alone(terminal).await };
    match command {
        Command::List(options) => overview::run(&options, terminal).await,
        Command::Tools(options) => list::list_tools(&options, terminal).await,
        Command::Resources(options) => list::resources(&options, terminal).await,
        Command::Templates(options) => list::templates(&options, terminal).await,
        Command::Prompts(options) => list::prompts(&options, terminal).await,
        Command::Call(options) => Box::pin(call::run(&options, terminal)).await,
        Command::Tasks(options) => Box::pin(tasks::run(&options, terminal)).await,
        Command::Read(options) => read::run(&options, terminal).await,
        Command::Prompt(options) => prompt::run(&options, terminal).await,
        Command::Complete(options) => complete::run(&options, terminal).await,
        Command::Watch(options) => watch::run(&options, terminal).await,
        Command::Probe(options) => probe::run(&options, terminal).await,
        Command::Doctor(options) => Box::pin(doctor::run(&options, terminal)).await,
        Command::Bench(options) => bench::run(&options, terminal).await,
        Command::Login(options) => Box::pin(login::run(&options, terminal)).await,
        Command::Logout(options) => Box::pin(logout::run(&options, terminal)).await,
        Command::Auth(options) => Box::pin(auth::run(&options, terminal)).await,
        Command::Serve(options) => serve::run(&options, terminal).await,
        Command::Store(options) => store::run(&options, terminal).await,
        Command::Trace(options) => trace::run(&options, terminal).await,
        Command::New(options) => new::run(&options, terminal),
        Command::Add(options) => config::add(&options, terminal),
        Command::Remove(options) => config::remove(&options, terminal),
        Command::Trust(options) => trust::trust(&options, terminal),
        Command::Untrust(options) => trust::untrust(&options, terminal),
        Command::Completions(_) | Command::Man(_) | Command::Explain(_) | Command::Demo(_) => Ok(()),
    }
}
