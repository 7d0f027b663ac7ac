//! The secrets that were given to servers, by their values.

use std::{
    borrow::Cow,
    sync::{Mutex, PoisonError},
};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::Value;

use super::{
    REDACTED,
    names::{is_description, is_secret, is_token},
};
use crate::target::Address;

/// How many secrets are known. Should there ever be more, nothing is printed any more, because it cannot be checked.
const MAX_SECRETS: usize = 100_000;
/// A secret that is shorter is hidden where it is known to be one, and not wherever the same letters turn up.
const MIN_CHARS: usize = 8;
/// How long a secret of nothing but small letters, or digits, must be: there are words like that.
const MIN_PLAIN_CHARS: usize = 16;
/// How long a line of a secret of several lines must be to be a secret by itself.
const MIN_LINE_CHARS: usize = 16;

/// All of them, the longest first: one may be a part of another.
static SECRETS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A text in which no known secret is left.
pub(crate) fn outgoing(text: &str) -> Cow<'_, str> {
    let secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    if secrets.len() >= MAX_SECRETS {
        return REDACTED.into();
    }
    let mut text = Cow::Borrowed(text);
    for secret in secrets.iter() {
        if text.contains(secret.as_str()) {
            text = text.replace(secret.as_str(), REDACTED).into();
        }
    }
    text
}

/// Learns the secrets in the address of a server, with everything filled in.
pub(crate) fn learn(address: &Address) {
    match address {
        Address::Command(command) => {
            arguments(command.args.iter().map(String::as_str));
            command.env.iter().for_each(|(name, value)| pair(name, value));
        }
        Address::Http(remote) | Address::WebSocket(remote) => {
            url(&remote.url);
            remote.headers.iter().for_each(|(name, value)| pair(name, value));
        }
        Address::Unix(_) => {}
    }
}

/// Learns the secrets in the description of a server, as it is written in a file.
pub(crate) fn learn_server(server: &Value) {
    match server {
        Value::String(text) => url(text),
        Value::Array(items) => {
            arguments(items.iter().filter_map(Value::as_str));
            items.iter().filter(|item| !item.is_string()).for_each(learn_server);
        }
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) => pair(name, text),
                    other => learn_server(other),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Learns the secrets in the environment, which every program that is started inherits.
pub(crate) fn learn_environment() {
    for (name, value) in std::env::vars_os() {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
            pair(name, value);
        }
    }
}

/// Learns the value of a variable that was put into a text.
pub(crate) fn remember_variable(name: &str, value: &str) {
    pair(name, value);
}

/// The arguments of a program: `--token x`, `--token=x`, `TOKEN=x`, `Authorization: x`, addresses and tokens.
fn arguments<'a>(args: impl Iterator<Item = &'a str>) {
    let mut secret_follows = false;
    for arg in args {
        let flag = arg.starts_with('-') && !arg.contains(['=', ' ']);
        if secret_follows && !flag {
            remember(arg);
        }
        match arg.split_once(['=', ':']) {
            Some((name, value)) if !arg.contains("://") || arg.find("://") > arg.find('=') => {
                pair(name, value.trim());
            }
            _ => pair("", arg),
        }
        secret_follows = flag && is_secret(arg);
    }
}

/// A value with its name.
fn pair(name: &str, value: &str) {
    if value.contains("://") {
        url(value);
    } else if (is_secret(name) && !is_description(name)) || is_token(value) {
        remember(value);
    }
    // The scheme of a header is none of the secret.
    if let Some((scheme, token)) = value.split_once(' ')
        && ["bearer", "basic", "token"].contains(&scheme.to_ascii_lowercase().as_str())
    {
        remember(token.trim());
    }
}

/// The credentials, parameters and tokens of a URL.
fn url(url: &str) {
    let Some((_, rest)) = url.split_once("://") else { return };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if let Some((credentials, _)) = authority.rsplit_once('@') {
        // As it is sent.
        remember(&BASE64_STANDARD.encode(credentials));
        remember(credentials.split_once(':').map_or(credentials, |(_, password)| password));
    }
    let (path, query) = rest.split_once(['?', '#']).unwrap_or((rest, ""));
    path.split('/').filter(|segment| is_token(segment)).for_each(remember);
    for pair in query.split(['&', '#']) {
        match pair.split_once('=') {
            Some((name, value)) if is_secret(name) || name.eq_ignore_ascii_case("key") || is_token(value) => {
                remember(value);
            }
            _ => {}
        }
    }
}

/// Remembers a value, unless hiding it everywhere would hide more than the secret.
fn remember(value: &str) {
    let value = value.trim();
    let plain = value.bytes().all(|byte| byte.is_ascii_lowercase())
        || value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let least = if plain { MIN_PLAIN_CHARS } else { MIN_CHARS };
    // What is yet to be filled in is no secret, and neither is where one is.
    let elsewhere = value.starts_with("${") || value.starts_with('/') || value.contains("://");
    if value.chars().count() < least || elsewhere || REDACTED.contains(value) {
        return;
    }
    let escaped = serde_json::to_string(value).unwrap_or_default();
    let escaped = escaped.trim_matches('"').to_owned();
    let lines = value.lines().filter(|line| value.contains('\n') && line.trim().len() >= MIN_LINE_CHARS);
    let mut secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    for secret in [value.to_owned(), escaped].into_iter().chain(lines.map(|line| line.trim().to_owned())) {
        let at = secrets.partition_point(|known| known.len() > secret.len());
        let alike = secrets.iter().skip(at).take_while(|known| known.len() == secret.len());
        if !alike.into_iter().any(|known| *known == secret) && secrets.len() < MAX_SECRETS {
            secrets.insert(at, secret);
        }
    }
}
