//! What a URL says about where Postgres is. No error repeats the URL, because there may be a password in it.

use std::fmt;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::TIME_LIMIT;

/// The schema that everything is in unless somebody says otherwise.
const SCHEMA: &str = "toolwire";

/// Postgres cuts longer names off.
const MAX_SCHEMA_BYTES: usize = 60;

/// Time limit for one address of a host to accept a connection.
const ADDRESS_LIMIT: Duration = Duration::from_millis(1500);

/// Time limit for one of several hosts, until its connection can be used, which leaves time for the next one.
const HOST_LIMIT: Duration = Duration::from_secs(2);

/// Time limit of a statement that waits for a lock. It holds up all operations that share its transaction.
const LOCK_LIMIT: Duration = Duration::from_millis(500);

/// Time limit of a client that is silent within a transaction. It holds locks, and may never come back.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);

/// Interval at which the server checks that the client of a running statement is still connected.
const CLIENT_CHECK: Duration = Duration::from_secs(1);

/// Where Postgres is, and how to use it.
#[derive(Clone)]
pub(crate) struct Settings {
    /// One for each host, in the order of the URL.
    pub(crate) hosts: Vec<Config>,
    pub(crate) schema: String,
    /// Whether tables are made and changed when the store is opened.
    pub(crate) migrate: bool,
    /// Whether other nodes are listened to. Not possible behind some poolers.
    pub(crate) listen: bool,
    /// A file with certificates that are trusted besides those of the system.
    pub(crate) roots: Option<String>,
}

/// Shows where it is and nothing of who logs in.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field(
                "hosts",
                &self.hosts.iter().map(|host| (host.get_hosts(), host.get_ports())).collect::<Vec<_>>(),
            )
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// Takes what is ours out of the query; the rest is for the driver.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut schema, mut migrate, mut listen, mut roots) = (SCHEMA.to_owned(), true, true, None);
        let (mut rest, mut verify) = (Vec::new(), false);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("schema", name) => schema = plain(name)?,
                ("migrate", value) => migrate = is_on("migrate", value)?,
                ("listen", value) => listen = is_on("listen", value)?,
                ("sslrootcert", file) => roots = Some(file.replace("%2F", "/").replace("%2f", "/")),
                // Certificates are always verified in full.
                ("sslmode", "verify-ca" | "verify-full") => verify = true,
                _ => rest.push(pair),
            }
        }
        let url = if rest.is_empty() { place.to_owned() } else { format!("{place}?{}", rest.join("&")) };
        let config = url.parse::<Config>();
        let mut config = config.map_err(|_| "the URL of Postgres cannot be read".to_owned())?;
        if verify {
            config.ssl_mode(SslMode::Require);
        }
        let limit = config.get_connect_timeout().map_or(ADDRESS_LIMIT, |limit| (*limit).min(ADDRESS_LIMIT));
        config.connect_timeout(limit);
        config.application_name("toolwire");
        // A store is written to: a standby is of no use.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        Ok(Self { hosts: apart(&config)?, schema, migrate, listen, roots })
    }

    /// Time limit for each host until its connection can be used.
    pub(crate) fn host_limit(&self) -> Duration {
        if self.hosts.len() > 1 { HOST_LIMIT } else { TIME_LIMIT }
    }

    /// Returns the statements that each session begins with. Poolers pass them on, unlike the options of a login.
    ///
    /// A client that is silent within a transaction loses it, and its locks with it; so does one that does not read its
    /// results.
    pub(crate) fn session(&self) -> String {
        let (schema, time) = (&self.schema, TIME_LIMIT.as_millis());
        let (lock, silence) = (LOCK_LIMIT.as_millis(), SILENCE_LIMIT.as_millis());
        format!(
            "SET search_path = {schema}; SET default_transaction_isolation = 'read committed';
             SET statement_timeout = {time}; SET lock_timeout = {lock};
             SET idle_in_transaction_session_timeout = {silence}; SET tcp_user_timeout = {time};
             SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3"
        )
    }

    /// Returns the statement for a setting that Postgres has from version 14 on, and not on every system.
    pub(crate) fn client_check() -> String {
        let interval = CLIENT_CHECK.as_millis();
        format!(
            "SELECT set_config(name, '{interval}', false) FROM pg_settings
             WHERE name = 'client_connection_check_interval'"
        )
    }
}

/// The hosts of a URL, each by itself: the driver gives all of them together one time, which the first one that is
/// silent uses up.
fn apart(all: &Config) -> Result<Vec<Config>, String> {
    let (hosts, addresses, ports) = (all.get_hosts(), all.get_hostaddrs(), all.get_ports());
    let count = hosts.len().max(addresses.len());
    if count == 0 {
        return Err("the URL of Postgres names no host".to_owned());
    }
    let is_each = |of: usize| of == 0 || of == count;
    if !is_each(hosts.len()) || !is_each(addresses.len()) || (ports.len() > 1 && ports.len() != count) {
        return Err("the URL of Postgres has another number of ports or addresses than of hosts".to_owned());
    }
    let host = |place: usize| {
        let mut one = without_hosts(all);
        match hosts.get(place) {
            Some(Host::Tcp(name)) => {
                one.host(name);
            }
            #[cfg(unix)]
            Some(Host::Unix(path)) => {
                one.host_path(path);
            }
            None => {}
        }
        if let Some(address) = addresses.get(place) {
            one.hostaddr(*address);
        }
        if let Some(port) = ports.get(place).or_else(|| ports.first()) {
            one.port(*port);
        }
        one
    };
    Ok((0..count).map(host).collect())
}

/// All but the hosts, which cannot be taken out of what they are in.
fn without_hosts(all: &Config) -> Config {
    let mut one = Config::new();
    if let Some(user) = all.get_user() {
        one.user(user);
    }
    if let Some(password) = all.get_password() {
        one.password(password);
    }
    if let Some(name) = all.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = all.get_options() {
        one.options(options);
    }
    if let Some(name) = all.get_application_name() {
        one.application_name(name);
    }
    if let Some(limit) = all.get_connect_timeout() {
        one.connect_timeout(*limit);
    }
    if let Some(limit) = all.get_tcp_user_timeout() {
        one.tcp_user_timeout(*limit);
    }
    if let Some(interval) = all.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = all.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.keepalives(all.get_keepalives())
        .keepalives_idle(all.get_keepalives_idle())
        .ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .target_session_attrs(all.get_target_session_attrs())
        .channel_binding(all.get_channel_binding())
        .load_balance_hosts(all.get_load_balance_hosts());
    one
}

fn is_on(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{name}` in the URL of Postgres is `on` or `off`")),
    }
}

/// It is part of statements, so it has nothing that would have to be quoted.
fn plain(name: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if begins && name.len() <= MAX_SCHEMA_BYTES && name.bytes().all(is_plain) {
        Ok(name.to_owned())
    } else {
        Err(format!(
            "`schema` has up to {MAX_SCHEMA_BYTES} small letters, digits and `_`, and begins with a letter"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_taken_out_and_the_rest_is_for_the_driver() {
        let url = "postgres://me:secret@a:1,b:2/base?schema=blue&listen=off&migrate=off&sslmode=require";
        let settings = Settings::parse(url).unwrap();
        assert_eq!((settings.schema.as_str(), settings.listen, settings.migrate), ("blue", false, false));
        assert_eq!(settings.hosts.len(), 2);
        for (host, (name, port)) in settings.hosts.iter().zip([("a", 1), ("b", 2)]) {
            assert_eq!(host.get_hosts(), [Host::Tcp(name.to_owned())]);
            assert_eq!((host.get_ports(), host.get_user()), ([port].as_slice(), Some("me")));
            assert_eq!((host.get_ssl_mode(), host.get_dbname()), (SslMode::Require, Some("base")));
            assert_eq!(host.get_password(), Some(b"secret".as_slice()));
            assert_eq!(host.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        }
        let shown = format!("{settings:?}");
        assert!(!shown.contains("secret"), "{shown}");
        let settings = Settings::parse("postgres://h/?sslmode=verify-full&sslrootcert=%2Fca.pem").unwrap();
        assert_eq!(
            (settings.hosts[0].get_ssl_mode(), settings.roots.as_deref()),
            (SslMode::Require, Some("/ca.pem"))
        );
    }

    #[test]
    fn every_host_has_a_share_of_the_time() {
        let settings =
            Settings::parse("postgres://a,b/base?connect_timeout=1&options=-c%20geqo%3Doff").unwrap();
        assert!(settings.host_limit() * 2 < TIME_LIMIT);
        for host in &settings.hosts {
            assert_eq!(host.get_connect_timeout(), Some(&Duration::from_secs(1)), "the URL may say less");
            assert_eq!(host.get_options(), Some("-c geqo=off"));
        }
        let settings = Settings::parse("postgres://a/base?connect_timeout=60").unwrap();
        assert_eq!(settings.host_limit(), TIME_LIMIT);
        assert_eq!(settings.hosts[0].get_connect_timeout(), Some(&ADDRESS_LIMIT), "and not more");
    }

    #[test]
    fn hosts_and_ports_that_do_not_go_together_are_refused() {
        for url in ["postgres://a:1,b:2,c:3/?hostaddr=127.0.0.1", "postgres:///base"] {
            assert!(Settings::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_a_secret() {
        for query in ["schema=A", "schema=a;b", "schema=", "listen=maybe", "unknown=1", "sslmode=never"] {
            let error = Settings::parse(&format!("postgres://me:secret@h/?{query}")).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
