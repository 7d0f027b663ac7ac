//! From what somebody types to the server that is meant.

use std::path::Path;

use super::{Configured, Found, Host};
use crate::{
    failure::{Code, Failure, Result},
    target::shell_word,
    terminal::{closest, fit, printable_line},
};

/// How much of a name that nobody knows is told.
const MAX_ECHOED: usize = 100;
/// The server that the documents speak of.
const DEMO: &str = "demo";

/// Where the server is that a name stands for: a name, exactly `HOST:NAME`, or exactly `FILE:NAME`.
///
/// One that its host uses goes before one that is switched off, and one of the user before one of the project,
/// which must not take the place of something that the user knows by this name. Otherwise the order of the hosts
/// decides.
pub(super) fn position(found: &Found, name: &str) -> Option<usize> {
    plain(found, name).or_else(|| exact(found, name))
}

fn plain(found: &Found, name: &str) -> Option<usize> {
    first(found, |server| server.name == name)
}

fn exact(found: &Found, name: &str) -> Option<usize> {
    let of_host = |(host, name): (&str, &str)| {
        let host = Host::named(host)?;
        first(found, |server| server.host == host && server.name == name)
    };
    let of_file = |at: usize| {
        let (file, name) = (name.get(..at)?, name.get(at + 1..)?);
        // It is typed from where one is, and the file may have been found from elsewhere, or through a link.
        let file = Path::new(file).canonicalize().ok()?;
        first(found, |server| server.name == name && server.file.canonicalize().is_ok_and(|own| own == file))
    };
    let colons = || name.match_indices(':').map(|(at, _)| at);
    name.split_once(':').and_then(of_host).or_else(|| colons().find_map(of_file))
}

/// The first that matches, in the order of precedence.
fn first(found: &Found, matches: impl Fn(&Configured) -> bool) -> Option<usize> {
    let matching = found.servers.iter().enumerate().filter(|(_, server)| matches(server));
    matching.min_by_key(|(_, server)| (server.disabled, server.scope)).map(|(index, _)| index)
}

/// The server that is meant, or a failure that offers others.
pub(super) fn choose(found: &Found, name: &str) -> Result<usize> {
    if let Some(index) = plain(found, name) {
        return match found.servers.get(index) {
            Some(server) if server.disabled => Err(switched_off(server)),
            _ => Ok(index),
        };
    }
    exact(found, name).ok_or_else(|| unknown(found, name))
}

/// What a host does not use is used only if it is meant exactly.
fn switched_off(server: &Configured) -> Failure {
    let file = printable_line(&server.file.display().to_string());
    let text = format!("{} is switched off in {} ({file})", server.name, server.host);
    let word = shell_word(&format!("{}:{}", server.host, server.name));
    Failure::new(Code::SwitchedOff, text).hint(format!("{word} uses it all the same"))
}

fn unknown(found: &Found, name: &str) -> Failure {
    let text = format!("no server is configured as `{}`", fit(&printable_line(name), MAX_ECHOED));
    let failure = Failure::new(Code::UnknownServer, text);
    if let Some((scheme, _)) = name.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
        let text = format!("{scheme}:// is not a kind of address that a server can have");
        return Failure::new(Code::UnknownServer, text)
            .hint("http://, https://, ws://, wss:// and unix: are");
    }
    if let Some((_, port)) = name.split_once(':')
        && port.parse::<u16>().is_ok()
    {
        return failure.hint(format!("did you mean http://{}/mcp?", fit(&printable_line(name), MAX_ECHOED)));
    }
    let wanted = name.split_once(':').map_or(name, |(_, name)| name);
    let alike = closest(wanted, found.servers.iter().map(|server| server.name.as_str()));
    if !alike.is_empty() {
        let alike: Vec<_> = alike.into_iter().map(shell_word).collect();
        return failure.hint(format!("did you mean {}?", alike.join(" or ")));
    }
    if let Some(broken) = found.broken.first() {
        let message = broken.message().lines().next().unwrap_or_default();
        return failure.hint(format!("perhaps it is in a file that cannot be read: {message}"));
    }
    if name == DEMO {
        return failure
            .hint("the demonstration server is added with: toolwire add demo -- toolwire demo --stdio");
    }
    failure.hint("toolwire lists those that are; a URL or -- COMMAND [ARGUMENTS] needs no configuration")
}

/// Whether something is written as the scheme of a URL is.
fn is_scheme(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    (1..=16).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(letter)
}
