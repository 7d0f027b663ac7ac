//! Toolwire against other makers' SDKs: their clients call our server, our client calls their servers.
//!
//! The programs are in `interop/`, which also says what they do. Everything they need is installed, pinned,
//! under the target folder, so the source tree stays as it was; what is already there is not installed again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::process::Program;
use crate::workspace::{Workspace, root};

/// Downloads may be slow.
const INSTALL_LIMIT: Duration = Duration::from_mins(15);
/// A first build of the program may be slow as well.
const BUILD_LIMIT: Duration = Duration::from_mins(30);
/// A walk takes about a second; the clients themselves give up after 90.
const WALK_LIMIT: Duration = Duration::from_mins(2);

/// Source of the program that calls their servers with our client.
const OUR_CLIENT: &str = "crates/toolwire-cli/examples/interop_client.rs";

/// Their clients, and the eras each can speak.
const CLIENTS: &[(Runtime, &str, &[&str])] = &[
    (Runtime::Node, "client-v1.mjs", &["legacy"]),
    (Runtime::Node, "client-v2.mjs", &["legacy", "modern", "auto"]),
    (Runtime::Python, "client.py", &["legacy", "modern", "auto"]),
];

/// Their servers, and the eras each can speak. Our client finds the era by itself under `auto`.
const SERVERS: &[(Runtime, &str, &[&str])] = &[
    (Runtime::Node, "server-v1.mjs", &["legacy", "auto"]),
    (Runtime::Node, "server-v2.mjs", &["legacy", "modern", "auto"]),
    (Runtime::Python, "server.py", &["legacy", "modern", "auto"]),
];

/// What runs a program of theirs.
#[derive(Debug, Clone, Copy)]
enum Runtime {
    Node,
    Python,
}

/// Where everything is once it is installed and built.
#[derive(Debug)]
struct Bench {
    node: PathBuf,
    python: PathBuf,
    debug: PathBuf,
}

pub(crate) fn run() -> Result<(), String> {
    let root = root();
    let target = Workspace::read(&root)?.target;
    let bench = Bench {
        node: target.join("interop/node"),
        python: target.join("interop/python"),
        debug: target.join("debug"),
    };
    install_node(&root.join("interop/node"), &bench.node)?;
    install_python(&root.join("interop/python"), &bench.python)?;
    Program::cargo(&root, BUILD_LIMIT).args(["build", "-p", "toolwire-cli", "--bin", "toolwire"]).run()?;
    let mut failed = call_our_server(&bench);
    failed += call_their_servers(&root, &bench);
    if failed == 0 { Ok(()) } else { Err(format!("{failed} walks failed")) }
}

fn call_our_server(bench: &Bench) -> usize {
    let ours = [bench.debug.join("toolwire").display().to_string(), "demo".to_owned(), "--stdio".to_owned()];
    let mut failed = 0;
    for (runtime, client, eras) in CLIENTS {
        for era in *eras {
            let [program, script] = bench.command(*runtime, client);
            let walk = Program::new(program, WALK_LIMIT).args([&script, *era, "--"]).args(&ours);
            failed += report(&format!("{client} ({era}) -> toolwire"), judge(walk));
        }
    }
    failed
}

fn call_their_servers(root: &Path, bench: &Bench) -> usize {
    let client = bench.debug.join("examples/interop_client");
    let built = if root.join(OUR_CLIENT).exists() {
        let arguments = ["build", "-p", "toolwire-cli", "--example", "interop_client"];
        Program::cargo(root, BUILD_LIMIT).args(arguments).run()
    } else {
        Err(format!("{OUR_CLIENT} does not exist"))
    };
    let mut failed = 0;
    for (runtime, server, eras) in SERVERS {
        for era in *eras {
            let outcome = built.clone().and_then(|()| {
                let theirs = bench.command(*runtime, server);
                judge(Program::new(&client, WALK_LIMIT).args([era, "--"]).args(theirs))
            });
            failed += report(&format!("toolwire ({era}) -> {server}"), outcome);
        }
    }
    failed
}

impl Bench {
    fn command(&self, runtime: Runtime, script: &str) -> [String; 2] {
        let (program, script) = match runtime {
            Runtime::Node => ("node".into(), self.node.join(script)),
            Runtime::Python => (venv_python(&self.python), self.python.join(script)),
        };
        [program.display().to_string(), script.display().to_string()]
    }
}

fn report(name: &str, outcome: Result<usize, String>) -> usize {
    match outcome {
        Ok(checks) => {
            println!("ok    {name}: {checks} checks");
            0
        }
        Err(error) => {
            println!("FAIL  {name}: {error}");
            1
        }
    }
}

/// Runs a walk and counts its checks; any check that failed, or a walk without checks, is an error.
fn judge(walk: Program) -> Result<usize, String> {
    let (status, output) = walk.output()?;
    let checks = checks(&output)?;
    if !status.success() {
        return Err(format!("{status} after {checks} checks that passed"));
    }
    if checks == 0 { Err("it checked nothing".to_owned()) } else { Ok(checks) }
}

fn checks(output: &str) -> Result<usize, String> {
    let mut passed = 0;
    let mut failed = Vec::new();
    for line in output.lines() {
        let check: Value = serde_json::from_str(line).map_err(|_| format!("not a check: {line}"))?;
        if check["ok"] == true {
            passed += 1;
        } else {
            failed.push(format!("\n      {line}"));
        }
    }
    if failed.is_empty() {
        Ok(passed)
    } else {
        Err(format!("{} of its checks failed{}", failed.len(), failed.concat()))
    }
}

/// Installs the packages that `source` pins, with what is beside them, in `place`.
pub(crate) fn install_node(source: &Path, place: &Path) -> Result<(), String> {
    copy(source, place, &["json", "mjs"])?;
    install_once(&place.join("package-lock.json"), &place.join("installed"), || {
        let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        Program::new("npm", INSTALL_LIMIT).args(arguments).directory(place).run()
    })
}

/// Installs the packages that `source` pins, with what is beside them, in a virtual environment in `place`.
pub(crate) fn install_python(source: &Path, place: &Path) -> Result<(), String> {
    copy(source, place, &["txt", "py"])?;
    let pins = place.join("requirements.txt");
    install_once(&pins, &place.join("installed"), || {
        let venv = Program::new("python3", INSTALL_LIMIT).args(["-m", "venv", "--clear", "venv"]);
        venv.directory(place).run()?;
        let install =
            ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"];
        Program::new(venv_python(place), INSTALL_LIMIT).args(install).directory(place).run()
    })
}

fn venv_python(place: &Path) -> PathBuf {
    place.join(if cfg!(windows) { "venv/Scripts/python.exe" } else { "venv/bin/python" })
}

/// Installs unless that was done for exactly these pins before. The mark is written last, so an installation
/// that was interrupted is made again.
fn install_once(
    pins: &Path,
    mark: &Path,
    install: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let wanted = fs::read(pins).map_err(|error| format!("{}: {error}", pins.display()))?;
    if fs::read(mark).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    // A mark of older pins must not outlive a failed installation of newer ones.
    let _ = fs::remove_file(mark);
    install()?;
    fs::write(mark, wanted).map_err(|error| format!("{}: {error}", mark.display()))
}

/// Copies the files with these extensions: node looks for packages beside the program that imports them.
fn copy(source: &Path, place: &Path, extensions: &[&str]) -> Result<(), String> {
    let explain = |error: std::io::Error| format!("copying {}: {error}", source.display());
    fs::create_dir_all(place).map_err(explain)?;
    for entry in fs::read_dir(source).map_err(explain)? {
        let path = entry.map_err(explain)?.path();
        let wanted =
            path.extension().is_some_and(|found| extensions.iter().any(|extension| found == *extension));
        if let (true, Some(name)) = (wanted, path.file_name()) {
            fs::copy(&path, place.join(name)).map_err(explain)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use super::{checks, install_once};

    #[test]
    fn checks_are_counted() {
        assert_eq!(checks("{\"check\":\"a\",\"ok\":true}\n{\"check\": \"b\", \"ok\": true}\n"), Ok(2));
        assert_eq!(checks(""), Ok(0));
    }

    #[test]
    fn a_failed_check_and_noise_are_errors() {
        let error = checks("{\"check\":\"a\",\"ok\":true}\n{\"check\":\"b\",\"ok\":false,\"error\":\"no\"}")
            .unwrap_err();
        assert!(error.starts_with("1 of its checks failed") && error.contains("\"b\""), "{error}");
        assert_eq!(checks("Segmentation fault"), Err("not a check: Segmentation fault".to_owned()));
    }

    #[test]
    fn an_installation_is_made_once_for_the_same_pins() {
        let folder = std::env::temp_dir().join(format!("xtask-install-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (pins, mark) = (folder.join("pins"), folder.join("mark"));
        let installs = Cell::new(0);
        let mut outcomes = Vec::new();
        for (text, works) in [("one", true), ("one", true), ("two", false), ("one", true), ("two", true)] {
            fs::write(&pins, text).unwrap();
            let outcome = install_once(&pins, &mark, || {
                installs.set(installs.get() + 1);
                if works { Ok(()) } else { Err("no network".to_owned()) }
            });
            outcomes.push((outcome.is_ok(), installs.get()));
        }
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(outcomes, [(true, 1), (true, 1), (false, 2), (true, 3), (true, 4)]);
    }
}
