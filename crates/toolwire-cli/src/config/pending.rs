//! What is known of a server while its file is not trusted: what is written there, and nothing behind it.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    Place,
    entry::Reader,
    variables::{Values, Variables, Wants},
};
use crate::{
    failure::{Code, Failure, Result},
    target::{Address, shell_word},
    terminal::printable_line,
    trust::{Content, Verdict},
};

/// A file of the project that the user has not trusted with this content.
#[derive(Clone, Debug)]
pub(crate) struct Untrusted {
    pub(crate) place: Place,
    pub(crate) content: Content,
    pub(crate) verdict: Verdict,
    /// Whether it is a link that leads out of the project, so that what is in it may be the user's own.
    pub(crate) outside: bool,
}

/// A server in such a file.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    /// Which of the untrusted files it is in.
    pub(crate) file: usize,
    /// The keys that lead to it.
    pub(super) path: String,
    pub(super) entry: Value,
    /// How it would be reached, with the variables as they are written.
    pub(crate) address: Address,
    /// What it would read.
    pub(crate) wants: Wants,
    /// The folder that it is about.
    pub(crate) folder: PathBuf,
    /// Whether its file is outside of the project.
    pub(crate) outside: bool,
}

impl Untrusted {
    /// The file as it was found.
    pub(crate) fn file(&self) -> &Path {
        &self.place.file
    }

    /// A server of this file, which has this index among those that are not trusted.
    pub(super) fn server(
        &self,
        file: usize,
        path: &str,
        name: &str,
        entry: &Value,
    ) -> (Result<Address>, Option<Pending>) {
        let wants = RefCell::default();
        let place = &self.place;
        let variables = Variables { values: Values::Noted(&wants), host: place.host, folder: &place.folder };
        let reader = Reader { variables, file: &place.file, path: path.to_owned() };
        match reader.address(name, entry) {
            Ok(address) => {
                let wants = wants.into_inner();
                let pending = Pending {
                    file,
                    path: path.to_owned(),
                    entry: entry.clone(),
                    address,
                    wants,
                    folder: place.folder.clone(),
                    outside: self.outside,
                };
                (Err(self.refusal(name)), Some(pending))
            }
            // What cannot be understood would not be started either.
            Err(broken) => (Err(broken), None),
        }
    }

    /// Why a server of this file is not used.
    fn refusal(&self, name: &str) -> Failure {
        let file = self.place.file.display();
        let why = match self.verdict {
            Verdict::Changed => "which has changed since you last decided about it",
            Verdict::Refused => "which you do not trust",
            Verdict::Trusted | Verdict::Unknown => "which you have not trusted yet",
        };
        let text = printable_line(&format!("{name} is in {file}, {why}"));
        let failure = Failure::new(Code::NotTrusted, text);
        failure.hint(self.advice()).data(json!({ "file": self.place.file, "sha256": self.content.digest() }))
    }

    /// What to do next.
    pub(crate) fn advice(&self) -> String {
        let file = shell_word(&self.place.file.display().to_string());
        format!("look at it, then: toolwire trust {file}")
    }
}
