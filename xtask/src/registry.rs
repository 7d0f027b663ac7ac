//! The program on servers that people install: reference servers from npm and PyPI, over stdio.
//!
//! Their pins are in `interop/registry/`. Everything is installed under the target folder, and runs with a home
//! of its own, so that neither the machine's configuration nor its caches play a part.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::interop::{install_node, install_python};
use crate::output::{self, say};
use crate::process::Program;
use crate::programs;
use crate::steps::{Failure, Parts, Stop};
use crate::workspace::{Workspace, root};

/// The program itself gives up after two minutes.
const TRIAL_LIMIT: Duration = Duration::from_mins(3);

/// A folder with a `node` that always fails. With one that works, the server that fetches pages installs packages of any
/// version when it is called.
const WITHOUT_NODE: &str = "without-node";

/// One run of the program.
struct Trial {
    server: &'static str,
    /// The words before `--`; `{folder}` and `{page}` stand for a folder and a URL to work on, `{attempt}` for a number
    /// that is another one when the trial is made again.
    words: &'static [&'static str],
    /// What its output must have in it.
    expect: &'static [&'static str],
    /// How it must end.
    exit: i32,
}

const fn trial(
    server: &'static str,
    words: &'static [&'static str],
    expect: &'static [&'static str],
) -> Trial {
    Trial { server, words, expect, exit: 0 }
}

const TRIALS: &[Trial] = &[
    trial("everything", &["tools"], &["echo(message: string)", "get-sum(a: number, b: number)"]),
    trial("everything", &["call", "echo", "message=hi there"], &["Echo: hi there"]),
    trial("everything", &["call", "get-sum", "a=2", "b=40.5"], &["42.5"]),
    trial("everything", &["call", "get-structured-content", "location=Chicago"], &["temperature"]),
    trial("everything", &["call", "get-tiny-image", "-o", "{folder}/tiny.png"], &["tiny.png"]),
    trial("everything", &["call", "trigger-long-running-operation", "duration=1", "steps=2"], &["completed"]),
    trial("everything", &["prompts"], &["simple-prompt"]),
    trial("everything", &["resources", "--json"], &["\"uri\""]),
    trial("everything", &["templates", "--json"], &["uriTemplate"]),
    trial("everything", &["probe", "--json"], &["2025-11-25"]),
    trial("everything", &["doctor", "--json"], &["findings"]),
    trial("everything", &["call", "get-sum", "a=two", "b=3"], &[]).ending(6),
    trial("everything", &["call", "get-sumo"], &[]).ending(2),
    trial("filesystem", &["tools"], &["write_file(path: string, content: string)"]),
    trial(
        "filesystem",
        &["call", "write_file", "path={folder}/note.txt", "content=written by a tool"],
        &["note.txt"],
    ),
    trial("filesystem", &["call", "read_text_file", "path={folder}/note.txt"], &["written by a tool"]),
    trial("filesystem", &["call", "list_directory", "path={folder}"], &["note.txt"]),
    trial("filesystem", &["call", "read_text_file", "path=/etc/passwd"], &[]).ending(5),
    trial("filesystem", &["doctor", "--json"], &["findings"]),
    trial(
        "memory",
        &[
            "call",
            "create_entities",
            "--args",
            r#"{"entities":[{"name":"Ada {attempt}","entityType":"person","observations":["wrote notes"]}]}"#,
        ],
        &["Ada"],
    ),
    trial("memory", &["call", "search_nodes", "query=Ada"], &["wrote notes"]),
    trial("memory", &["doctor", "--json"], &["findings"]),
    trial("git", &["tools"], &["git_status(repo_path: string)"]),
    trial("git", &["call", "git_init_is_not_a_tool"], &[]).ending(2),
    trial("git", &["call", "git_status", "repo_path={folder}/repository"], &["No commits yet"]),
    trial("git", &["doctor", "--json"], &["findings"]),
    trial("fetch", &["call", "fetch", "url={page}"], &["Toolwire was here"]),
    trial("fetch", &["prompts"], &["fetch"]),
    trial("fetch", &["doctor", "--json"], &["findings"]),
    trial("time", &["call", "get_current_time", "timezone=UTC"], &["UTC"]),
    trial(
        "time",
        &["call", "convert_time", "source_timezone=UTC", "time=12:00", "target_timezone=Asia/Tokyo"],
        &["21:00"],
    ),
    trial("time", &["doctor", "--json"], &["findings"]),
];

impl Trial {
    const fn ending(self, exit: i32) -> Self {
        Self { exit, ..self }
    }
}

/// Where everything is.
struct Bench {
    toolwire: PathBuf,
    node: PathBuf,
    python: PathBuf,
    /// What the servers may work on; the home of the program as well.
    folder: PathBuf,
    page: SocketAddr,
    attempts: AtomicUsize,
}

/// Installs the servers.
pub(crate) fn prepare() -> Result<(), String> {
    let (root, target) = (root(), Workspace::read(&root())?.target);
    install_node(&root.join("interop/registry/node"), &target.join("registry/node"))?;
    install_python(&root.join("interop/registry/python"), &target.join("registry/python"))
}

/// Makes all trials, and returns those that fail.
pub(crate) fn run() -> Parts {
    prepare().map_err(Stop::skipped)?;
    let target = Workspace::read(&root())?.target;
    let bench = Arc::new(Bench {
        toolwire: programs::build()?.join("toolwire"),
        node: target.join("registry/node"),
        python: target.join("registry/python"),
        folder: target.join("registry/folder"),
        page: serve_page().map_err(|error| format!("serving a page: {error}"))?,
        attempts: AtomicUsize::new(0),
    });
    let _ = fs::remove_dir_all(&bench.folder);
    fs::create_dir_all(&bench.folder).map_err(|error| format!("{}: {error}", bench.folder.display()))?;
    Program::new("git", TRIAL_LIMIT)
        .args(["init", "--quiet", "repository"])
        .directory(&bench.folder)
        .run()?;
    write_failing_node(&bench.folder.join(WITHOUT_NODE))?;
    // Those of one server build on each other; servers do not know of each other.
    let servers: BTreeSet<&str> = TRIALS.iter().map(|trial| trial.server).collect();
    let servers: Vec<&str> = servers.into_iter().collect();
    let failed = output::at_once(&servers, |server| {
        let trials = TRIALS.iter().filter(|trial| trial.server == *server);
        trials.filter_map(|trial| bench.failure(trial)).collect::<Vec<_>>()
    });
    let failed: thread::Result<Vec<_>> = failed.into_iter().collect();
    Ok(failed.map_err(|_| "a trial has panicked")?.into_iter().flatten().collect())
}

fn write_failing_node(folder: &Path) -> Result<(), String> {
    let script = folder.join("node");
    let explain = |error: std::io::Error| format!("{}: {error}", script.display());
    fs::create_dir_all(folder).map_err(explain)?;
    fs::write(&script, "#!/bin/sh\nexit 1\n").map_err(explain)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).map_err(explain)?;
    }
    Ok(())
}

impl Bench {
    /// Makes the trial, and returns it if it fails.
    fn failure(self: &Arc<Self>, trial: &'static Trial) -> Option<Failure> {
        let name = format!("{}: {}", trial.server, trial.words.join(" "));
        let Err(output) = self.attempt(trial) else {
            say!("ok    {name}");
            return None;
        };
        let (bench, command) = (Arc::clone(self), "cargo xtask test --only registry".to_owned());
        // What earlier trials have made for this one is still there.
        let again = Box::new(move || bench.attempt(trial));
        let failure = Failure { name, output, command, edited: false, again };
        failure.tell();
        Some(failure)
    }

    fn attempt(&self, trial: &Trial) -> Result<(), String> {
        let folder = self.folder.display().to_string();
        let page = format!("http://{}/", self.page);
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed).to_string();
        let word = |word: &&str| {
            word.replace("{folder}", &folder).replace("{page}", &page).replace("{attempt}", &attempt)
        };
        let path = std::env::var("PATH").unwrap_or_default();
        let path = if trial.server == "fetch" {
            format!("{}:{path}", self.folder.join(WITHOUT_NODE).display())
        } else {
            path
        };
        let (status, output) = Program::new(&self.toolwire, TRIAL_LIMIT)
            .args(trial.words.iter().map(word))
            .args(["--timeout", "120", "--"])
            .args(self.command(trial.server))
            .directory(&self.folder)
            .env("HOME", &folder)
            .env("PATH", &path)
            .env("NO_PROXY", "127.0.0.1")
            .env("MEMORY_FILE_PATH", &self.folder.join("memory.jsonl").display().to_string())
            .output()?;
        if status.code() != Some(trial.exit) {
            return Err(format!("{status}, not {}\n{output}", trial.exit));
        }
        match trial.expect.iter().find(|expected| !output.contains(**expected)) {
            Some(missing) => Err(format!("no {missing:?} in its output:\n{output}")),
            None => Ok(()),
        }
    }

    fn command(&self, server: &str) -> Vec<String> {
        let node = |program: &str| self.node.join("node_modules/.bin").join(program).display().to_string();
        let python = |program: &str| self.python.join("venv/bin").join(program).display().to_string();
        match server {
            "everything" => vec![node("mcp-server-everything")],
            "filesystem" => vec![node("mcp-server-filesystem"), self.folder.display().to_string()],
            "memory" => vec![node("mcp-server-memory")],
            "git" => vec![python("mcp-server-git")],
            // The page is served on this machine.
            "fetch" => vec![python("mcp-server-fetch"), "--allow-private-ips".to_owned()],
            other => vec![python(&format!("mcp-server-{other}"))],
        }
    }
}

/// Serves one page on this machine for as long as this process lives, because a test must not need the network.
fn serve_page() -> std::io::Result<SocketAddr> {
    const PAGE: &str =
        "<!doctype html><title>Page</title><article><h1>Page</h1><p>Toolwire was here.</p></article>";
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap_or_default();
            let robots = request.get(..read).is_some_and(|request| request.starts_with(b"GET /robots.txt"));
            let (status, body) = if robots { ("404 Not Found", "") } else { ("200 OK", PAGE) };
            let length = body.len();
            // A client that leaves early is its own affair.
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
        }
    });
    Ok(address)
}
