//! What a URL says about where Redis is and how to talk to it.
//!
//! No error repeats the URL, because there may be a password in it.

use std::fmt;

use percent_encoding::percent_decode_str;
use redis::RedisConnectionInfo;

/// The port that servers listen on unless somebody says otherwise.
const PORT: u16 = 6379;

/// How the keys of a store begin that was given no name.
const NAME: &str = "toolwire";

/// A name is part of every key.
const MAX_NAME_BYTES: usize = 64;

/// How many hosts a URL may name: the nodes of a cluster, or a primary and its replicas.
const MAX_HOSTS: usize = 64;

/// Where Redis is, and how to talk to it.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) hosts: Vec<Host>,
    pub(crate) login: RedisConnectionInfo,
    /// Whether connections are encrypted, and which certificates are trusted besides those of the system.
    pub(crate) tls: Option<Trust>,
    /// What every key begins with. Its part in braces makes a cluster keep all of them in one place.
    pub(crate) prefix: String,
}

/// Which certificates are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trust {
    /// A file with certificates that are trusted besides those of the system.
    pub(crate) file: Option<String>,
}

/// One place where Redis may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]:{}", self.name, self.port)
        } else {
            write!(f, "{}:{}", self.name, self.port)
        }
    }
}

/// Shows where it is and nothing of who logs in.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("hosts", &self.hosts)
            .field("prefix", &self.prefix)
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// Reads `redis://[user[:password]@]host[:port][,host[:port]…][/database][?name=NAME]`, or the same with `rediss` and
    /// `ca=FILE`.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) =
            url.split_once("://").ok_or("the URL of Redis begins with redis:// or rediss://")?;
        let mut tls = match scheme {
            "redis" => None,
            "rediss" => Some(Trust { file: None }),
            _ => return Err("the URL of Redis begins with redis:// or rediss://".to_owned()),
        };
        if rest.contains('#') {
            return Err("the URL of Redis has a `#`: write it as %23".to_owned());
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let mut name = NAME.to_owned();
        for (key, value) in pairs(query)? {
            match (key, tls.as_mut()) {
                ("name", _) => name = value,
                ("ca", Some(trust)) => trust.file = Some(value),
                ("ca", None) => return Err("`ca` is for rediss:// only".to_owned()),
                _ => {
                    return Err(
                        "the URL of Redis takes `name` and, with rediss://, `ca` after the `?`".to_owned()
                    );
                }
            }
        }
        let login = login(user)?.set_db(number(database)?);
        Ok(Self { hosts: parse_hosts(hosts)?, login, tls, prefix: prefix(&name)? })
    }
}

fn pairs(query: &str) -> Result<Vec<(&str, String)>, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(key, value)| Ok((key, decode(value)?)))
        .collect()
}

fn decode(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| "the URL of Redis is not UTF-8 once it is decoded".to_owned())
}

fn login(user: &str) -> Result<RedisConnectionInfo, String> {
    let info = RedisConnectionInfo::default().set_lib_name("toolwire", env!("CARGO_PKG_VERSION"));
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let info = if name.is_empty() { info } else { info.set_username(decode(name)?) };
    Ok(if password.is_empty() { info } else { info.set_password(decode(password)?) })
}

fn number(database: &str) -> Result<i64, String> {
    if database.is_empty() {
        return Ok(0);
    }
    let number = database
        .parse::<u16>()
        .map_err(|_| "the path in the URL of Redis is the number of a database, such as /0");
    Ok(number?.into())
}

/// Names with other characters would be read as something else by whoever looks at the keys.
fn prefix(name: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(is_plain) {
        return Err(format!("`name` has 1 to {MAX_NAME_BYTES} letters, digits, `-`, `_` and `.`"));
    }
    Ok(format!("tw:{{{name}}}:"))
}

fn parse_hosts(text: &str) -> Result<Vec<Host>, String> {
    let hosts = text.split(',').map(host).collect::<Result<Vec<_>, _>>()?;
    if hosts.len() > MAX_HOSTS {
        return Err(format!("the URL of Redis names more than {MAX_HOSTS} hosts"));
    }
    Ok(hosts)
}

fn host(text: &str) -> Result<Host, String> {
    let wrong = || "the URL of Redis has no host, or one that cannot be read".to_owned();
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']').ok_or_else(wrong)?;
            (address, if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or_else(wrong)?) })
        }
        None => text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port))),
    };
    if name.is_empty() {
        return Err(wrong());
    }
    let port =
        port.map_or(Ok(PORT), |port| port.parse().map_err(|_| "a port in the URL of Redis is not a number"))?;
    Ok(Host { name: decode(name)?, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Settings {
        Settings::parse(url).unwrap()
    }

    #[test]
    fn a_url_says_where_and_as_whom() {
        let settings = parsed("redis://localhost");
        assert_eq!(settings.hosts, [Host { name: "localhost".to_owned(), port: 6379 }]);
        assert_eq!(
            (settings.login.username(), settings.login.password(), settings.login.db()),
            (None, None, 0)
        );
        assert_eq!((settings.prefix.as_str(), settings.tls), ("tw:{toolwire}:", None));
        let settings = parsed("rediss://me:p%40ss@[::1]:7000,b:7001,c/3?name=blue&ca=/etc/ca.pem");
        assert_eq!(
            settings.hosts.iter().map(Host::to_string).collect::<Vec<_>>(),
            ["[::1]:7000", "b:7001", "c:6379"]
        );
        assert_eq!((settings.login.username(), settings.login.password()), (Some("me"), Some("p@ss")));
        assert_eq!((settings.login.db(), settings.prefix.as_str()), (3, "tw:{blue}:"));
        assert_eq!(settings.tls, Some(Trust { file: Some("/etc/ca.pem".to_owned()) }));
        assert_eq!(parsed("redis://:secret@h").login.password(), Some("secret"));
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_a_secret() {
        for url in [
            "localhost",
            "http://:secret@h",
            "redis://:secret@",
            "redis://:secret@h:port",
            "redis://:secret@[::1",
            "redis://:secret@[::1]7",
            "redis://:secret@h/name",
            "redis://:secret@h/70000",
            "redis://:secret@h?name=a{b}",
            "redis://:secret@h?name=",
            "redis://:secret@h?ca=x",
            "redis://:secret@h?timeout=1",
            "redis://:secret%ff@h",
            "redis://:secret#@h",
        ] {
            let error = Settings::parse(url).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
        let many = format!("redis://{}h", "h,".repeat(MAX_HOSTS));
        assert!(Settings::parse(&many).is_err());
    }

    #[test]
    fn nobody_sees_the_password() {
        let shown = format!("{:?}", parsed("redis://me:secret@h"));
        assert!(!shown.contains("secret") && shown.contains('h'), "{shown}");
    }
}
