//! Everything that is known about a server: facts, gathered once, that the checks then judge.

use std::{path::PathBuf, time::Duration};

use toolwire::{
    Version,
    auth::client::AuthError,
    transport::child::Ending,
    wire::{Implementation, Prompt, Resource, ResourceTemplate, Tool},
};

use super::web::Web;
use crate::{
    auth::{Stored, Walk},
    failure::Code,
    target::Address,
    tools::BadTool,
};

/// The facts about one server.
#[derive(Debug)]
pub(crate) struct Case {
    /// What people call it.
    pub(crate) name: String,
    pub(crate) address: Address,
    /// How long it was given to connect.
    pub(crate) patience: Duration,
    /// What is known about its program, if it is one.
    pub(crate) program: Option<Program>,
    /// What is known about its child processes, if there were any.
    pub(crate) child: Child,
    /// The proxy that requests go through, without its credentials.
    pub(crate) proxy: Option<String>,
    /// What HTTP says, if that was asked because connecting failed.
    pub(crate) web: Option<Web>,
    /// What is known about logins, if one is wanted.
    pub(crate) auth: Option<Auth>,
    /// The conversation, or why there is none.
    pub(crate) talk: Result<Talk, Silence>,
}

/// What is known about logins to a server that wants one.
#[derive(Debug)]
pub(crate) struct Auth {
    /// As the server is typed.
    pub(crate) typed: String,
    /// Whether what was stored before could be renewed.
    pub(crate) was_renewable: bool,
    /// What is stored.
    pub(crate) stored: Stored,
    /// Why the stored login was not good enough.
    pub(crate) failed: Option<AuthError>,
    /// The way to a new login.
    pub(crate) walk: Option<Walk>,
}

/// Where a program was looked for, and what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// It is in none of these folders; the login shell may know it.
    NotFound { searched: Vec<PathBuf>, in_login_shell: Option<String> },
    /// No such file.
    NoFile(PathBuf),
    /// The file may not be run.
    NotExecutable(PathBuf),
    /// The script wants this interpreter, which is not there.
    NoInterpreter { script: PathBuf, interpreter: String },
    /// The folder to start it in is not there.
    NoDirectory(PathBuf),
    /// It is this file, which was named by a path or else found in PATH.
    Found { file: PathBuf, by_path: bool },
}

/// What the child processes did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Child {
    /// How often it was started until there was a conversation.
    pub(crate) starts: usize,
    /// How the last one ended, if it did before it was told to.
    pub(crate) ending: Option<Ending>,
    /// The last lines on standard error.
    pub(crate) stderr: Vec<String>,
    /// What it has sent that was no message, or too long for one.
    pub(crate) lost: Option<String>,
    /// How many lines on standard output were no messages.
    pub(crate) junk_count: u64,
    /// The last of those lines.
    pub(crate) junk: Vec<String>,
}

/// A conversation that came about.
#[derive(Debug)]
pub(crate) struct Talk {
    pub(crate) version: Version,
    pub(crate) server: Option<Implementation>,
    /// From the start to the first answer; the shorter one, if it was started twice.
    pub(crate) took: Duration,
    /// The same for the very first start, which may have had something to download.
    pub(crate) first: Duration,
    /// The server did not answer `server/discover` at all.
    pub(crate) silent_on_discover: bool,
    /// Why a client that begins with `initialize` is not served, if that was tried and failed.
    pub(crate) legacy_refusal: Option<String>,
    /// It is reached by the HTTP transport of 2024-11-05.
    pub(crate) sse: bool,
    /// Where the same host has the newer transport, if that was looked for.
    pub(crate) newer: Option<String>,
    pub(crate) tools: Listed<Tool>,
    /// The tools that cannot be understood.
    pub(crate) bad_tools: Vec<BadTool>,
    pub(crate) resources: Listed<Resource>,
    pub(crate) templates: Listed<ResourceTemplate>,
    pub(crate) prompts: Listed<Prompt>,
}

/// A list of the server.
#[derive(Debug)]
pub(crate) enum Listed<T> {
    /// The server does not have such things.
    NotOffered,
    /// All of it.
    All(Vec<T>),
    /// It could not be had.
    Failed { why: String, endless: bool },
}

impl<T> Listed<T> {
    /// What is in it.
    pub(crate) fn items(&self) -> &[T] {
        match self {
            Self::All(items) => items,
            Self::NotOffered | Self::Failed { .. } => &[],
        }
    }

    /// Whether the server says that there is nothing.
    pub(crate) const fn is_empty(&self) -> bool {
        match self {
            Self::NotOffered => true,
            Self::All(items) => items.is_empty(),
            Self::Failed { .. } => false,
        }
    }
}

/// Why there is no conversation.
#[derive(Clone, Debug)]
pub(crate) struct Silence {
    pub(crate) code: Code,
    pub(crate) text: String,
}

impl Case {
    /// The conversation, if there is one.
    pub(crate) fn talk(&self) -> Option<&Talk> {
        self.talk.as_ref().ok()
    }

    /// The tools that are known.
    pub(crate) fn tools(&self) -> &[Tool] {
        self.talk().map_or(&[], |talk| talk.tools.items())
    }
}
