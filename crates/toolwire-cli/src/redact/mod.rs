//! Taking secrets out of everything that leaves this program: what it prints, and what it writes down.
//!
//! There are two ways. [`known`] knows the values that configurations and command lines have given to servers, and
//! hides them wherever they turn up: in what servers write, in what transports say, in JSON. Everything that is printed
//! passes [`outgoing`]. The other way goes by [`names`] and shapes, for what nobody has told this program: the members
//! of messages in a trace, a token in a URL, the excerpt of a file that cannot be read.
//!
//! It is a good habit and no proof: a secret that is neither configured nor called one stays. So do bytes that a
//! server returns and that are saved or piped, because changing them would damage them.

mod excerpt;
mod known;
mod names;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::{
    target::{Address, Command, shell_word},
    terminal::printable_line,
};

pub(crate) use excerpt::excerpt;
pub(crate) use known::{learn, learn_environment, learn_server, outgoing, remember_variable};
pub(crate) use names::is_secret;
use names::{is_placeholder, is_token};

/// What stands in the place of a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// How deep JSON inside of texts inside of JSON is looked at.
const MAX_TEXT_DEPTH: usize = 2;
/// How long the word after `Bearer` must be to be taken for a token.
const MIN_TOKEN_CHARS: usize = 8;

/// Takes the secrets out of a message.
pub(crate) fn message(message: &mut Value) {
    value(message, 0);
}

/// A sentence about what went wrong, without secrets: it may tell what a program has written, or a URL.
pub(crate) fn sentence(sentence: &str) -> String {
    let sentence = outgoing(sentence);
    text(&sentence, 0).into_owned()
}

fn value(of: &mut Value, depth: usize) {
    match of {
        Value::String(string) => {
            if let Cow::Owned(redacted) = text(string, depth) {
                *string = redacted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| value(item, depth)),
        Value::Object(members) => object(members, depth),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn object(members: &mut Map<String, Value>, depth: usize) {
    // A page that a person is sent to: whoever has the whole address may be taken for that person.
    if members.get("mode").is_some_and(|mode| mode == "url")
        && let Some(Value::String(url)) = members.get_mut("url")
    {
        *url = address_of(url);
    }
    // A header or variable that is written as a pair.
    let named =
        ["name", "key"].iter().any(|name| members.get(*name).and_then(Value::as_str).is_some_and(is_secret));
    for (name, member) in members.iter_mut() {
        if is_secret(name) || (named && name == "value") {
            hide(member, depth);
        } else {
            value(member, depth);
        }
    }
}

/// Hides a value. What is inside of an object has names of its own: a schema describes a password, and is none.
fn hide(of: &mut Value, depth: usize) {
    match of {
        Value::String(_) | Value::Number(_) => *of = REDACTED.into(),
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, depth)),
        Value::Object(members) => object(members, depth),
        Value::Null | Value::Bool(_) => {}
    }
}

/// A text without the secrets in it; borrowed if there are none.
fn text(string: &str, depth: usize) -> Cow<'_, str> {
    if depth < MAX_TEXT_DEPTH
        && string.starts_with(['{', '['])
        && let Ok(mut inner) = serde_json::from_str::<Value>(string)
    {
        let before = inner.clone();
        value(&mut inner, depth + 1);
        return if inner == before { string.into() } else { inner.to_string().into() };
    }
    let words: Vec<&str> = string.split_inclusive(char::is_whitespace).collect();
    let mut changed = false;
    let mut bearer = false;
    let mut redacted = String::new();
    for word in words {
        let bare = word.trim_end();
        let space = word.get(bare.len()..).unwrap_or_default();
        // A server that asks for a token names parameters after the word.
        let token = bearer && bare.chars().count() >= MIN_TOKEN_CHARS && !bare.contains("=\"");
        let new = if token { REDACTED.into() } else { url(bare) };
        changed |= matches!(new, Cow::Owned(_)) || new != bare;
        bearer = bare.trim_start_matches(['"', '\'']).eq_ignore_ascii_case("bearer");
        redacted.push_str(&new);
        redacted.push_str(space);
    }
    if changed { redacted.into() } else { string.into() }
}

/// A URL without credentials, and without the values of parameters that are secret.
fn url(word: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = word.split_once("://") else { return word.into() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let Some((path, query)) = path.split_once('?') else {
        let same = host == authority;
        return if same { word.into() } else { format!("{scheme}://{host}{path}").into() };
    };
    let pairs: Vec<Cow<'_, str>> = query.split('&').map(|pair| assignment(pair, '=')).collect();
    let same = host == authority && pairs.iter().all(|pair| matches!(pair, Cow::Borrowed(_)));
    if same { word.into() } else { format!("{scheme}://{host}{path}?{}", pairs.join("&")).into() }
}

/// `NAME=value` without the value, if the name is that of a secret.
fn assignment(word: &str, sign: char) -> Cow<'_, str> {
    match word.split_once(sign).filter(|_| !word.starts_with("${")) {
        Some((name, value))
            if (is_secret(name) || is_token(value)) && !value.is_empty() && !is_placeholder(value) =>
        {
            format!("{name}{sign}{REDACTED}").into()
        }
        _ => word.into(),
    }
}

/// Whether the value of a variable or header looks like a secret.
pub(crate) fn is_hidden_pair(name: &str, value: &str) -> bool {
    (is_secret(name) || is_token(value)) && !is_placeholder(value)
}

/// Where a server is, without secrets.
pub(crate) fn address(address: &Address) -> String {
    match address {
        Address::Command(command) => command_line(command),
        Address::Http(remote) | Address::WebSocket(remote) => printable_line(&address_of(&remote.url)),
        Address::Unix(path) => printable_line(&format!("unix:{}", path.display())),
    }
}

/// A URL without credentials, query and fragment, and without tokens in its path, as some services have them.
pub(crate) fn address_of(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("//") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let segments = path.split('/').map(|segment| if is_token(segment) { REDACTED } else { segment });
    format!("{scheme}//{host}{}", segments.collect::<Vec<_>>().join("/"))
}

fn command_line(command: &Command) -> String {
    let mut words = vec![shell_word(&command.program)];
    let mut secret_follows = false;
    for arg in &command.args {
        let flag = arg.starts_with('-') && !arg.contains(['=', ' ']);
        let word: Cow<'_, str> = if (secret_follows && !flag && !is_placeholder(arg)) || is_token(arg) {
            REDACTED.into()
        } else if let hidden @ Cow::Owned(_) = assignment(arg, '=') {
            hidden
        } else if arg.contains("://") {
            url(arg)
        } else if let hidden @ Cow::Owned(_) = assignment(arg, ':') {
            hidden
        } else {
            text(arg, 0)
        };
        words.push(if word == REDACTED { REDACTED.to_owned() } else { shell_word(&outgoing(&word)) });
        secret_follows = flag && is_secret(arg);
    }
    words.join(" ")
}
