//! From what somebody types to the server that is meant.

use super::{Configured, Found, Host};
use crate::{
    failure::{Code, Failure, Result},
    target::shell_word,
    terminal::{closest, printable},
};

/// Where the server is that a name stands for: a name, or exactly `HOST:NAME`.
///
/// One that its host uses goes before one that is disabled; otherwise the order of the hosts decides.
pub(super) fn position(found: &Found, name: &str) -> Option<usize> {
    let first = |matches: &dyn Fn(&Configured) -> bool| {
        let enabled = found.servers.iter().position(|server| matches(server) && !server.disabled);
        enabled.or_else(|| found.servers.iter().position(matches))
    };
    first(&|server| server.name == name).or_else(|| {
        let (host, name) = name.split_once(':')?;
        let host = Host::named(host)?;
        first(&|server| server.host == host && server.name == name)
    })
}

/// The server that is meant, or a failure that offers others.
pub(super) fn choose(mut found: Found, name: &str) -> Result<Configured> {
    match position(&found, name) {
        Some(position) => Ok(found.servers.swap_remove(position)),
        None => Err(unknown(&found, name)),
    }
}

fn unknown(found: &Found, name: &str) -> Failure {
    let failure = Failure::new(Code::UnknownServer, format!("no server is configured as `{name}`"));
    let wanted = name.split_once(':').map_or(name, |(_, name)| name);
    let alike = closest(wanted, found.servers.iter().map(|server| server.name.as_str()));
    if !alike.is_empty() {
        let alike: Vec<_> = alike.into_iter().map(|name| shell_word(&printable(name))).collect();
        return failure.hint(format!("did you mean {}?", alike.join(" or ")));
    }
    if let Some(broken) = found.broken.first() {
        let message = broken.message().lines().next().unwrap_or_default();
        return failure.hint(format!("perhaps it is in a file that cannot be read: {message}"));
    }
    failure.hint("toolwire lists those that are; a URL or -- COMMAND [ARGUMENTS] needs no configuration")
}
