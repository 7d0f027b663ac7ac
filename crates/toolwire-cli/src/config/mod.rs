//! The servers that are configured on this machine, wherever the configuration is.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{
    failure::{Code, Failure, Result},
    target::{Address, Command},
};

/// A server in some configuration.
#[derive(Debug)]
pub(crate) struct Configured {
    pub(crate) name: String,
    /// Whose configuration it is, such as `claude-desktop`.
    pub(crate) host: &'static str,
    pub(crate) file: PathBuf,
    /// How it is reached, or why that cannot be told.
    pub(crate) address: Result<Address>,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) servers: Vec<Configured>,
    /// The files that cannot be understood.
    pub(crate) broken: Vec<Failure>,
}

/// Looks into every place where servers are configured. What cannot be understood does not hide the rest.
pub(crate) fn find() -> Found {
    let mut found = Found::default();
    let file = Path::new(".mcp.json");
    if let Ok(text) = std::fs::read_to_string(file) {
        match serde_json::from_str::<Value>(&text) {
            Ok(value) => {
                let servers = value["mcpServers"].as_object().into_iter().flatten();
                found.servers.extend(servers.map(|(name, server)| Configured {
                    name: name.clone(),
                    host: "project",
                    file: file.to_owned(),
                    address: Ok(command(server)),
                }));
            }
            Err(error) => {
                found.broken.push(Failure::new(Code::ConfigBroken, format!("{}: {error}", file.display())));
            }
        }
    }
    found
}

/// The address of a configured server.
pub(crate) fn address(name: &str) -> Result<Address> {
    let found = find();
    match found.servers.into_iter().find(|server| server.name == name) {
        Some(server) => server.address,
        None => Err(Failure::new(Code::UnknownServer, format!("no server is configured as `{name}`"))
            .hint("toolwire lists those that are; a URL or -- COMMAND [ARGUMENTS] needs no configuration")),
    }
}

fn command(server: &Value) -> Address {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let args = server["args"].as_array().into_iter().flatten().map(text).collect();
    Address::Command(Command { program: text(&server["command"]), args, ..Command::default() })
}
