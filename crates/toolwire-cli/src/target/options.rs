//! The options that say which server is meant; the same for every command.

use std::{
    env,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use clap::Args;
use toolwire::client::EraChoice;

use super::{Address, Command, Lost, Target};
use crate::{
    config,
    failure::{Code, Failure, Result},
    redact,
    terminal::Terminal,
    trace::Recorder,
    trust::Gate,
};

/// How long a server may take, unless `--timeout` says otherwise. A first `npx` downloads a package.
const TIMEOUT: &str = "30";

/// How to reach the server.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Server")]
pub(crate) struct TargetOptions {
    /// Behind --: start this program and speak to it over its standard input and output
    #[arg(last = true, value_name = "COMMAND", help_heading = None)]
    pub(crate) command: Vec<String>,

    /// Speak modern, legacy or a version such as 2025-06-18
    #[arg(long, value_name = "ERA", default_value = "auto", value_parser = era)]
    pub(crate) era: EraChoice,

    /// Send a header with every HTTP request (NAME: VALUE)
    #[arg(long, value_name = "HEADER", value_parser = header)]
    pub(crate) header: Vec<(String, String)>,

    /// Send the token in this environment variable as the bearer token
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) bearer_env: Option<String>,

    /// Set a variable for the program that is started (NAME=VALUE)
    #[arg(long, value_name = "VARIABLE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,

    /// Seconds to wait for a connection, answer or progress
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, default_value = TIMEOUT, value_parser = seconds)]
    pub(crate) timeout: Duration,

    /// MiB that a message of the server may have
    #[arg(long, value_name = "MIB", default_value = "16", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) max_message: u16,

    /// Let the server work on this folder; may be given several times
    #[arg(long = "root", value_name = "FOLDER")]
    pub(crate) roots: Vec<PathBuf>,

    /// Write every message down, without secrets; see toolwire trace
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    /// Use servers of the project's files in this run, trusted or not
    #[arg(long)]
    pub(crate) trust: bool,

    /// The one trace that all targets of this command are recorded in.
    #[arg(skip)]
    recorder: Arc<OnceLock<Recorder>>,
}

/// The positional words of a command, after the target has been taken out of them.
#[derive(Debug)]
pub(crate) struct Words<'a> {
    pub(crate) target: Target,
    /// What belongs to the command itself.
    pub(crate) rest: &'a [String],
}

impl TargetOptions {
    /// The server that is meant. It is the first of the words, unless there is a command after `--`.
    pub(crate) fn words<'a>(&self, words: &'a [String], terminal: Terminal) -> Result<Words<'a>> {
        if !self.command.is_empty() {
            let target = self.started(terminal)?;
            return self.fitting(&target.address).map(|()| Words { target, rest: words });
        }
        match words.split_first() {
            Some((word, rest)) => {
                let target = self.named(word, terminal)?;
                self.fitting(&target.address).map(|()| Words { target, rest })
            }
            None => Err(Failure::new(Code::Usage, "which server?").hint(
                "give a configured name (toolwire lists them), a URL, or a program: -- COMMAND [ARGUMENTS]",
            )),
        }
    }

    /// The server that is meant, for commands with no words of their own.
    pub(crate) fn target(&self, word: Option<&String>, terminal: Terminal) -> Result<Target> {
        let words = self.words(word.map_or(&[], std::slice::from_ref), terminal)?;
        match words.rest.first() {
            None => Ok(words.target),
            Some(word) => Err(Failure::new(
                Code::Usage,
                format!("both `{word}` and a program after -- are given; which server is meant?"),
            )),
        }
    }

    /// Refuses options that would mean nothing to this server.
    fn fitting(&self, address: &Address) -> Result<()> {
        let is_remote = matches!(address, Address::Http(_) | Address::WebSocket(_));
        if !is_remote && (!self.header.is_empty() || self.bearer_env.is_some()) {
            let text = "--header and --bearer-env are for servers at a URL, and this is none";
            return Err(
                Failure::new(Code::Usage, text).hint("a program is told by a variable: --env NAME=VALUE")
            );
        }
        if !matches!(address, Address::Command(_)) && !self.env.is_empty() {
            let text = "--env is for programs that are started, and this server runs already";
            return Err(
                Failure::new(Code::Usage, text).hint("it is told by a header: --header 'NAME: VALUE'")
            );
        }
        Ok(())
    }

    fn started(&self, terminal: Terminal) -> Result<Target> {
        let mut words = self.command.iter().cloned();
        let program = words.next().unwrap_or_default();
        let command = Command { program, args: words.collect(), ..Command::default() };
        // Before it has a name, which must not have the variables in it either.
        redact::learn(&Address::Command(Command { env: self.env.clone(), ..command.clone() }));
        let address = Address::Command(command);
        self.finish(address.to_string(), address, terminal)
    }

    /// The server at an address, or with a name in some configuration.
    pub(crate) fn named(&self, word: &str, terminal: Terminal) -> Result<Target> {
        let address = match Address::parse(word) {
            Some(address) => {
                redact::learn(&address);
                address
            }
            None => config::address(word, self.gate(terminal))?,
        };
        let name = if Address::parse(word).is_some() { address.to_string() } else { word.to_owned() };
        self.finish(name, address, terminal)
    }

    /// Where files of the project are asked about.
    pub(crate) const fn gate(&self, terminal: Terminal) -> Gate {
        Gate { terminal, open: self.trust }
    }

    /// Adds what the options say to a server that is known otherwise.
    pub(crate) fn finish(&self, name: String, mut address: Address, terminal: Terminal) -> Result<Target> {
        match &mut address {
            Address::Command(command) => command.env.extend(self.env.iter().cloned()),
            Address::Http(remote) | Address::WebSocket(remote) => {
                remote.headers.extend(self.header.iter().cloned());
                if let Some(variable) = &self.bearer_env {
                    remote.headers.push(("authorization".to_owned(), format!("Bearer {}", token(variable)?)));
                }
            }
            Address::Unix(_) => {}
        }
        redact::learn(&address);
        let roots = self.folders()?;
        let trace = self.recorder(&name, &address)?;
        Ok(Target {
            name,
            address,
            era: self.era,
            timeout: self.timeout,
            roots,
            stderr: terminal.passes_on(),
            trace,
            lost: Lost::default(),
            max_message: usize::from(self.max_message) << 20,
            roots_answered: Arc::default(),
        })
    }

    /// The folders that the server may work on, each of which is there.
    fn folders(&self) -> Result<Vec<PathBuf>> {
        match self.roots.iter().find(|folder| !folder.is_dir()) {
            None => Ok(self.roots.clone()),
            Some(missing) => {
                let what = if missing.exists() { "is not a folder" } else { "does not exist" };
                Err(Failure::new(Code::Usage, format!("--root: {} {what}", missing.display())))
            }
        }
    }

    /// Begins the trace before anything is started, so that a file that cannot be written costs nothing.
    fn recorder(&self, name: &str, address: &Address) -> Result<Option<Recorder>> {
        let Some(file) = &self.trace else { return Ok(None) };
        if let Some(recorder) = self.recorder.get() {
            return Ok(Some(recorder.clone()));
        }
        let recorder = Recorder::create(file, name, address)?;
        Ok(Some(self.recorder.get_or_init(|| recorder).clone()))
    }
}

fn token(variable: &str) -> Result<String> {
    match env::var(variable) {
        Ok(token) if !token.is_empty() => Ok(token),
        _ => Err(Failure::new(Code::Usage, format!("--bearer-env: the variable {variable} is not set"))
            .hint(format!("set it first: export {variable}=…"))),
    }
}

fn era(text: &str) -> Result<EraChoice, String> {
    match text {
        "auto" => Ok(EraChoice::Auto),
        "modern" => Ok(EraChoice::Modern),
        "legacy" => Ok(EraChoice::Legacy),
        version => version.parse().map(EraChoice::Version).map_err(|_| {
            let known: Vec<_> = toolwire::Version::ALL.iter().map(|version| version.as_str()).collect();
            format!("not auto, modern, legacy or one of {}", known.join(", "))
        }),
    }
}

/// Reads a header: `NAME: VALUE`.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("a header looks like this: 'X-Team: blue'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Reads a variable: `NAME=VALUE`.
pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a variable looks like this: NAME=value")?;
    if name.is_empty() {
        Err("the variable has no name".to_owned())
    } else {
        Ok((name.to_owned(), value.to_owned()))
    }
}

/// Reads a time in seconds, which is not zero.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds")?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "not a number of seconds above 0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_before_anything_is_started() {
        assert!(seconds("0").is_err() && seconds("-1").is_err() && seconds("inf").is_err());
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(header("X-Team:  blue:green "), Ok(("X-Team".into(), "blue:green".into())));
        assert!(header("X-Team").is_err() && variable("X").is_err() && variable("=x").is_err());
        assert_eq!(variable("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert!(matches!(era("2025-06-18"), Ok(EraChoice::Version(_))));
        assert!(era("2025").unwrap_err().contains("2026-07-28"));
    }
}
