//! Taking secrets out of what is written down.
//!
//! It goes by names and by shapes, so it is a good habit and no proof: a secret in the middle of a sentence stays.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::target::{Address, Command, shell_word, without_secrets};

/// What stands in the place of a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// How deep JSON inside of texts inside of JSON is looked at.
const MAX_TEXT_DEPTH: usize = 2;
/// How long the word after `Bearer` must be to be taken for a token.
const MIN_TOKEN_CHARS: usize = 8;

/// Parts of names that say that the value is a secret; compared without case, `-` and `_`.
const SECRET_PARTS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "privatekey",
    "accesskey",
    "bearer",
];
/// Whole names that say so.
const SECRET_NAMES: [&str; 5] = ["pass", "pwd", "auth", "pin", "signature"];
/// Names that only look like it.
const HARMLESS: [&str; 1] = ["progresstoken"];

/// Takes the secrets out of a message.
pub(crate) fn message(message: &mut Value) {
    value(message, 0);
}

/// A sentence about what went wrong, without secrets: it may tell what a program has written, or a URL.
pub(crate) fn sentence(sentence: &str) -> String {
    text(sentence, 0).into_owned()
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
        *url = without_secrets(url);
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

pub(crate) fn is_secret(name: &str) -> bool {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    // `maxTokens` and its like count words.
    !HARMLESS.contains(&plain.as_str())
        && !plain.ends_with("tokens")
        && (SECRET_NAMES.contains(&plain.as_str()) || SECRET_PARTS.iter().any(|part| plain.contains(part)))
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
        let new = if bearer && bare.chars().count() >= MIN_TOKEN_CHARS { REDACTED.into() } else { url(bare) };
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
    match word.split_once(sign) {
        Some((name, value)) if is_secret(name) && !value.is_empty() => {
            format!("{name}{sign}{REDACTED}").into()
        }
        _ => word.into(),
    }
}

/// Where a server is, without secrets.
pub(crate) fn address(address: &Address) -> String {
    match address {
        Address::Command(command) => command_line(command),
        other => other.to_string(),
    }
}

fn command_line(command: &Command) -> String {
    let mut words = vec![shell_word(&command.program)];
    let mut secret_follows = false;
    for arg in &command.args {
        let flag = arg.starts_with('-') && !arg.contains(['=', ' ']);
        let word: Cow<'_, str> = if secret_follows && !flag {
            REDACTED.into()
        } else if arg.contains("://") {
            url(arg)
        } else if let hidden @ Cow::Owned(_) = assignment(arg, '=') {
            hidden
        } else if let hidden @ Cow::Owned(_) = assignment(arg, ':') {
            hidden
        } else {
            text(arg, 0)
        };
        words.push(if word == REDACTED { REDACTED.to_owned() } else { shell_word(&word) });
        secret_follows = flag && is_secret(arg);
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn redacted(mut of: Value) -> Value {
        message(&mut of);
        of
    }

    #[test]
    fn values_with_secret_names_are_hidden_wherever_they_are() {
        for name in ["password", "API_KEY", "x-api-key", "accessToken", "Set-Cookie", "client_secret", "pass"]
        {
            let hidden = redacted(json!({"a": [{ name: "s3cret" }]}));
            assert_eq!(hidden, json!({"a": [{ name: REDACTED }]}), "{name}");
        }
        assert_eq!(
            redacted(json!({"pin": 1234, "tokens": ["a"]})),
            json!({"pin": REDACTED, "tokens": ["a"]})
        );
        let headers =
            json!([{"name": "Authorization", "value": "Basic xyz"}, {"name": "Accept", "value": "*"}]);
        assert_eq!(redacted(headers)[0]["value"], REDACTED);
        // A tool that gives its data as text as well.
        let text = json!({"type": "text", "text": "{\"token\":\"s3cret\"}"});
        assert_eq!(redacted(text)["text"], "{\"token\":\"[redacted]\"}");
    }

    #[test]
    fn what_only_looks_secret_stays() {
        for harmless in [
            json!({"progressToken": "p", "maxTokens": 100, "requestState": "sealed", "author": "A"}),
            json!({"properties": {"password": {"type": "string", "description": "The password."}}}),
            json!({"text": "the bearer of news", "url": "https://x/?page=2", "token": null, "keys": ["a"]}),
            json!({"text": "{\"a\": 1.0}"}),
        ] {
            assert_eq!(redacted(harmless.clone()), harmless);
        }
    }

    #[test]
    fn tokens_and_addresses_in_texts_are_hidden() {
        for (text, expected) in [
            ("Authorization: Bearer abcdefghij\n", "Authorization: Bearer [redacted]\n"),
            ("see https://me:pw@host/x now", "see https://host/x now"),
            ("https://host/x?a=1&token=abc", "https://host/x?a=1&token=[redacted]"),
        ] {
            assert_eq!(redacted(json!(text)), expected);
        }
        let page = json!({"mode": "url", "url": "https://me@host/pay?session=1", "message": "pay"});
        assert_eq!(redacted(page)["url"], "https://host/pay");
    }

    #[test]
    fn a_command_line_is_shown_without_its_secrets() {
        let args =
            ["--token", "abc", "--api-key=abc", "KEY_SECRET=abc", "-y", "--header", "Authorization: x"];
        let command = Command {
            program: "npx".into(),
            args: args.map(str::to_owned).to_vec(),
            env: vec![("TOKEN".into(), "abc".into())],
            directory: None,
        };
        let shown = address(&Address::Command(command));
        let expected = "npx --token [redacted] '--api-key=[redacted]' 'KEY_SECRET=[redacted]' -y --header \
                        'Authorization:[redacted]'";
        assert_eq!(shown, expected);
    }
}
