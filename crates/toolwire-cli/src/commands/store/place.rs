//! The URL of a store: opened, and shown without the password in it.

use std::error::Error;

use serde_json::Value;
use toolwire::store::{self, OpenError, Store, StoreError, sqlite::SqliteOptions};

use crate::{
    failure::{Code, Failure, Result},
    redact::{self, REDACTED},
    terminal::printable_line,
};

/// Whether opening a store may change its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Migrations {
    On,
    Off,
}

/// Where a store is.
#[derive(Debug)]
pub(crate) struct Place {
    url: String,
    shown: String,
}

impl Place {
    /// Takes a URL as it was typed, and keeps what is secret in it out of everything that is printed.
    pub(crate) fn of(url: &str) -> Self {
        redact::learn_server(&Value::from(url));
        if let Some((credentials, _)) = url.rsplit_once('@') {
            let password = credentials.split_once("://").map_or(credentials, |(_, user)| user);
            redact::remember_variable("password", password.split_once(':').map_or("", |(_, it)| it));
        }
        // Wherever it is: `?` may be missing, and drivers take keywords without a URL as well.
        for (_, rest) in url.match_indices("password=").map(|(at, word)| url.split_at(at + word.len())) {
            let end = rest.find(['&', ' ', '#']).unwrap_or(rest.len());
            redact::remember_variable("password", rest.get(..end).unwrap_or_default());
        }
        Self { url: url.to_owned(), shown: printable_line(&shown(url)) }
    }

    /// The URL without credentials and parameters.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Opens the store as its URL says.
    pub(crate) async fn open(&self) -> Result<Store> {
        self.open_url(&self.url).await
    }

    /// Opens the store, and leaves it to the caller whether its schema may change, whatever the URL says.
    pub(super) async fn open_with(&self, migrations: Migrations) -> Result<Store> {
        self.open_url(&with(&self.url, migrations)).await
    }

    /// Refuses a file that is not there: opening it would make it.
    pub(super) fn expect_file(&self) -> Result<()> {
        match self.file()? {
            Some(options) if !options.path.exists() => {
                let text =
                    format!("there is no file {}", printable_line(&options.path.display().to_string()));
                let hint = format!(
                    "a server makes it when it starts, and so does: toolwire store migrate {}",
                    self.shown
                );
                Err(Failure::new(Code::Io, text).hint(hint))
            }
            _ => Ok(()),
        }
    }

    /// Describes an operation that failed.
    pub(super) fn failed(&self, error: &StoreError) -> Failure {
        let code = match error {
            StoreError::Unavailable(_) | StoreError::Full(_) => Code::StoreUnreachable,
            _ => Code::Other,
        };
        self.failure(code, error)
    }

    fn failure(&self, code: Code, error: &StoreError) -> Failure {
        // The cause alone: it tells more than the kind of the error.
        let text = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        Failure::new(code, format!("{}: {}", self.shown, printable_line(&text)))
    }

    /// The options of an SQLite file, if it is one.
    fn file(&self) -> Result<Option<SqliteOptions>> {
        if scheme(&self.url) != "sqlite" {
            return Ok(None);
        }
        let options = SqliteOptions::from_url(&self.url);
        options.map(Some).map_err(|error| self.failure(Code::Usage, &error))
    }

    async fn open_url(&self, url: &str) -> Result<Store> {
        self.file()?;
        store::open(url).await.map_err(|error| match error {
            OpenError::Failed(error) => self.failed(&error),
            other => Failure::new(Code::Usage, other.to_string())
                .hint("toolwire store --help shows how URLs of stores are written"),
        })
    }
}

fn scheme(url: &str) -> &str {
    url.split_once(':').map_or("", |(scheme, _)| scheme)
}

/// The URL with a last word on migrations, where it takes one.
fn with(url: &str, migrations: Migrations) -> String {
    if !matches!(scheme(url), "sqlite" | "postgres" | "postgresql") {
        return url.to_owned();
    }
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let kept = query.split('&').filter(|pair| !matches!(*pair, "" | "migrate=on" | "migrate=off"));
    let last = if migrations == Migrations::On { "migrate=on" } else { "migrate=off" };
    format!("{place}?{}", kept.chain([last]).collect::<Vec<_>>().join("&"))
}

/// A URL without credentials and parameters. In doubt, less of it is shown.
fn shown(url: &str) -> String {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let Some((scheme, rest)) = place.split_once(':') else { return REDACTED.to_owned() };
    if matches!(scheme, "memory" | "sqlite") {
        return place.to_owned();
    }
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    // A password may have characters that should have been encoded, so it ends at the last `@`.
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let rest = rest.split('#').next().unwrap_or_default();
    let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
    // What is not a port is a password whose host was forgotten, and a password may have a `?` in it.
    let is_plain =
        hosts.split(',').all(has_port_or_none) && is_name(hosts) && is_name(path) && !query.contains('@');
    format!("{scheme}://{}", if is_plain { rest } else { REDACTED })
}

fn has_port_or_none(host: &str) -> bool {
    let behind = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
    behind.split_once(':').is_none_or(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns whether a part of a URL has no characters but those of hosts, ports and names of databases.
fn is_name(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.,:[]%".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_their_secrets() {
        for (url, expected) in [
            ("memory:", "memory:"),
            ("sqlite:data/tasks.db?sync=normal", "sqlite:data/tasks.db"),
            ("sqlite:///var/a@b.db", "sqlite:///var/a@b.db"),
            ("redis://localhost", "redis://localhost"),
            ("rediss://me:secret@[::1]:7000,b:7001/3?name=blue", "rediss://[::1]:7000,b:7001/3"),
            ("redis://:se/cret@h", "redis://h"),
            ("redis://:se@cret@h/1", "redis://h/1"),
            ("redis://:se#cret@h", "redis://h"),
            ("redis://:se?cret@h", "redis://[redacted]"),
            ("redis://:secret", "redis://[redacted]"),
            ("postgres://me:secret", "postgres://[redacted]"),
            ("postgres://me:secret@h:5432,i/base", "postgres://h:5432,i/base"),
            ("postgresql://me@/base?host=/run/x&password=secret", "postgresql:///base"),
            ("postgres://db/base&user=me&password=secret", "postgres://[redacted]"),
            ("postgres://db/base password=secret", "postgres://[redacted]"),
            ("postgres:host=h password=secret", "postgres://[redacted]"),
            ("secret", "[redacted]"),
        ] {
            assert_eq!(shown(url), expected, "{url}");
            assert!(!Place::of(url).shown().contains("secret"), "{url}");
        }
    }

    #[test]
    fn a_command_has_the_last_word_on_migrations() {
        use Migrations::{Off, On};
        for (url, migrations, expected) in [
            ("sqlite:a.db", Off, "sqlite:a.db?migrate=off"),
            ("sqlite:a.db?migrate=off&sync=normal", On, "sqlite:a.db?sync=normal&migrate=on"),
            ("postgres://h/b?schema=blue", Off, "postgres://h/b?schema=blue&migrate=off"),
            ("redis://h?name=blue", On, "redis://h?name=blue"),
            ("memory:", On, "memory:"),
        ] {
            assert_eq!(with(url, migrations), expected);
        }
    }
}
