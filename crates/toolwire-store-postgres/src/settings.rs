//! What a URL says about where Postgres is. No error repeats the URL, because there may be a password in it.

use std::fmt;

use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use crate::TIME_LIMIT;

/// The schema that everything is in unless somebody says otherwise.
const SCHEMA: &str = "toolwire";

/// Postgres cuts longer names off.
const MAX_SCHEMA_BYTES: usize = 60;

/// Where Postgres is, and how to use it.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) config: Config,
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
            .field("hosts", &self.config.get_hosts())
            .field("ports", &self.config.get_ports())
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
        let milliseconds = TIME_LIMIT.as_millis();
        config.connect_timeout(TIME_LIMIT);
        config.application_name("toolwire");
        // What the URL says as well is given up for this: a statement that never ends would hold its connection.
        config.options(format!(
            "-c search_path={schema} -c statement_timeout={milliseconds} -c lock_timeout={milliseconds} \
             -c default_transaction_isolation=read\\ committed"
        ));
        Ok(Self { config, schema, migrate, listen, roots })
    }
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
        assert_eq!(settings.config.get_hosts().len(), 2);
        assert_eq!(settings.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(settings.config.get_dbname(), Some("base"));
        let shown = format!("{settings:?}");
        assert!(!shown.contains("secret"), "{shown}");
        let settings = Settings::parse("postgres://h/?sslmode=verify-full&sslrootcert=%2Fca.pem").unwrap();
        assert_eq!(
            (settings.config.get_ssl_mode(), settings.roots.as_deref()),
            (SslMode::Require, Some("/ca.pem"))
        );
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_a_secret() {
        for query in ["schema=A", "schema=a;b", "schema=", "listen=maybe", "unknown=1", "sslmode=never"] {
            let error = Settings::parse(&format!("postgres://me:secret@h/?{query}")).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
