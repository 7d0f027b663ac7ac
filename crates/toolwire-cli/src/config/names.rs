//! From what somebody types to the server that is meant.

use super::{Configured, Found, Host};
use crate::{
    failure::{Code, Failure, Result},
    target::shell_word,
};

/// How alike two names must be for one to be offered in place of the other, from 0 to 1.
const ALIKE: f64 = 0.75;
/// How many names are offered.
const MAX_OFFERED: usize = 3;

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
    let alike = alike(found, name);
    if !alike.is_empty() {
        let alike: Vec<_> = alike.iter().map(|name| shell_word(name)).collect();
        return failure.hint(format!("did you mean {}?", alike.join(" or ")));
    }
    if let Some(broken) = found.broken.first() {
        let message = broken.message().lines().next().unwrap_or_default();
        return failure.hint(format!("perhaps it is in a file that cannot be read: {message}"));
    }
    failure.hint("toolwire lists those that are; a URL or -- COMMAND [ARGUMENTS] needs no configuration")
}

/// The names most like this one, best first.
fn alike<'a>(found: &'a Found, name: &str) -> Vec<&'a str> {
    let wanted = name.split_once(':').map_or(name, |(_, name)| name).to_lowercase();
    let likeness = |server: &'a Configured| {
        let candidate = server.name.to_lowercase();
        let part = wanted.len() >= 2 && (candidate.contains(&wanted) || wanted.contains(&candidate));
        let score = if part { 1.0 } else { strsim::jaro_winkler(&candidate, &wanted) };
        (score >= ALIKE).then_some((score, server.name.as_str()))
    };
    let mut alike: Vec<_> = found.servers.iter().filter_map(likeness).collect();
    alike.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
    alike.dedup_by_key(|(_, name)| *name);
    alike.into_iter().take(MAX_OFFERED).map(|(_, name)| name).collect()
}
