//! The servers that are configured on this machine, wherever the configuration is.
//!
//! [`host`] knows the files of each host, [`places`] where those are on this machine, [`entry`] what the words
//! in them mean, [`switches`] what the hosts have switched off. Nothing here connects to anything, and what
//! cannot be understood does not hide the rest.
//!
//! A file of the project may have been written by anybody. Until the user has trusted it with exactly its
//! content, its servers are known by name only: no variable is replaced and no further file is read for them.
//! What was looked at to decide that is what is used: the file is read once.

mod entry;
pub(crate) mod file;
mod host;
pub(crate) mod jsonc;
mod names;
mod pending;
mod places;
mod switches;
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
    failure::{Code, Failure, Result},
    private_file, redact,
    target::{Address, shell_word},
    terminal::printable_line,
    trust::{Content, Gate, Store, Verdict},
};

use entry::Reader;
pub(crate) use host::{Format, Host, Place, Scope};
pub(crate) use pending::{Pending, Untrusted};
pub(crate) use places::{Places, System};
use switches::Switches;
use variables::{Values, Variables};

/// A server in some configuration.
#[derive(Debug)]
pub(crate) struct Configured {
    pub(crate) name: String,
    /// Whose configuration it is.
    pub(crate) host: Host,
    /// Who has put it there.
    pub(crate) scope: Scope,
    pub(crate) file: PathBuf,
    /// How it is reached, or why that cannot be told.
    pub(crate) address: Result<Address>,
    /// Whether the host has been told not to use it.
    pub(crate) disabled: bool,
    /// What is known about it while its file is not trusted.
    pub(crate) pending: Option<Pending>,
    /// Whether it needs the folder that this program was started in, whatever is in there.
    pub(crate) uses_folder: bool,
}

/// Everything that was found. The servers are in the order of precedence.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) servers: Vec<Configured>,
    /// The files that cannot be understood.
    pub(crate) broken: Vec<Failure>,
    /// Every file that was looked for.
    pub(crate) searched: Vec<PathBuf>,
    /// The files that are not trusted; [`Pending::file`] counts in here.
    pub(crate) untrusted: Vec<Untrusted>,
    /// The files of the project that are trusted.
    pub(crate) trusted: Vec<PathBuf>,
}

/// Looks into every place where servers are configured.
pub(crate) fn find() -> Found {
    find_in(&Places::here(), &Host::ALL)
}

/// Looks into the places of these hosts: first into those of the user, so that a project takes no name away.
pub(crate) fn find_in(places: &Places, hosts: &[Host]) -> Found {
    let mut found = Found::default();
    let (switches, store) = (Switches::read(places, &mut found.broken), Store::of(places));
    let mut all: Vec<Place> = hosts.iter().flat_map(|host| host.files(places)).collect();
    all.sort_by_key(|place| place.scope);
    let mut seen = BTreeSet::new();
    for place in all {
        // In the home directory, the files of the project are those of the user.
        let file = place.file.canonicalize().unwrap_or_else(|_| place.file.clone());
        if seen.insert((place.host, file.clone())) {
            found.look_into(&place, file, &Context { places, switches: &switches, store: &store });
        }
    }
    found
}

/// The address of a configured server: by its name, or exactly as `HOST:NAME`. If its file is not trusted, the
/// gate decides.
pub(crate) fn address(name: &str, gate: Gate) -> Result<Address> {
    let places = Places::here();
    let mut found = find_in(&places, &Host::ALL);
    let chosen = names::choose(&found, name)?;
    if let Some(pending) = found.servers.get(chosen).and_then(|server| server.pending.as_ref()) {
        let file = pending.file;
        gate.ask_about(&mut found, file, &places)?;
    }
    found.servers.swap_remove(chosen).address
}

/// What is needed besides a file to understand it.
struct Context<'a> {
    places: &'a Places,
    switches: &'a Switches,
    store: &'a Store,
}

impl Found {
    fn look_into(&mut self, place: &Place, real: PathBuf, context: &Context<'_>) {
        self.searched.push(place.file.clone());
        let bytes = match file::read_bytes(&place.file) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return,
            Err(failure) => return self.broken.push(failure),
        };
        let outside =
            place.scope == Scope::Project && !real.starts_with(private_file::real(context.places.root()));
        let parse = if outside { syntax::parse_unseen } else { syntax::parse };
        let value =
            file::text(&place.file, &bytes).and_then(|text| parse(&place.file, &text.text, place.format));
        let value = match value {
            Ok(value) if !value.is_object() => return self.broken.push(no_table(&place.file, &[])),
            Ok(value) => value,
            Err(failure) => return self.broken.push(failure),
        };
        let untrusted = match place.scope {
            Scope::User => None,
            Scope::Project => {
                let said = Content::new(real, &bytes);
                let verdict = context.store.verdict(&said);
                (verdict != Verdict::Trusted).then(|| Untrusted {
                    place: place.clone(),
                    content: said,
                    verdict,
                    outside,
                })
            }
        };
        let before = self.servers.len();
        for keys in &place.tables {
            self.take(&value, keys, place, untrusted.as_ref(), context);
        }
        // A file without servers needs no trust, such as the settings of an editor.
        match untrusted {
            _ if self.servers.len() == before => {}
            Some(untrusted) => self.untrusted.push(untrusted),
            None if place.scope == Scope::Project => self.trusted.push(place.file.clone()),
            None => {}
        }
    }

    /// Takes the servers out of one table.
    fn take(
        &mut self,
        value: &Value,
        keys: &[String],
        place: &Place,
        untrusted: Option<&Untrusted>,
        context: &Context<'_>,
    ) {
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
            // Whoever could say what is a secret could hide what would be started.
            if untrusted.is_none_or(|file| file.outside) {
                redact::learn_server(server);
            }
            let path = format!("{path}.{name}");
            let (address, pending) = match untrusted {
                None => (address_of(place, &path, name, server, context.places), None),
                Some(file) => file.server(self.untrusted.len(), &path, name, server),
            };
            self.servers.push(Configured {
                // A name that cannot be seen as it is cannot be used either, and is shown with escapes everywhere.
                name: printable_line(name),
                host: place.host,
                scope: place.scope,
                file: place.file.clone(),
                address,
                disabled: Reader::is_disabled(server) || context.switches.is_off(place, name),
                pending,
                uses_folder: Reader::uses_folder(server),
            });
        }
    }

    /// Uses a file that was not trusted when it was read, with what was read then.
    pub(crate) fn accept(&mut self, file: usize, places: &Places) {
        let Some(place) = self.untrusted.get(file).map(|untrusted| untrusted.place.clone()) else { return };
        for server in &mut self.servers {
            if let Some(pending) = server.pending.take_if(|pending| pending.file == file) {
                redact::learn_server(&pending.entry);
                server.address = address_of(&place, &pending.path, &server.name, &pending.entry, places);
            }
        }
    }

    /// Prepares the servers for being started without having been named, by a command that starts all of them.
    ///
    /// The user's own then have nothing to do with the current folder, which may be anybody's: a package runner or an
    /// interpreter would look for code in it first. They are started at home, and those that need the folder not at
    /// all, unless the user says so.
    pub(crate) fn unnamed(&mut self, places: &Places, open: bool) {
        for server in self.servers.iter_mut().filter(|server| server.scope == Scope::User && !open) {
            match &mut server.address {
                Ok(_) if server.uses_folder => {
                    let text =
                        format!("{} uses the current folder, so it is not started unasked", server.name);
                    let word = shell_word(&format!("{}:{}", server.host, server.name));
                    let hint = format!("toolwire tools {word}, or toolwire list --trust");
                    server.address = Err(Failure::new(Code::NotTrusted, text).hint(hint));
                }
                Ok(Address::Command(command)) if command.directory.is_none() => {
                    command.directory = places.home("");
                }
                _ => {}
            }
        }
    }

    /// The server that a name stands for.
    pub(crate) fn named(&self, name: &str) -> Option<&Configured> {
        names::position(self, name).and_then(|position| self.servers.get(position))
    }
}

/// How a server is reached, with its variables replaced.
fn address_of(place: &Place, path: &str, name: &str, server: &Value, places: &Places) -> Result<Address> {
    let variables = Variables { values: Values::Of(places), host: place.host, folder: &place.folder };
    let address = Reader { variables, file: &place.file, path: path.to_owned() }.address(name, server)?;
    redact::learn(&address);
    Ok(address)
}

fn no_table(file: &Path, path: &[&str]) -> Failure {
    let what = if path.is_empty() { "the whole file".to_owned() } else { path.join(".") };
    file::broken(file, &format!("{what} should be an object {{ }} and is something else"))
}
