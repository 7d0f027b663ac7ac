//! `toolwire serve`: the demonstration server, for trying clients against.
//!
//! Each transport has a file of its own here, and a variant in [`Place`].

mod http;
mod stdio;
#[cfg(unix)]
mod unix;

use std::io::{self, IsTerminal};

use clap::Args;
use owo_colors::OwoColorize;
use toolwire::{Server, store::Store};

use crate::{
    commands::store,
    demo_server,
    failure::{Code, Failure, Result},
    session::{self, Signal},
    terminal::Terminal,
};

pub(crate) use stdio::transport;

/// Where it listens unless told otherwise.
const HTTP_ADDRESS: &str = "127.0.0.1:3000";

const AFTER_HELP: &str = "\
Without options it listens on HTTP when a person starts it, and speaks over standard
input and output when a client does.

Examples:
  toolwire serve
  toolwire serve --http 127.0.0.1:8080 --allow-host example.com
  toolwire serve --unix /tmp/demo.sock     and then: toolwire tools unix:/tmp/demo.sock
  toolwire serve --store sqlite:tasks.db   tasks go on when it is started again";

/// Serve the demonstration server, for trying clients against
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// Serve the client at the other end of standard input and output
    #[arg(long, conflicts_with_all = ["http", "ws", "unix", "allow_origin", "allow_host"])]
    stdio: bool,

    /// Listen on this address, at the path /mcp; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = HTTP_ADDRESS)]
    http: Option<String>,

    /// The same for WebSocket clients: both speak at one place
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = HTTP_ADDRESS)]
    #[arg(conflicts_with_all = ["http", "unix"])]
    ws: Option<String>,

    /// Listen at a unix socket that is made at this path
    #[cfg(unix)]
    #[arg(long, value_name = "PATH", conflicts_with_all = ["http", "allow_origin", "allow_host"])]
    unix: Option<std::path::PathBuf>,

    /// Let web pages of this origin ask; may be given several times
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,

    /// Answer to this host name as well; may be given several times
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,

    /// Keep tasks in this store, so that they outlive the server
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

/// Where clients find the server.
enum Place<'a> {
    Stdio,
    Http(&'a str),
    WebSocket(&'a str),
    #[cfg(unix)]
    Unix(&'a std::path::Path),
}

impl Options {
    fn place(&self) -> Place<'_> {
        #[cfg(unix)]
        if let Some(path) = &self.unix {
            return Place::Unix(path);
        }
        if let Some(address) = &self.ws {
            return Place::WebSocket(address);
        }
        match &self.http {
            Some(address) => Place::Http(address),
            None if self.stdio => Place::Stdio,
            None if io::stdin().is_terminal()
                || !self.allow_origin.is_empty()
                || !self.allow_host.is_empty() =>
            {
                Place::Http(HTTP_ADDRESS)
            }
            None => Place::Stdio,
        }
    }
}

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let server = server(options, terminal).await?;
    let serving = async {
        match options.place() {
            Place::Stdio => stdio::serve(&server).await,
            Place::Http(address) => http::serve(&server, address, "http", options, terminal).await,
            Place::WebSocket(address) => http::serve(&server, address, "ws", options, terminal).await,
            #[cfg(unix)]
            Place::Unix(path) => unix::serve(&server, path, terminal).await,
        }
    };
    tokio::select! {
        ended = serving => ended,
        // It went on draining for too long.
        signal = stopped(&server, terminal) => Err(Failure::told(Code::Interrupted).signal(signal)),
    }
}

/// Makes the server, with the store that was asked for.
async fn server(options: &Options, terminal: Terminal) -> Result<Server> {
    let mut builder = demo_server::builder();
    if let Some(url) = &options.store {
        let place = store::Place::of(url);
        let store = place.open().await?;
        // A host that starts a server wants to hear of nothing but trouble.
        if !terminal.json && !matches!(options.place(), Place::Stdio) {
            let what = "Tasks are kept in".green().bold().to_string();
            terminal.note(format_args!("{what} {}; {}", place.shown().bold(), fate(&store)));
        }
        builder = builder.store(store);
    }
    builder.build().map_err(|error| Failure::new(Code::Other, error.to_string()))
}

/// Says how long tasks in this store are safe.
fn fate(store: &Store) -> &'static str {
    match (store.is_shared(), store.is_durable()) {
        (_, true) => "they outlive the server",
        (true, false) => "they outlive the server, but a restart of the store may lose them",
        (false, false) => "they end with the server",
    }
}

/// Lets the server finish at the first signal, and gives up on it at the second.
async fn stopped(server: &Server, terminal: Terminal) -> Signal {
    session::signalled().await;
    server.shutdown();
    if terminal.is_live() {
        terminal.note("\nfinishing what is under way; Ctrl-C again leaves at once");
    }
    session::signalled().await
}
