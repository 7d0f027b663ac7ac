//! One server as a host describes it, and how it is reached.
//!
//! All hosts say nearly the same in nearly the same words, so every word is understood in every file. A value
//! of the wrong type is told with the path that leads to it, and never shown, because it may be a secret.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use super::{
    Host,
    variables::{Values, Variables},
};
use crate::{
    failure::{Code, Failure, Result},
    target::{Address, Command, Remote},
    terminal::printable_line,
};

/// The words for a URL, the most specific first.
const URLS: [&str; 3] = ["httpUrl", "serverUrl", "url"];
/// How large a file of variables may be.
const MAX_ENV_FILE_BYTES: u64 = 1024 * 1024;

/// Where an entry is and what its variables stand for.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) variables: Variables<'a>,
    pub(super) file: &'a Path,
    /// The path of keys, for messages.
    pub(super) path: String,
}

type Entry = Map<String, Value>;

impl Reader<'_> {
    /// Whether the host has been told not to use the server, as far as that can be understood.
    pub(super) fn is_disabled(value: &Value) -> bool {
        value["disabled"] == Value::Bool(true) || value["enabled"] == Value::Bool(false)
    }

    /// Whether a server is described by what is in the folder where it is started: its program, its own folder or its
    /// variables.
    pub(super) fn uses_folder(value: &Value) -> bool {
        let texts =
            |text: &str| ["${workspaceFolder", "${workspaceRoot"].iter().any(|word| text.contains(word));
        let beside = |text: &str| !text.starts_with(['/', '~', '$']) && !Path::new(text).is_absolute();
        match value {
            Value::String(text) => texts(text),
            Value::Array(items) => items.iter().any(Self::uses_folder),
            Value::Object(members) => members.iter().any(|(name, member)| {
                let relative = member.as_str().is_some_and(|text| match name.as_str() {
                    "command" | "path" => text.contains(['/', '\\']) && beside(text),
                    "cwd" | "envFile" => beside(text),
                    _ => false,
                });
                relative || Self::uses_folder(member)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// How the server with this name is reached.
    pub(super) fn address(&self, name: &str, value: &Value) -> Result<Address> {
        if !is_visible(name) {
            return Err(self.broken("", "a server needs a name of visible characters"));
        }
        let entry = value.as_object().ok_or_else(|| self.wrong("", "an object { } is", value))?;
        for flag in ["disabled", "enabled"] {
            if let Some(value) = entry.get(flag).filter(|value| !value.is_boolean() && !value.is_null()) {
                return Err(self.wrong(flag, "true or false is", value));
            }
        }
        let remote = self.is_remote(entry)?;
        let url = URLS.into_iter().find(|word| present(entry, word).is_some());
        let command = present(entry, "command").is_some();
        match (remote, url, command) {
            (Some(true) | None, Some(word), false) | (Some(true), Some(word), true) => {
                self.remote(entry, word)
            }
            (Some(false) | None, None, true) | (Some(false), Some(_), true) => self.command(entry),
            (None, Some(word), true) => Err(self.broken(
                "",
                &format!("has both \"command\" and \"{word}\"; \"type\" could say which is meant"),
            )),
            (Some(true), None, _) => Err(self.broken("", "has no \"url\", which its \"type\" needs")),
            (Some(false), _, false) => Err(self.broken("", "has no \"command\", which its \"type\" needs")),
            (None, None, false) if self.variables.host == Host::Zed => {
                Err(self.broken("", "belongs to an extension, which only Zed can start"))
            }
            (None, None, false) => Err(self.broken("", "has neither \"command\" nor \"url\"")),
        }
    }

    /// What the type says about the transport, if there is one.
    fn is_remote(&self, entry: &Entry) -> Result<Option<bool>> {
        for word in ["type", "transport"] {
            let Some(kind) = self.text(entry, word)? else { continue };
            return match kind.to_ascii_lowercase().as_str() {
                "stdio" | "local" => Ok(Some(false)),
                "http" | "sse" | "streamable-http" | "streamablehttp" | "streamable_http" | "remote"
                | "ws" | "websocket" => Ok(Some(true)),
                _ => Err(self.broken(word, "is none of stdio, http, sse and streamable-http")),
            };
        }
        Ok(None)
    }

    fn command(&self, entry: &Entry) -> Result<Address> {
        // Zed used to put all of it below the command.
        let nested = entry.get("command").and_then(Value::as_object);
        let (program, entry) = match nested {
            Some(inner) => (self.text(inner, "path")?, inner),
            None => (self.text(entry, "command")?, entry),
        };
        let program = program.filter(|program| !program.trim().is_empty());
        let program = program.ok_or_else(|| self.broken("command", "is empty"))?;
        let mut env = match self.text(entry, "envFile")? {
            Some(file) => self.env_file(&file)?,
            None => Vec::new(),
        };
        env.extend(self.pairs(entry, "env")?);
        let directory = self.text(entry, "cwd")?.map(|cwd| self.variables.folder.join(cwd));
        Ok(Address::Command(Command { program, args: self.list(entry, "args")?, env, directory }))
    }

    fn remote(&self, entry: &Entry, word: &str) -> Result<Address> {
        let url = self.text(entry, word)?.unwrap_or_default();
        let mut headers = self.pairs(entry, "headers")?;
        headers.extend(self.pairs(entry, "http_headers")?);
        for (name, variable) in self.pairs(entry, "env_http_headers")? {
            headers.push((name, self.variable("env_http_headers", &variable)?));
        }
        if let Some(variable) = self.text(entry, "bearer_token_env_var")? {
            let token = self.variable("bearer_token_env_var", &variable)?;
            headers.push(("authorization".to_owned(), format!("Bearer {token}")));
        }
        if let Values::Noted(_) = self.variables.values {
            // What it begins with may be in a variable, which is not looked at here.
            return Ok(Address::Http(Remote { url, headers }));
        }
        match Address::parse(&url) {
            Some(Address::Http(Remote { url, .. })) => Ok(Address::Http(Remote { url, headers })),
            Some(Address::WebSocket(Remote { url, .. })) => Ok(Address::WebSocket(Remote { url, headers })),
            _ => Err(self.broken(word, "is not a URL that begins with http:// or https://")),
        }
    }

    fn text(&self, entry: &Entry, word: &str) -> Result<Option<String>> {
        match present(entry, word) {
            None => Ok(None),
            Some(Value::String(text)) => self.expand(word, text).map(Some),
            Some(other) => Err(self.wrong(word, "text in \"quotes\" is", other)),
        }
    }

    fn list(&self, entry: &Entry, word: &str) -> Result<Vec<String>> {
        let Some(value) = present(entry, word) else { return Ok(Vec::new()) };
        let list = value.as_array().ok_or_else(|| self.wrong(word, "a list [\"…\"] is", value))?;
        let item = |(index, value): (usize, &Value)| {
            let place = format!("{word}[{index}]");
            match value {
                Value::String(text) => self.expand(&place, text),
                other => Err(self.wrong(&place, "text in \"quotes\" is", other)),
            }
        };
        list.iter().enumerate().map(item).collect()
    }

    fn pairs(&self, entry: &Entry, word: &str) -> Result<Vec<(String, String)>> {
        let Some(value) = present(entry, word) else { return Ok(Vec::new()) };
        let pairs =
            value.as_object().ok_or_else(|| self.wrong(word, "an object {\"NAME\": \"value\"} is", value))?;
        let pair = |(name, value): (&String, &Value)| {
            let place = format!("{word}.{name}");
            match value {
                Value::String(text) => Ok(Some((name.clone(), self.expand(&place, text)?))),
                // VS Code allows these two.
                Value::Number(number) if self.variables.host == Host::VsCode => {
                    Ok(Some((name.clone(), number.to_string())))
                }
                Value::Null if self.variables.host == Host::VsCode => Ok(None),
                other => Err(self.wrong(&place, "text in \"quotes\" is", other)),
            }
        };
        pairs.iter().map(pair).filter_map(Result::transpose).collect()
    }

    /// The variables in a file of lines such as `NAME=value`.
    fn env_file(&self, file: &str) -> Result<Vec<(String, String)>> {
        if let Values::Noted(wants) = self.variables.values {
            wants.borrow_mut().files.insert(file.to_owned());
            return Ok(Vec::new());
        }
        let path: PathBuf = self.variables.folder.join(file);
        let cannot = |why: &str| self.broken("envFile", &format!("{} {why}", path.display()));
        match std::fs::metadata(&path) {
            Ok(metadata) if !metadata.is_file() => return Err(cannot("is not a file")),
            Ok(metadata) if metadata.len() > MAX_ENV_FILE_BYTES => {
                return Err(cannot("is larger than 1 MiB"));
            }
            _ => {}
        }
        let text =
            std::fs::read_to_string(&path).map_err(|error| cannot(&format!("cannot be read: {error}")))?;
        let pair = |line: &str| {
            let line = line.trim();
            let line = line.strip_prefix("export ").unwrap_or(line);
            let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
            let value = value.trim();
            let unquoted = |quote| value.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
            let value = unquoted('"').or_else(|| unquoted('\'')).unwrap_or(value);
            Some((name.trim().to_owned(), value.to_owned()))
        };
        Ok(text.lines().filter_map(pair).collect())
    }

    fn variable(&self, place: &str, name: &str) -> Result<String> {
        let value = self.variables.variable(name).map(Cow::into_owned);
        value.map_err(|unknown| self.broken(place, &unknown.what).hint(printable_line(&unknown.hint)))
    }

    fn expand(&self, place: &str, text: &str) -> Result<String> {
        let expanded = self.variables.expand(text);
        expanded.map_err(|unknown| self.broken(place, &unknown.what).hint(printable_line(&unknown.hint)))
    }

    fn wrong(&self, place: &str, wanted: &str, value: &Value) -> Failure {
        let is = match value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        self.broken(place, &format!("{wanted} wanted here, and this is {is}"))
    }

    fn broken(&self, place: &str, what: &str) -> Failure {
        let dot = if place.is_empty() { "" } else { "." };
        let path = printable_line(&format!("{}{dot}{place}", self.path));
        let separator = if what.starts_with("has ") || what.starts_with("is ") || what.starts_with("belongs ")
        {
            ""
        } else {
            ":"
        };
        // Names and variables of a file may be anything, and this is one line.
        let text = printable_line(&format!("{}: {path}{separator} {what}", self.file.display()));
        let failure = Failure::new(Code::ConfigBroken, text);
        failure.data(serde_json::json!({ "file": self.file, "path": path }))
    }
}

/// Whether a name can be seen as it is, and typed. One that cannot is refused, and shown with escapes.
pub(super) fn is_visible(name: &str) -> bool {
    !name.trim().is_empty() && printable_line(name) == name
}

/// A value that is there and not null.
fn present<'a>(entry: &'a Entry, word: &str) -> Option<&'a Value> {
    entry.get(word).filter(|value| !value.is_null())
}
