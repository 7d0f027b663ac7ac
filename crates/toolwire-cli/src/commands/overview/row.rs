//! What is one server to people: all that has the same name and is reached in the same way.

use std::path::PathBuf;

use serde::Serialize;

use crate::{
    config::{Configured, Found, Host, Pending},
    failure::Result,
    target::Address,
};

/// A server with everybody who has configured it.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    /// What to type to mean this one: its name, or `HOST:NAME` if the name alone means another.
    pub(super) word: String,
    pub(super) origins: Vec<Origin>,
    pub(super) address: Result<Address>,
    /// Whether all hosts have been told not to use it.
    pub(super) disabled: bool,
    /// What is known about it while its file is not trusted.
    pub(super) pending: Option<Pending>,
}

/// Where a server is configured.
#[derive(Debug, Serialize)]
pub(super) struct Origin {
    pub(super) host: Host,
    pub(super) file: PathBuf,
}

/// Puts together what is the same. If these are not all servers, a name alone might mean one of the others.
pub(super) fn rows(servers: Vec<Configured>, all: bool) -> Vec<Row> {
    let found = Found { servers, ..Found::default() };
    let words: Vec<_> = found.servers.iter().map(|server| word(&found, server, all)).collect();
    let mut rows: Vec<Row> = Vec::new();
    for (server, word) in found.servers.into_iter().zip(words) {
        let Configured { name, host, file, address, disabled, pending, .. } = server;
        let origin = Origin { host, file };
        if let Some(row) = rows.iter_mut().find(|row| row.name == name && is_same(&row.address, &address)) {
            row.disabled &= disabled;
            row.origins.push(origin);
            if word == name {
                row.word = word;
            }
        } else {
            rows.push(Row { name, word, origins: vec![origin], address, disabled, pending });
        }
    }
    rows
}

fn is_same(one: &Result<Address>, other: &Result<Address>) -> bool {
    matches!((one, other), (Ok(one), Ok(other)) if one == other)
}

fn word(found: &Found, server: &Configured, all: bool) -> String {
    if all && found.named(&server.name).is_some_and(|named| std::ptr::eq(named, server)) {
        server.name.clone()
    } else {
        let word = format!("{}:{}", server.host, server.name);
        // The user's own goes before the project's of the same host, which is then meant by its file.
        match found.named(&word) {
            Some(named) if std::ptr::eq(named, server) => word,
            _ => format!("{}:{}", server.file.display(), server.name),
        }
    }
}
