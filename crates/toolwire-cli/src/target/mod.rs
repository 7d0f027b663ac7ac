//! Which server a command is about: a configured name, an address, or a program to be started.

mod address;
mod connect;
mod lost;
mod options;

use std::time::Duration;

use toolwire::client::EraChoice;

use crate::{
    failure::{Code, Failure},
    terminal::printable,
    trace::Recorder,
};

pub(crate) use address::{Address, Command, Remote, shell_word};
pub(crate) use connect::{builder, connect, start, too_late, unobserved};
pub(crate) use lost::Lost;
pub(crate) use options::{TargetOptions, header, seconds, variable};

/// A server, and how to speak to it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// What people call it: its configured name, or its address.
    pub(crate) name: String,
    pub(crate) address: Address,
    pub(crate) era: EraChoice,
    /// How long connecting may take, and every request without a sign of life.
    pub(crate) timeout: Duration,
    /// The folders that the server may work on.
    pub(crate) roots: Vec<std::path::PathBuf>,
    /// What is done with the lines that the server writes to its standard error.
    pub(crate) stderr: Option<fn(&str)>,
    /// Where the conversation is written down.
    pub(crate) trace: Option<Recorder>,
    /// What the server has sent in vain.
    pub(crate) lost: Lost,
}

impl Target {
    /// Adds to an answer that did not come what came instead.
    pub(crate) fn explained(&self, failure: Failure) -> Failure {
        match self.lost.last() {
            Some(why) if failure.code() == Code::Timeout => {
                let doctor = format!("why? toolwire doctor {}", self.typed());
                failure.and(format_args!("; {}", printable(&why))).hint(doctor)
            }
            _ => failure,
        }
    }

    /// The target as it is typed.
    pub(crate) fn typed(&self) -> String {
        match self.address {
            Address::Command(_) if self.name == self.address.to_string() => format!("-- {}", self.name),
            Address::Command(_) => shell_word(&self.name),
            _ => self.name.clone(),
        }
    }
}
