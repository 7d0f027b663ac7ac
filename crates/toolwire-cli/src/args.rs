//! What can be typed: the commands. Their options are beside what they do, in [`commands`](crate::commands).

use clap::{ArgAction, Parser, Subcommand};

use crate::commands::{
    auth, bench, call, complete, config, demo, doctor, explain, list, login, logout, new, overview, probe,
    prompt, read, serve, shell, store, tasks, trace, trust, watch,
};

const AFTER_HELP: &str = "\
A server is a configured name, a URL, or a program: -- COMMAND [ARGUMENTS]

  toolwire                                    what is configured here, and does it work?
  toolwire tools -- npx -y some-server        what can it do?
  toolwire call add a=2 b=3 -- some-server    try a tool
  toolwire doctor github                      why does it not work?
  toolwire demo                               new here? take the tour";

const TOOLS_HELP: &str = "\
Examples:
  toolwire tools github
  toolwire tools github issue              those that match issue
  toolwire tools --long -- some-server     with all there is to know";

const RESOURCES_HELP: &str = "\
Examples:
  toolwire resources files
  toolwire resources files readme          those that match readme
  toolwire resources --json -- some-server";

const TEMPLATES_HELP: &str = "\
Examples:
  toolwire templates github
  toolwire templates --long -- some-server";

const PROMPTS_HELP: &str = "\
Examples:
  toolwire prompts github
  toolwire prompts --long -- some-server";

/// Toolwire: find, call, check and explain MCP servers, in every revision of the protocol
#[derive(Debug, Parser)]
#[command(name = "toolwire", version, after_help = AFTER_HELP, disable_help_flag = true)]
pub(crate) struct Cli {
    /// Print JSON instead of human-readable output
    #[arg(long, global = true, display_order = 1000)]
    pub(crate) json: bool,

    /// Verbose output, with what servers write to standard error
    #[arg(short, long, global = true, action = ArgAction::Count, display_order = 1001)]
    pub(crate) verbose: u8,

    /// Print help
    #[arg(short, long, global = true, action = ArgAction::HelpShort, display_order = 1002)]
    pub(crate) help: Option<bool>,

    /// What to do; without it, the configured servers are listed.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(overview::Options),
    /// List the tools of a server
    #[command(
        override_usage = "toolwire tools [SERVER] [PATTERN] [OPTIONS] [-- COMMAND [ARGUMENTS]...]",
        after_help = TOOLS_HELP
    )]
    Tools(list::Options),
    /// List the resources of a server
    #[command(
        override_usage = "toolwire resources [SERVER] [PATTERN] [OPTIONS] [-- COMMAND [ARGUMENTS]...]",
        after_help = RESOURCES_HELP
    )]
    Resources(list::Options),
    /// List the resource templates of a server
    #[command(
        override_usage = "toolwire templates [SERVER] [PATTERN] [OPTIONS] [-- COMMAND [ARGUMENTS]...]",
        after_help = TEMPLATES_HELP
    )]
    Templates(list::Options),
    /// List the prompts of a server
    #[command(
        override_usage = "toolwire prompts [SERVER] [PATTERN] [OPTIONS] [-- COMMAND [ARGUMENTS]...]",
        after_help = PROMPTS_HELP
    )]
    Prompts(list::Options),
    Call(Box<call::Options>),
    Tasks(Box<tasks::Options>),
    Read(read::Options),
    Prompt(prompt::Options),
    Complete(complete::Options),
    Watch(watch::Options),
    Probe(probe::Options),
    Doctor(doctor::Options),
    Explain(explain::Options),
    Bench(bench::Options),
    Trace(trace::Options),
    Login(Box<login::Options>),
    Logout(logout::Options),
    Auth(auth::Options),
    Serve(serve::Options),
    Store(store::Options),
    New(new::Options),
    Add(config::AddOptions),
    Remove(config::RemoveOptions),
    Trust(trust::TrustOptions),
    Untrust(trust::UntrustOptions),
    Demo(demo::Options),
    Completions(shell::CompletionsOptions),
    Man(shell::ManOptions),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        super::Cli::command().debug_assert();
    }
}
