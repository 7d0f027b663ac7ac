//! Which server a command is about: a configured name, an address, or a program to be started.

mod address;
mod connect;
mod lost;
mod options;

use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;
use toolwire::client::EraChoice;

use crate::{
    auth,
    failure::{Code, Failure, Result},
    terminal::printable,
    trace::Recorder,
};

pub(crate) use address::{Address, Command, Remote, shell_word, whole_line};
pub(crate) use connect::{
    MAX_MESSAGE_BYTES, builder, connect, probe_timeout, settle, start, too_late, unobserved,
};
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
    /// How many bytes a message may have.
    pub(crate) max_message: usize,
    /// Tells when the server has been told the folders.
    pub(crate) roots_answered: Arc<Notify>,
}

/// A failure because a message was over the limit, with the way to raise it.
fn too_large(why: &str, limit: usize) -> Failure {
    Failure::new(Code::TooLarge, printable(why)).hint(larger_ones(limit))
}

/// How to allow larger messages than `limit` bytes.
fn larger_ones(limit: usize) -> String {
    let more = (limit >> 20).saturating_mul(4).max(1);
    format!("allow larger ones: --max-message {more} (in MiB)")
}

impl Target {
    /// Adds to an answer that did not come what came instead.
    pub(crate) fn explained(&self, failure: Failure) -> Failure {
        let failure = self.with_login(failure);
        if failure.code() == Code::TooLarge && failure.advice().is_none() {
            return failure.hint(larger_ones(self.max_message));
        }
        match self.lost.last() {
            Some(why) if failure.code() == Code::Timeout => {
                let doctor = format!("why? toolwire doctor {}", self.typed());
                failure.and(format_args!("; {}", printable(&why))).hint(doctor)
            }
            _ => failure,
        }
    }

    /// Says how to log in where that is what is missing.
    fn with_login(&self, failure: Failure) -> Failure {
        if let Some(hint) = failure.auth().and_then(|why| auth::advice(why, &self.typed())) {
            return failure.hint(hint);
        }
        let remote = matches!(self.address, Address::Http(_) | Address::WebSocket(_));
        let asked = failure.code() == Code::AuthNeeded && failure.advice().is_none();
        if asked && remote && !self.address.has_credentials() {
            let login = format!("toolwire login {}, or give it a token: --bearer-env VARIABLE", self.typed());
            return failure.hint(login);
        }
        failure
    }

    /// Does something with the server that ends at once when a message of it was too large, and lost.
    pub(crate) async fn within_limit<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            done = work => done,
            why = self.lost.too_large() => Err(too_large(&why, self.max_message)),
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
