//! What shells and manuals are told, from the same definitions as everything else.

use std::io::{self, Write};

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{
    args::Cli,
    failure::{Code, Failure, Result},
};

/// Print the completions for a shell
#[derive(Args, Debug)]
pub(crate) struct CompletionsOptions {
    /// The shell that they are for
    pub(crate) shell: Shell,
}

/// Print the manual page, of the program or of a command
#[derive(Args, Debug)]
pub(crate) struct ManOptions {
    /// The command; without it, the page is about all of them
    pub(crate) command: Option<String>,
}

/// Prints the completions.
pub(crate) fn completions(options: &CompletionsOptions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "toolwire", &mut script);
    print(&script)
}

/// Prints the manual page.
pub(crate) fn man(options: &ManOptions) -> Result<()> {
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
    print(&page)
}

/// Prints what is not for eyes but for programs, as it is.
fn print(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}
