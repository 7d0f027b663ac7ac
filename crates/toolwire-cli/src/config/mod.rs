//! The servers that are configured on this machine, wherever the configuration is.
//!
//! [`host`] knows the files of each host, [`places`] where those are on this machine, [`entry`] what the words
//! in them mean. Nothing here connects to anything, and what cannot be understood does not hide the rest.

mod entry;
pub(crate) mod file;
mod host;
pub(crate) mod jsonc;
mod names;
mod places;
pub(crate) mod syntax;
mod variables;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    failure::{Failure, Result},
    target::Address,
};

use entry::Reader;
pub(crate) use host::{Format, Host, Place};
pub(crate) use places::Places;
#[cfg(test)]
pub(crate) use places::System;
use variables::Variables;

/// A server in some configuration.
#[derive(Debug)]
pub(crate) struct Configured {
    pub(crate) name: String,
    /// Whose configuration it is.
    pub(crate) host: Host,
    pub(crate) file: PathBuf,
    /// How it is reached, or why that cannot be told.
    pub(crate) address: Result<Address>,
    /// Whether the host has been told not to use it.
    pub(crate) disabled: bool,
}

/// Everything that was found. The servers are in the order of precedence.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) servers: Vec<Configured>,
    /// The files that cannot be understood.
    pub(crate) broken: Vec<Failure>,
    /// Every file that was looked for.
    pub(crate) searched: Vec<PathBuf>,
}

/// Looks into every place where servers are configured.
pub(crate) fn find() -> Found {
    find_in(&Places::here(), &Host::ALL)
}

/// Looks into the places of these hosts.
pub(crate) fn find_in(places: &Places, hosts: &[Host]) -> Found {
    let mut found = Found::default();
    let mut seen = BTreeSet::new();
    for place in hosts.iter().flat_map(|host| host.files(places)) {
        // In the home directory, the files of the project are those of the user.
        let file = place.file.canonicalize().unwrap_or_else(|_| place.file.clone());
        if seen.insert((place.host, file)) {
            found.look_into(&place, places);
        }
    }
    found
}

/// The address of a configured server: by its name, or exactly as `HOST:NAME`.
pub(crate) fn address(name: &str) -> Result<Address> {
    names::choose(find(), name)?.address
}

impl Found {
    fn look_into(&mut self, place: &Place, places: &Places) {
        self.searched.push(place.file.clone());
        let value = match file::read(&place.file) {
            Ok(Some(text)) => syntax::parse(&place.file, &text.text, place.format),
            Ok(None) => return,
            Err(failure) => Err(failure),
        };
        match value {
            Ok(value) if !value.is_object() => self.broken.push(no_table(&place.file, &[])),
            Ok(value) => place.tables.iter().for_each(|keys| self.take(&value, keys, place, places)),
            Err(failure) => self.broken.push(failure),
        }
    }

    /// Takes the servers out of one table.
    fn take(&mut self, value: &Value, keys: &[String], place: &Place, places: &Places) {
        let mut table = value;
        let mut path = Vec::new();
        for key in keys {
            path.push(key.as_str());
            match table.get(key) {
                Some(inner) if inner.is_object() => table = inner,
                None | Some(Value::Null) => return,
                Some(_) => return self.broken.push(no_table(&place.file, &path)),
            }
        }
        let path = path.join(".");
        for (name, server) in table.as_object().into_iter().flatten() {
            let variables = Variables { places, host: place.host, folder: &place.folder };
            let reader = Reader { variables, file: &place.file, path: format!("{path}.{name}") };
            self.servers.push(Configured {
                name: name.clone(),
                host: place.host,
                file: place.file.clone(),
                address: reader.address(name, server),
                disabled: Reader::is_disabled(server),
            });
        }
    }

    /// The server that a name stands for.
    pub(crate) fn named(&self, name: &str) -> Option<&Configured> {
        names::position(self, name).and_then(|position| self.servers.get(position))
    }
}

fn no_table(file: &Path, path: &[&str]) -> Failure {
    let what = if path.is_empty() { "the whole file".to_owned() } else { path.join(".") };
    file::broken(file, &format!("{what} should be an object {{ }} and is something else"))
}
