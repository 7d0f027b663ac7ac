//! What is said where nothing is configured: where was looked, and what to do next.

use owo_colors::OwoColorize;

use crate::{
    config::{Host, Places},
    failure::Result,
    terminal::{Table, Terminal},
};

/// Says that there is nothing, kindly.
pub(super) fn show(places: &Places, hosts: &[Host], terminal: Terminal) -> Result<()> {
    let mut looked = Table::default();
    for host in hosts {
        let file = match host {
            Host::Project => ".mcp.json and mcp.json, here and up to the root of the repository".to_owned(),
            _ => host.own_file(places).map_or_else(
                || "nowhere, because there is no home directory".to_owned(),
                |file| places.short(&file.display().to_string()),
            ),
        };
        looked.row([format!("  {host}"), file]);
    }
    let mut next = Table::default();
    for (command, why) in [
        ("toolwire demo", "take a tour; it needs nothing"),
        ("toolwire tools -- npx -y SOME-SERVER", "see what a server can do"),
        ("toolwire add demo -- toolwire demo --stdio", "configure one; --to cursor for a host"),
    ] {
        next.row([format!("  {}", command.cyan()), why.to_owned()]);
    }
    terminal.print(format!(
        "{}\n\nLooked into the settings of these, and of the project they are used in:\n{looked}\n\n{}\n{next}",
        "No MCP servers are configured here.".bold(),
        "What to type next:".bold(),
    ))
}
