//! Where a server is and how it is reached.

use std::{fmt, path::PathBuf};

use serde_json::json;

use crate::{
    redact,
    terminal::{escape, is_unseen},
};

/// Where a server is and how it is reached.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// A program to be started, spoken to over its standard input and output.
    Command(Command),
    /// A URL that begins with `http:` or `https:`.
    Http(Remote),
    /// A URL that begins with `ws:` or `wss:`.
    WebSocket(Remote),
    /// The socket at this path of the file system.
    Unix(PathBuf),
}

/// A program to be started.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    /// Variables set in addition to those of this program.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) directory: Option<PathBuf>,
}

/// A server on the network.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Remote {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl Command {
    /// The command line as one would type it, with nothing left out.
    pub(crate) fn line(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.args);
        words.map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
    }
}

impl Address {
    /// The address that a word is, if it is one: a URL, or the path of a socket as `unix:PATH`.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        let remote = || Remote { url: word.to_owned(), headers: Vec::new() };
        match word.split_once(':')? {
            ("http" | "https", rest) if rest.starts_with("//") => Some(Self::Http(remote())),
            ("ws" | "wss", rest) if rest.starts_with("//") => Some(Self::WebSocket(remote())),
            ("unix", path) if !path.is_empty() => Some(Self::Unix(path.trim_start_matches("//").into())),
            _ => None,
        }
    }

    /// Whether something is sent that says who is calling.
    pub(crate) fn has_credentials(&self) -> bool {
        match self {
            Self::Http(remote) | Self::WebSocket(remote) => {
                remote.headers.iter().any(|(name, _)| redact::is_secret(name)) || remote.url.contains('@')
            }
            Self::Command(_) | Self::Unix(_) => false,
        }
    }

    /// The transport in one word, for tables.
    pub(crate) const fn transport(&self) -> &'static str {
        match self {
            Self::Command(_) => "stdio",
            Self::Http(_) => "http",
            Self::WebSocket(_) => "websocket",
            Self::Unix(_) => "unix",
        }
    }
}

/// The address without its secrets: no variables, headers, credentials or queries, and no tokens.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact::address(self))
    }
}

/// Secrets stay out of it, as they do of what people read.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// How a program should be configured of which the whole command line is in the place of its name.
pub(crate) fn whole_line(command: &Command) -> Option<String> {
    let mut words = command.program.split_whitespace();
    let program = words.next()?;
    let args: Vec<&str> = words.chain(command.args.iter().map(String::as_str)).collect();
    let several = command.program.trim().contains(char::is_whitespace);
    several.then(|| format!("\"command\": {}, \"args\": {}", json!(program), json!(args)))
}

/// A word as one would type it in a shell: on one line, with everything that could not be seen as an escape.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,~".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else if word.contains(is_unseen) {
        let mut quoted = "$'".to_owned();
        for c in word.chars() {
            match c {
                '\\' | '\'' => quoted.extend(['\\', c]),
                c if is_unseen(c) => escape(&mut quoted, c),
                c => quoted.push(c),
            }
        }
        quoted + "'"
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_sockets_are_addresses_and_names_are_not() {
        let transport = |word| Address::parse(word).map(|address| address.transport());
        assert_eq!(transport("http://127.0.0.1:3000/mcp"), Some("http"));
        assert_eq!(transport("wss://example.com"), Some("websocket"));
        assert_eq!(transport("unix:/run/x.sock"), Some("unix"));
        for name in ["github", "a:b", "http:", "c:/windows", "unix:", ""] {
            assert_eq!(transport(name), None, "{name}");
        }
    }

    #[test]
    fn a_command_line_in_the_place_of_a_program_is_taken_apart() {
        let of = |program: &str, args: &[&str]| {
            let args = args.iter().map(ToString::to_string).collect();
            whole_line(&Command { program: program.to_owned(), args, ..Command::default() })
        };
        assert_eq!(of("npx -y a", &["b"]).as_deref(), Some(r#""command": "npx", "args": ["-y","a","b"]"#));
        assert_eq!(of("npx", &["a b"]), None);
    }

    #[test]
    fn a_word_is_one_line_that_means_the_same() {
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word("# it's\n\\x\u{1b}\u{200b}"), r"$'# it\'s\n\\x\x1b\u200b'");
    }

    #[test]
    fn what_is_shown_has_no_secrets() {
        let shown = Address::parse("https://user:secret@host:1/path?key=secret#secret").unwrap().to_string();
        assert_eq!(shown, "https://host:1/path");
        let command = Command {
            program: "npx".into(),
            args: vec!["it's".into(), "-y".into()],
            env: vec![("TOKEN".into(), "secret".into())],
            directory: None,
        };
        assert_eq!(Address::Command(command).to_string(), r"npx 'it'\''s' -y");
    }
}
