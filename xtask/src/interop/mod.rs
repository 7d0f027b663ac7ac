//! Toolwire against other makers' SDKs: their clients call our servers, our client calls their servers.
//!
//! The programs are in `interop/`, which also says what they do. Everything they need is installed, pinned,
//! under the target folder, so the source tree stays as it was; what is already there is not installed again.

mod install;
mod judge;

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::output::{self, say};
use crate::process::Program;
use crate::programs;
use crate::steps::{Failure, Parts};
use crate::workspace::{Workspace, root};

pub(crate) use install::{install_node, install_once, install_python, venv_python};
pub(crate) use judge::judge;

/// A walk takes about a second; the clients themselves give up after 90.
const WALK_LIMIT: Duration = Duration::from_mins(2);
/// How long a server may take until it says where it is.
const START_LIMIT: Duration = Duration::from_mins(1);

/// An SDK of another maker: what runs it, its programs, and what they can speak.
struct Sdk {
    runtime: Runtime,
    client: &'static str,
    server: &'static str,
    /// What its client is asked to speak.
    client_eras: &'static [&'static str],
    /// What our client is asked to speak with its server. It finds the era by itself under `auto`.
    server_eras: &'static [&'static str],
    /// Whether its server has HTTP+SSE. Every client has.
    serves_sse: bool,
}

const SDKS: &[Sdk] = &[
    Sdk {
        runtime: Runtime::Node,
        client: "client-v1.mjs",
        server: "server-v1.mjs",
        client_eras: &["legacy"],
        server_eras: &["legacy", "auto"],
        serves_sse: true,
    },
    Sdk {
        runtime: Runtime::Node,
        client: "client-v2.mjs",
        server: "server-v2.mjs",
        client_eras: &["legacy", "modern", "auto"],
        server_eras: &["legacy", "modern", "auto"],
        serves_sse: false,
    },
    Sdk {
        runtime: Runtime::Python,
        client: "client.py",
        server: "server.py",
        client_eras: &["legacy", "modern", "auto"],
        server_eras: &["legacy", "modern", "auto"],
        serves_sse: true,
    },
];

/// The eras in which their clients can be without sessions, or use the transport of 2024-11-05.
const OLD_CLIENT_ERAS: &[&str] = &["legacy"];
/// The same for our client.
const OLD_SERVER_ERAS: &[&str] = &["legacy", "auto"];

/// What runs a program of theirs.
#[derive(Debug, Clone, Copy)]
enum Runtime {
    Node,
    Python,
}

/// How a client reaches a server.
#[derive(Debug, Clone, Copy)]
enum Transport {
    /// It starts it.
    Stdio,
    /// It is told the URL for Streamable HTTP.
    Http,
    /// The same, and the server keeps no sessions.
    Stateless,
    /// It is told the URL for HTTP+SSE.
    Sse,
}

/// Where everything is once it is installed and built.
#[derive(Debug)]
struct Bench {
    node: PathBuf,
    python: PathBuf,
    debug: PathBuf,
}

/// A client that calls every feature of a server.
struct Walk {
    name: String,
    client: Vec<String>,
    /// The era that the client is asked to speak.
    era: &'static str,
    transport: Transport,
    server: Vec<String>,
}

/// Installs the SDKs.
pub(crate) fn prepare() -> Result<(), String> {
    let (root, target) = (root(), Workspace::read(&root())?.target);
    install_node(&root.join("interop/node"), &target.join("interop/node"))?;
    install_python(&root.join("interop/python"), &target.join("interop/python"))
}

/// Makes all walks, and returns those that fail.
pub(crate) fn run() -> Parts {
    prepare()?;
    let target = Workspace::read(&root())?.target;
    let bench = Bench {
        node: target.join("interop/node"),
        python: target.join("interop/python"),
        debug: programs::build()?,
    };
    // Programs take longer to start than to talk, and mostly wait while they do.
    let failed = output::at_once(SDKS, |sdk| {
        let walks = bench.to_our_servers(sdk).into_iter().chain(bench.to_their_server(sdk));
        walks.filter_map(Walk::failure).collect::<Vec<_>>()
    });
    let failed: thread::Result<Vec<_>> = failed.into_iter().collect();
    Ok(failed.map_err(|_| "a walk has panicked")?.into_iter().flatten().collect())
}

impl Bench {
    fn to_our_servers(&self, sdk: &Sdk) -> Vec<Walk> {
        let client = self.command(sdk.runtime, sdk.client);
        let stdio = self.ours("toolwire", &["demo", "--stdio"]);
        let http = self.ours("examples/interop_server", &[]);
        let stateless = self.ours("examples/interop_server", &["stateless"]);
        let mut walks = Vec::new();
        for (transport, server, eras) in [
            (Transport::Stdio, &stdio, sdk.client_eras),
            (Transport::Http, &http, sdk.client_eras),
            (Transport::Stateless, &stateless, OLD_CLIENT_ERAS),
            (Transport::Sse, &http, OLD_CLIENT_ERAS),
        ] {
            walks.extend(eras.iter().map(|era| {
                let name = format!("{} ({era}, {transport:?}) -> toolwire", sdk.client);
                Walk { name, client: client.clone(), era, transport, server: server.clone() }
            }));
        }
        walks
    }

    fn to_their_server(&self, sdk: &Sdk) -> Vec<Walk> {
        let client = self.ours("examples/interop_client", &[]);
        let stdio = self.command(sdk.runtime, sdk.server);
        let with = |word: &str| [&*stdio, &[word.to_owned()]].concat();
        let (http, stateless) = (with("http"), with("stateless"));
        let sse_eras = if sdk.serves_sse { OLD_SERVER_ERAS } else { &[] };
        let mut walks = Vec::new();
        for (transport, server, eras) in [
            (Transport::Stdio, &stdio, sdk.server_eras),
            (Transport::Http, &http, sdk.server_eras),
            (Transport::Stateless, &stateless, OLD_SERVER_ERAS),
            (Transport::Sse, &http, sse_eras),
        ] {
            walks.extend(eras.iter().map(|era| {
                let name = format!("toolwire ({era}, {transport:?}) -> {}", sdk.server);
                Walk { name, client: client.clone(), era, transport, server: server.clone() }
            }));
        }
        walks
    }

    /// The command line of a program of theirs.
    fn command(&self, runtime: Runtime, script: &str) -> Vec<String> {
        let (program, script) = match runtime {
            Runtime::Node => ("node".into(), self.node.join(script)),
            Runtime::Python => (venv_python(&self.python), self.python.join(script)),
        };
        vec![program.display().to_string(), script.display().to_string()]
    }

    /// The command line of a program of ours.
    fn ours(&self, program: &str, arguments: &[&str]) -> Vec<String> {
        let program = self.debug.join(program).display().to_string();
        std::iter::once(program).chain(arguments.iter().map(|&argument| argument.to_owned())).collect()
    }
}

impl Walk {
    /// Makes the walk, and returns it if it fails.
    fn failure(self) -> Option<Failure> {
        match self.run() {
            Ok(checks) => {
                say!("ok    {}: {checks} checks", self.name);
                None
            }
            Err(output) => {
                let (name, command) = (self.name.clone(), "cargo xtask test --only interop".to_owned());
                let again = Box::new(move || self.run().map(drop));
                let failure = Failure { name, output, command, edited: false, again };
                failure.tell();
                Some(failure)
            }
        }
    }

    /// Lets the client walk through the server, which is started for this and ended with it.
    fn run(&self) -> Result<usize, String> {
        let walk = program(&self.client, WALK_LIMIT)?.args([self.era]);
        let (word, path) = match self.transport {
            Transport::Stdio => return judge(walk.args(["--"]).args(&self.server)),
            Transport::Http => ("http", "/mcp"),
            Transport::Stateless => ("stateless", "/mcp"),
            Transport::Sse => ("sse", "/sse"),
        };
        let service = program(&self.server, START_LIMIT)?.serve()?;
        let base = service.announced().strip_suffix("/mcp").ok_or("the server did not say where it is")?;
        judge(walk.args([word, &format!("{base}{path}")]))
    }
}

fn program(command: &[String], limit: Duration) -> Result<Program, String> {
    let (name, arguments) = command.split_first().ok_or("a command line is empty")?;
    Ok(Program::new(name, limit).args(arguments))
}
