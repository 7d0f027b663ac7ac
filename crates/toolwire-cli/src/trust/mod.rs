//! Whether a project's files may say what is started: only after the user has looked at them.
//!
//! Whoever clones a repository has not read it. So the program starts nothing, contacts nothing and replaces no
//! variable for a file of the project before the user has trusted that file with exactly that content. Files in the
//! home directory are the user's own and need no trust.
//!
//! Trust is about the file with the servers. Programs of the project that it starts can change without it, as can
//! the packages that it fetches.

mod found;
mod influence;
mod preview;
mod store;

use std::path::Path;

use inquire::{InquireError, Select};

use crate::{
    config::{Found, Places},
    failure::{Code, Failure, Result},
    private_file,
    target::shell_word,
    terminal::Terminal,
};

pub(crate) use preview::{Preview, would};
pub(crate) use store::{Content, Store, Verdict};

/// Where a command that would use a file of the project stops and asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gate {
    pub(crate) terminal: Terminal,
    /// All files are trusted for this run.
    pub(crate) open: bool,
}

impl Gate {
    /// Decides about one file: as the command line says, or else as the person does who is there, if anybody is.
    pub(crate) fn ask_about(self, found: &mut Found, file: usize, places: &Places) -> Result<()> {
        if self.open {
            found.accept(file, places);
            return Ok(());
        }
        let Some(untrusted) = found.untrusted.get(file) else { return Ok(()) };
        if untrusted.verdict == Verdict::Refused || !self.terminal.can_ask() {
            return Ok(());
        }
        let page = Preview::of(found, file).page(places);
        let (store, content) = (Store::of(places), untrusted.content.clone());
        self.terminal.note(&page.text);
        if !page.whole {
            self.terminal.note(format!("Nothing of it is used. {}", unseen(untrusted.file())));
            return Ok(());
        }
        match answer()? {
            Answer::Trust => {
                store.trust(&content)?;
                found.accept(file, places);
            }
            Answer::Refuse => store.refuse(&content)?,
            Answer::Later => {}
        }
        Ok(())
    }

    /// Decides about every file with servers that would be used.
    pub(crate) fn ask_about_all(self, found: &mut Found, places: &Places) -> Result<()> {
        for file in 0..found.untrusted.len() {
            let used = |server: &crate::config::Configured| {
                !server.disabled && server.pending.as_ref().is_some_and(|pending| pending.file == file)
            };
            if found.servers.iter().any(used) {
                self.ask_about(found, file, places)?;
            }
        }
        Ok(())
    }
}

/// What to do about a file that is too long to be shown: nobody says yes to what was not seen.
pub(crate) fn unseen(file: &Path) -> String {
    let word = shell_word(&file.display().to_string());
    format!("Read the file itself; once you have, this trusts it: toolwire trust {word} --yes")
}

/// What a person says about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Trust,
    Refuse,
    Later,
}

/// Asks, after it was shown what it is about. Leaving the question is no answer.
pub(crate) fn answer() -> Result<Answer> {
    const CHOICES: [(&str, Answer); 3] = [
        ("not now", Answer::Later),
        ("yes, until the file changes", Answer::Trust),
        ("no, and do not ask again", Answer::Refuse),
    ];
    let choices = CHOICES.iter().map(|(text, _)| *text).collect();
    match Select::new("Do you trust this file?", choices).without_help_message().raw_prompt() {
        Ok(chosen) => Ok(CHOICES.get(chosen.index).map_or(Answer::Later, |(_, answer)| *answer)),
        Err(InquireError::OperationCanceled) => Ok(Answer::Later),
        Err(InquireError::OperationInterrupted) => {
            Err(Failure::new(Code::Interrupted, "interrupted; nothing was started"))
        }
        Err(error) => Err(Failure::new(Code::Io, format!("the answer could not be read: {error}"))),
    }
}

/// Keeps the trust in a file that the user has just changed with this program: it is trusted with what it says now,
/// if it was before or was not there.
pub(crate) fn follow(places: &Places, path: &Path, old: Option<&[u8]>, new: &[u8]) -> Result<()> {
    let (store, path) = (Store::of(places), private_file::real(path));
    let trusted = |old: &[u8]| store.verdict(&Content::new(path.clone(), old)) == Verdict::Trusted;
    if old.is_none_or(trusted) { store.trust(&Content::new(path, new)) } else { Ok(()) }
}
