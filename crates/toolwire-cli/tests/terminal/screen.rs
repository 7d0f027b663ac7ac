//! A terminal of its own for each test: a pseudo-terminal, and the screen that a person would see.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    num::NonZeroU16,
    process::Child,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use pty_process::blocking::{Command, Pty};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use vt100::Parser;

/// The time in which a text has to appear. On a healthy machine it is there at once.
const PATIENCE: Duration = Duration::from_secs(60);

const ROWS: NonZeroU16 = NonZeroU16::new(40).unwrap();
const COLUMNS: NonZeroU16 = NonZeroU16::new(100).unwrap();

/// Prints `terminal=normal` if the terminal takes whole lines, as it does before and after questions.
const LOOK: &str = "stty -a | grep -q -e -icanon && echo terminal=raw || echo terminal=normal";

/// A key that has a name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Key {
    Enter,
    Escape,
    Space,
    Backspace,
    Up,
    Down,
    CtrlC,
}

/// A terminal in which a command runs. When that has ended, `exit=CODE` is below its output.
pub(crate) struct Screen {
    folder: tempfile::TempDir,
    terminal: Arc<Terminal>,
    shell: Child,
}

/// The keyboard and the screen of a terminal.
struct Terminal {
    pty: Pty,
    shown: Mutex<Shown>,
    changed: Condvar,
}

struct Shown {
    parser: Parser,
    /// True when no program has the terminal open any more.
    ended: bool,
}

impl Screen {
    /// Runs a command line of shell words on the demonstration server, which leaves its process id in `pid`.
    pub(crate) fn on_demo(words: &[&str]) -> Self {
        let program = env!("CARGO_BIN_EXE_toolwire");
        let server = format!("sh -c 'echo $$ > pid; exec \"$0\" demo --stdio' '{program}'");
        let folder = tempfile::tempdir().expect("a folder for the test");
        Self::run_in(folder, &format!("'{program}' {} -- {server}; echo exit=$?; {LOOK}", words.join(" ")))
    }

    /// Runs command lines one after the other in a project whose `.mcp.json` starts something that leaves a file
    /// `started` behind. `toolwire` is the program.
    pub(crate) fn in_project(lines: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let text =
            r#"{"mcpServers": {"guest": {"command": "touch", "args": ["started", "${TOKEN:-none}"]}}}"#;
        std::fs::write(folder.path().join(".mcp.json"), text).expect("the folder can be written to");
        let program = env!("CARGO_BIN_EXE_toolwire");
        let lines: Vec<_> = lines
            .iter()
            .map(|line| format!("{}; echo exit=$?; ls started", line.replace("toolwire", program)))
            .collect();
        Self::run_in(folder, &format!("{}; {LOOK}", lines.join("; ")))
    }

    /// Logs in to a server over SSH, where no browser can be opened.
    pub(crate) fn logging_in(server: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_toolwire");
        let folder = tempfile::tempdir().expect("a folder for the test");
        // Nothing else of the environment, which may name a browser or another place for logins.
        let variables =
            r#"env -i HOME="$HOME" PATH="$PATH" TERM="$TERM" __TOOLWIRE_TEST_WAITS=20 SSH_TTY=here"#;
        Self::run_in(folder, &format!("{variables} '{program}' login '{server}'; echo exit=$?; {LOOK}"))
    }

    /// Returns whether the screen shows a text now.
    pub(crate) fn shows(&self, text: &str) -> bool {
        self.terminal.shown().text().contains(text)
    }

    /// Returns whether the server of the project was started.
    pub(crate) fn has_started(&self) -> bool {
        self.folder.path().join("started").exists()
    }

    fn run_in(folder: tempfile::TempDir, line: &str) -> Self {
        let (pty, programs_side) = pty_process::blocking::open().expect("a pseudo-terminal");
        pty.resize(pty_process::Size::new(ROWS.get(), COLUMNS.get())).expect("a terminal has a size");
        // The program shortens paths below its home, and knows the true path of its folder.
        let home = folder.path().canonicalize().expect("the folder is there");
        // Ctrl-C is for the program. A shell without a trap may end as well, before it prints how the program ended.
        let line = format!("trap : INT; {line}");
        let shell = Command::new("sh")
            .args(["-c", &line])
            .current_dir(&home)
            .env("HOME", &home)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .env_remove("XDG_STATE_HOME")
            // No wait inside of the program is in vain because the machine is busy.
            .env("__TOOLWIRE_TEST_WAITS", "20")
            .spawn(programs_side)
            .expect("sh can be run");
        let shown = Mutex::new(Shown { parser: Parser::new(ROWS, COLUMNS, 0), ended: false });
        let terminal = Arc::new(Terminal { pty, shown, changed: Condvar::new() });
        // Ends with the last program that has the terminal open.
        thread::spawn({
            let terminal = Arc::clone(&terminal);
            move || terminal.show()
        });
        Self { folder, terminal, shell }
    }

    /// Kills the demonstration server, as a fault of its own would.
    pub(crate) fn kill_server(&self) {
        let pid = std::fs::read_to_string(self.folder.path().join("pid")).expect("the server has started");
        let pid = pid.trim().parse().ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, Signal::KILL).expect("the server runs");
    }

    /// Waits until the screen shows this.
    pub(crate) fn wait_for(&self, text: &str) -> &Self {
        let missing = |shown: &mut Shown| !shown.ended && !shown.text().contains(text);
        let (shown, _) = self
            .terminal
            .changed
            .wait_timeout_while(self.terminal.shown(), PATIENCE, missing)
            .unwrap_or_else(PoisonError::into_inner);
        let (screen, ended) = (shown.text(), shown.ended);
        drop(shown);
        let reason = if ended { "before the last program ended" } else { "in time" };
        assert!(screen.contains(text), "{text:?} did not appear {reason}:\n{screen}");
        self
    }

    /// Types a text.
    pub(crate) fn write(&self, text: &str) -> &Self {
        (&self.terminal.pty).write_all(text.as_bytes()).expect("the terminal takes input");
        self
    }

    /// Presses a key.
    pub(crate) fn press(&self, key: Key) -> &Self {
        self.write(match key {
            Key::Enter => "\r",
            Key::Escape => "\x1b",
            Key::Space => " ",
            Key::Backspace => "\x7f",
            Key::Up => "\x1b[A",
            Key::Down => "\x1b[B",
            Key::CtrlC => "\x03",
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The program is in the group of the shell, and the servers end with the program.
        let _ = kill_process_group(Pid::from_child(&self.shell), Signal::KILL);
        let _ = self.shell.wait();
    }
}

impl Terminal {
    /// Shows the output of programs until the last of them has closed the terminal.
    fn show(&self) {
        let mut bytes = [0; 4096];
        loop {
            match (&self.pty).read(&mut bytes) {
                Ok(count @ 1..) => self.shown().parser.process(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Linux says EIO at the end, other systems return no bytes.
                Ok(0) | Err(_) => break,
            }
            self.changed.notify_all();
        }
        self.shown().ended = true;
        self.changed.notify_all();
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    /// Returns the text on the screen, with lines joined that its width has broken.
    fn text(&self) -> String {
        self.parser.screen().contents()
    }
}
