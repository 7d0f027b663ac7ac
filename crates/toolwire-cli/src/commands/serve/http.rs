//! Serving whoever comes to a URL, by HTTP or by WebSocket.

use owo_colors::OwoColorize;
use serde_json::json;
use tokio::net::TcpListener;
use toolwire::{
    Server,
    http::server::{Cors, HttpService},
};

use super::Options;
use crate::{
    failure::{Code, Failure, Result},
    terminal::Terminal,
};

/// Where the protocol is spoken.
const PATH: &str = "/mcp";

/// Listens, says where in the words of `scheme`, and serves until the server is shut down.
pub(super) async fn serve(
    server: &Server,
    address: &str,
    scheme: &str,
    options: &Options,
    terminal: Terminal,
) -> Result<()> {
    let cors = if options.allow_origin.is_empty() { Cors::Off } else { Cors::AllowedOrigins };
    let service = HttpService::builder(server.clone())
        .path(PATH)
        .sse2024("/sse", "/messages")
        .websocket(true)
        .allow_origins(&options.allow_origin)
        .allow_hosts(&options.allow_host)
        .cors(cors)
        .build()
        .map_err(|error| Failure::new(Code::Usage, error.to_string()))?;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        Failure::new(Code::Io, format!("{address} cannot be listened on: {error}"))
            .hint(format!("take another port: toolwire serve --{scheme} 127.0.0.1:0 finds a free one"))
    })?;
    announce(&format!("{scheme}://{}{PATH}", listener.local_addr()?), scheme, terminal)?;
    Ok(service.serve(listener).await?)
}

/// Says where the server is: one line for scripts, and for people what to do with it.
pub(super) fn announce(url: &str, transport: &str, terminal: Terminal) -> Result<()> {
    if terminal.json {
        return terminal.print_json(&json!({ "url": url, "transport": transport }));
    }
    terminal.note(format_args!("{} {}", "Serving at".green().bold(), url.bold()));
    if terminal.is_live() {
        let mut tries = vec![
            ("what can it do?", format!("toolwire tools {url}")),
            ("call a tool", format!("toolwire call {url} add a=2 b=3")),
            ("hear of changes", format!("toolwire watch {url}")),
        ];
        if transport == "http" {
            tries.push(("from Claude Code", format!("claude mcp add --transport http demo {url}")));
        }
        terminal.note("\nTry it from another terminal:\n");
        for (what, line) in tries {
            terminal.note(format_args!("  {}\n    {line}", format_args!("# {what}").dimmed()));
        }
        terminal
            .note(format_args!("\n{}", "Clients of every revision can connect. Ctrl-C ends it.".dimmed()));
    }
    Ok(())
}
