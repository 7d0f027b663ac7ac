//! A terminal in tmux, gone when it is dropped.

use std::{
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

/// How long something may take to appear; on a healthy machine it is there at once.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often the screen is looked at.
const POLL: Duration = Duration::from_millis(30);

/// Says whether the terminal takes whole lines and edits them, as it does before and after questions.
const LOOK: &str = "stty -a | grep -q -e -icanon && echo terminal=raw || echo terminal=normal";

/// A terminal in which a command runs. When that has ended, `exit=CODE` is below its output.
pub(crate) struct Screen {
    /// The server of tmux has its socket in here, and nobody else's.
    folder: tempfile::TempDir,
}

impl Screen {
    /// Runs a command line of shell words on the demonstration server, which leaves its process id in `pid`.
    pub(crate) fn on_demo(words: &[&str]) -> Self {
        let program = env!("CARGO_BIN_EXE_toolwire");
        let server = format!("sh -c 'echo $$ > pid; exec \"$0\" demo --stdio' '{program}'");
        let folder = tempfile::tempdir().expect("a folder for the socket");
        Self::run_in(
            folder,
            &format!("'{program}' {} -- {server}; echo exit=$?; {LOOK}; cat", words.join(" ")),
        )
    }

    /// Runs command lines one after the other in a project whose `.mcp.json` starts something that leaves a file
    /// `started` behind. `toolwire` is the program.
    pub(crate) fn in_project(lines: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the socket");
        let text =
            r#"{"mcpServers": {"guest": {"command": "touch", "args": ["started", "${TOKEN:-none}"]}}}"#;
        std::fs::write(folder.path().join(".mcp.json"), text).expect("the folder can be written to");
        let program = env!("CARGO_BIN_EXE_toolwire");
        let lines: Vec<_> = lines
            .iter()
            .map(|line| format!("{}; echo exit=$?; ls started", line.replace("toolwire", program)))
            .collect();
        Self::run_in(folder, &format!("{}; {LOOK}; cat", lines.join("; ")))
    }

    /// Whether the server of the project was started.
    pub(crate) fn has_started(&self) -> bool {
        self.folder.path().join("started").exists()
    }

    fn run_in(folder: tempfile::TempDir, line: &str) -> Self {
        let screen = Self { folder };
        let folder = screen.folder.path().to_str().expect("a path in UTF-8");
        let start = ["-f", "/dev/null", "new-session", "-d", "-s", "test", "-x", "100", "-y", "40", "-c"];
        let start: Vec<&str> = start.into_iter().chain([folder, line]).collect();
        screen.tmux(&start);
        screen
    }

    /// Kills the demonstration server, as a fault of its own would.
    pub(crate) fn kill_server(&self) {
        let pid = std::fs::read_to_string(self.folder.path().join("pid")).expect("the server has started");
        let killed = Command::new("kill").args(["-KILL", pid.trim()]).status().expect("kill can be run");
        assert!(killed.success());
    }

    /// Waits until the screen shows this.
    pub(crate) fn wait_for(&self, text: &str) -> &Self {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let shown = self.shown();
            if shown.contains(text) {
                return self;
            }
            assert!(Instant::now() < deadline, "{text:?} did not appear within {PATIENCE:?}:\n{shown}");
            thread::sleep(POLL);
        }
    }

    /// Types a text.
    pub(crate) fn write(&self, text: &str) -> &Self {
        self.tmux(&["send-keys", "-t", "test", "-l", text]);
        self
    }

    /// Presses a key, by the name tmux has for it.
    pub(crate) fn press(&self, key: &str) -> &Self {
        self.tmux(&["send-keys", "-t", "test", key]);
        self
    }

    fn shown(&self) -> String {
        // -J joins lines that the width of the screen has broken.
        let output = self.tmux(&["capture-pane", "-p", "-J", "-t", "test"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn run(&self, arguments: &[&str]) -> std::io::Result<Output> {
        let mut command = Command::new("tmux");
        // -u because the screen shows more than ASCII, whatever the locale says.
        command.arg("-u").args(arguments).env("TMUX_TMPDIR", self.folder.path());
        command.env_remove("TMUX").env_remove("NO_COLOR").env_remove("XDG_STATE_HOME");
        command.env("HOME", self.folder.path());
        command.output()
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let output = self.run(arguments);
        let output = output.expect("these tests need tmux: cargo xtask test --only terminal installs it");
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Takes everything that runs in it along.
        let _ = self.run(&["kill-server"]);
    }
}
