//! The tickets of tasks that were begun here: what is needed to go on with one after this program has ended.
//!
//! They are in one small file that only its owner may read, because whoever knows the id of a task may be able to read its
//! result. Programs that change it at once wait for each other.

use std::{
    fs::{File, TryLockError},
    io::Read,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    config::Places,
    failure::{Code, Explain, Failure, Result},
    private_file,
    target::{Address, Target, TargetOptions, shell_word},
    terminal::Moment,
};

/// How many tickets are kept; the oldest makes way for a new one.
const MAX_TICKETS: usize = 1000;
/// How large the file may be.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// How long another program may change the file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the lock is tried.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// A task that was begun here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ticket {
    /// The id of the task.
    pub(crate) id: String,
    /// The server as it was typed: a configured name or an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    /// The program that was started, if there are no secrets in how.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) command: Vec<String>,
    /// The tool that was called.
    pub(crate) tool: String,
    /// When.
    pub(crate) begun: String,
    /// What the client goes on with.
    #[serde(rename = "ticket")]
    pub(crate) text: String,
}

impl Ticket {
    /// The ticket of a task that was begun just now.
    pub(crate) fn new(target: &Target, options: &TargetOptions, tool: &str, id: &str, text: String) -> Self {
        let secret = || {
            let Address::Command(command) = &target.address else { return true };
            let words = std::iter::once(&command.program).chain(&command.args);
            let plain: Vec<String> = words.map(|word| shell_word(word)).collect();
            plain.join(" ") != target.address.to_string()
        };
        let started = !options.command.is_empty();
        Self {
            id: id.to_owned(),
            server: (!started).then(|| target.name.clone()),
            command: if started && !secret() { options.command.clone() } else { Vec::new() },
            tool: tool.to_owned(),
            begun: Moment::now().to_second(),
            text,
        }
    }

    /// Returns whether it says where the task is, so that the id alone is enough to go on with it.
    pub(crate) fn names_server(&self) -> bool {
        self.server.is_some() || !self.command.is_empty()
    }

    /// Where the task is, in words.
    pub(crate) fn place(&self) -> String {
        match &self.server {
            Some(server) => server.clone(),
            None if self.command.is_empty() => "a program".to_owned(),
            None => {
                let words: Vec<String> = self.command.iter().map(|word| shell_word(word)).collect();
                format!("-- {}", words.join(" "))
            }
        }
    }
}

/// A task that may be left: the words that name it on a command line, and what becomes of it.
#[derive(Clone, Debug)]
pub(crate) struct LeftTask {
    pub(crate) id: String,
    /// The server as it is typed, where no ticket names it.
    server: Option<String>,
    /// The server is a program that was started here, and ends with this one.
    pub(crate) started: bool,
}

impl LeftTask {
    /// A task of this server, which has to be typed unless a ticket names it.
    pub(crate) fn new(id: &str, target: &Target, has_ticket: bool) -> Self {
        Self {
            id: id.to_owned(),
            server: (!has_ticket).then(|| target.typed()),
            started: matches!(target.address, Address::Command(_)),
        }
    }

    /// The command that does this with the task.
    pub(crate) fn command(&self, action: &str, options: &str) -> String {
        let (named, started) = match self.server.as_deref() {
            Some(command) if command.starts_with("-- ") => ("", command),
            named => (named.unwrap_or_default(), ""),
        };
        let words = ["toolwire tasks", action, &shell_word(&self.id), named, options, started];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The commands that go on with the task in this way and that end it.
    pub(crate) fn next_steps(&self, way: &str, options: &str) -> String {
        let (wait, cancel) = (self.command("wait", options), self.command("cancel", ""));
        format!("{way}: {wait}\n       end it: {cancel}")
    }

    /// Returns what becomes of the task, in words.
    pub(crate) const fn fate(&self) -> &'static str {
        if self.started {
            "the server was started here and ends now, the task goes on if the server keeps tasks in a store"
        } else {
            "the task goes on at the server"
        }
    }
}

/// The file with the tickets.
#[derive(Clone, Debug)]
pub(crate) struct Tickets {
    /// Without a home directory there is none, and nothing is kept.
    file: Option<PathBuf>,
}

impl Tickets {
    /// Those of the user of this machine.
    pub(crate) fn here() -> Self {
        Self { file: Places::here().state().map(|folder| folder.join("toolwire/tasks/tickets.json")) }
    }

    /// All of them, the oldest first.
    pub(crate) fn all(&self) -> Result<Vec<Ticket>> {
        self.file.as_deref().map_or(Ok(Vec::new()), read)
    }

    /// The one whose id begins like this, or that this is the ticket of. A text that is the beginning of several ids
    /// means none of them.
    pub(crate) fn find(&self, text: &str) -> Result<Option<Ticket>> {
        let all = self.all()?;
        if let Some(id) = id_in(text) {
            return Ok(all.into_iter().find(|ticket| ticket.id == id));
        }
        let id = text;
        if let Some(ticket) = all.iter().find(|ticket| ticket.id == id) {
            return Ok(Some(ticket.clone()));
        }
        let mut close = all.into_iter().filter(|ticket| !id.is_empty() && ticket.id.starts_with(id));
        match (close.next(), close.next()) {
            (Some(_), Some(_)) => {
                let text = format!("the ids of several tasks begin with `{id}`");
                Err(Failure::new(Code::Usage, text).hint("toolwire tasks lists them"))
            }
            (found, _) => Ok(found),
        }
    }

    /// Keeps a ticket, in the place of an older one of the same task.
    pub(crate) fn keep(&self, ticket: Ticket) -> Result<()> {
        self.change(|all| {
            all.retain(|other| other.id != ticket.id);
            all.push(ticket);
            let many = all.len().saturating_sub(MAX_TICKETS);
            all.drain(..many);
        })
    }

    /// Forgets a task.
    pub(crate) fn forget(&self, id: &str) -> Result<()> {
        if self.all()?.iter().all(|ticket| ticket.id != id) {
            return Ok(());
        }
        self.change(|all| all.retain(|ticket| ticket.id != id))
    }

    fn change(&self, act: impl FnOnce(&mut Vec<Ticket>)) -> Result<()> {
        let Some(file) = &self.file else {
            let text = "tickets of tasks are kept in the home directory, and there is none";
            return Err(Failure::new(Code::Io, text).hint("set HOME"));
        };
        let folder = file.parent().unwrap_or_else(|| Path::new(""));
        private_file::create_folder(folder).context(folder.display())?;
        let _lock = locked(&folder.join("lock"))?;
        let mut all = read(file)?;
        act(&mut all);
        let text = serde_json::to_vec(&all).map_err(std::io::Error::from)?;
        private_file::replace(file, &text).context(file.display())
    }
}

/// The id of the task that a text is the ticket of, if it is one.
pub(crate) fn id_in(text: &str) -> Option<String> {
    let ticket: Value = serde_json::from_str(text).ok()?;
    ticket.get("id").and_then(Value::as_str).map(str::to_owned)
}

fn read(file: &Path) -> Result<Vec<Ticket>> {
    let opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context(file.display()),
    };
    let mut text = Vec::new();
    opened.take(MAX_FILE_BYTES + 1).read_to_end(&mut text).context(file.display())?;
    let broken = |why: String| {
        let hint = format!("remove it, and the tasks it names are forgotten: {}", file.display());
        Failure::new(Code::ConfigBroken, format!("{}: {why}", file.display())).hint(hint)
    };
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(broken(format!("it has more than {MAX_FILE_BYTES} bytes")));
    }
    serde_json::from_slice(&text).map_err(|error| broken(error.to_string()))
}

/// Waits until nobody else changes the file. Where the file system has no locks, nobody waits.
fn locked(path: &Path) -> Result<Option<File>> {
    let file = match private_file::create_new(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            File::options().write(true).open(path)
        }
        made => made,
    };
    let file = file.context(path.display())?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                let text =
                    format!("another program has been changing {} for {LOCK_TIMEOUT:?}", path.display());
                return Err(Failure::new(Code::Io, text));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_INTERVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tickets() -> (tempfile::TempDir, Tickets) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("toolwire/tasks/tickets.json");
        (folder, Tickets { file: Some(file) })
    }

    fn ticket(id: &str) -> Ticket {
        Ticket {
            id: id.to_owned(),
            server: Some("demo".to_owned()),
            command: Vec::new(),
            tool: "report".to_owned(),
            begun: "2026-11-16T20:00:00Z".to_owned(),
            text: "{}".to_owned(),
        }
    }

    #[test]
    fn tickets_are_found_by_the_beginning_of_their_ids_and_forgotten() {
        let (_folder, tickets) = tickets();
        assert_eq!(tickets.all().unwrap(), []);
        tickets.forget("abc").unwrap();
        for id in ["abc", "abd", "xyz", "ab"] {
            tickets.keep(ticket(id)).unwrap();
        }
        tickets.keep(Ticket { tool: "deploy".to_owned(), ..ticket("xyz") }).unwrap();
        assert_eq!(tickets.all().unwrap().len(), 4, "a task has one");
        assert_eq!(tickets.find("x").unwrap().unwrap().tool, "deploy");
        assert_eq!(tickets.find("ab").unwrap().unwrap().id, "ab");
        assert_eq!(tickets.find("nothing").unwrap(), None);
        assert_eq!(tickets.find(r#" {"toolwire-task":1,"id":"abd"}"#).unwrap().unwrap().id, "abd");
        assert_eq!(tickets.find(r#"{"id":"abde"}"#).unwrap(), None);
        assert_eq!(tickets.find("").unwrap(), None);
        tickets.forget("ab").unwrap();
        assert_eq!(tickets.find("ab").unwrap_err().code(), Code::Usage);
    }

    #[test]
    fn the_command_for_a_task_names_its_server_unless_a_ticket_does() {
        let words = |server: Option<&str>| LeftTask {
            id: "a b".to_owned(),
            server: server.map(str::to_owned),
            started: false,
        };
        let command = |server, options| words(server).command("wait", options);
        assert_eq!(command(None, ""), "toolwire tasks wait 'a b'");
        assert_eq!(command(Some("srv"), "--yes"), "toolwire tasks wait 'a b' srv --yes");
        assert_eq!(command(Some("-- npx x"), "--yes"), "toolwire tasks wait 'a b' --yes -- npx x");
        let steps = words(Some("srv")).next_steps("go on", "");
        assert_eq!(
            steps,
            "go on: toolwire tasks wait 'a b' srv\n       end it: toolwire tasks cancel 'a b' srv"
        );
    }

    #[test]
    fn there_are_not_more_than_a_thousand_and_two_programs_lose_none() {
        let (_folder, tickets) = tickets();
        let write = |name: &'static str| {
            let tickets = tickets.clone();
            std::thread::spawn(move || {
                for n in 0..20 {
                    tickets.keep(ticket(&format!("{name}{n}"))).unwrap();
                }
            })
        };
        for writer in [write("a"), write("b")] {
            writer.join().unwrap();
        }
        assert_eq!(tickets.all().unwrap().len(), 40);
        tickets.change(|all| all.extend((0..MAX_TICKETS).map(|n| ticket(&format!("c{n}"))))).unwrap();
        tickets.keep(ticket("last")).unwrap();
        let all = tickets.all().unwrap();
        assert_eq!((all.len(), all.last().unwrap().id.as_str()), (MAX_TICKETS, "last"));
    }

    #[cfg(unix)]
    #[test]
    fn only_their_owner_may_read_them_and_a_broken_file_is_told() {
        use std::{fs, os::unix::fs::PermissionsExt};

        let (_folder, tickets) = tickets();
        tickets.keep(ticket("a")).unwrap();
        let file = tickets.file.clone().unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(&file, "[{]").unwrap();
        assert_eq!(tickets.all().unwrap_err().code(), Code::ConfigBroken);
        assert_eq!(tickets.keep(ticket("b")).unwrap_err().code(), Code::ConfigBroken);
    }
}
