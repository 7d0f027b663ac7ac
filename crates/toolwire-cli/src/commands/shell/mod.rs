//! What shells and manuals are told, from the same definitions as everything else.

use std::io::{self, Write};

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{
    args::Cli,
    failure::{Code, Failure, Result},
    terminal::Terminal,
};

/// Print the completions for a shell
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  source <(toolwire completions bash)\n  toolwire completions fish > ~/.config/fish/completions/toolwire.fish"
)]
pub(crate) struct CompletionsOptions {
    /// The shell that they are for
    pub(crate) shell: Shell,
}

/// Print the manual page, of the program or of a command
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  toolwire man | man -l -\n  toolwire man call | man -l -")]
pub(crate) struct ManOptions {
    /// The command; without it, the page is about all of them
    pub(crate) command: Option<String>,
}

/// Prints the completions.
pub(crate) fn completions(options: &CompletionsOptions, terminal: Terminal) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "toolwire", &mut script);
    print(&script, terminal)
}

/// Prints the manual page.
pub(crate) fn man(options: &ManOptions, terminal: Terminal) -> Result<()> {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    let command = match &options.command {
        None => program,
        Some(name) => {
            let command = program.find_subcommand(name).ok_or_else(|| {
                Failure::new(Code::Usage, format!("there is no command `{name}`"))
                    .hint("toolwire --help lists the commands")
            })?;
            command.clone()
        }
    };
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    print(&page, terminal)
}

/// Prints what is not for eyes but for programs, as it is; with `--json` as one JSON string.
fn print(bytes: &[u8], terminal: Terminal) -> Result<()> {
    if terminal.json {
        return terminal.print_json(&String::from_utf8_lossy(bytes));
    }
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}
