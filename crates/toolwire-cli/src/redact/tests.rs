//! What is hidden, and what stays.

use serde_json::json;

use super::*;
use crate::target::Remote;

fn redacted(mut of: Value) -> Value {
    message(&mut of);
    of
}

#[test]
fn values_with_secret_names_are_hidden_wherever_they_are() {
    for name in ["password", "API_KEY", "x-api-key", "accessToken", "Set-Cookie", "client_secret", "pass"] {
        let hidden = redacted(json!({"a": [{ name: "s3cret" }]}));
        assert_eq!(hidden, json!({"a": [{ name: REDACTED }]}), "{name}");
    }
    assert_eq!(redacted(json!({"pin": 1234, "tokens": ["a"]})), json!({"pin": REDACTED, "tokens": ["a"]}));
    let headers = json!([{"name": "Authorization", "value": "Basic xyz"}, {"name": "Accept", "value": "*"}]);
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
    let args = ["--token", "abc", "--api-key=abc", "KEY_SECRET=abc", "-y", "--header", "Authorization: x"];
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

#[test]
fn what_a_server_was_given_is_hidden_wherever_it_turns_up() {
    let command = Command {
        program: "npx".into(),
        args: [
            "--api-key",
            "arg-Secret-1",
            "--pass=arg-Secret-2",
            "ghp_0123456789abcdef",
            "postgres://me:pw-Secret-3@db/x?a=b",
        ]
        .map(str::to_owned)
        .to_vec(),
        env: vec![("API_TOKEN".into(), "env \"Secret\" 4".into()), ("MODE".into(), "verbose-mode".into())],
        directory: None,
    };
    learn(&Address::Command(command.clone()));
    learn(&Address::Http(Remote {
        url: "https://u:url-Secret-5@h/s/0123456789abcdef0123456789abcdef/mcp?key=url-Secret-6".into(),
        headers: vec![("Authorization".into(), "Bearer header-Secret-7".into())],
    }));
    let text = "`npx --api-key arg-Secret-1 --pass=arg-Secret-2 ghp_0123456789abcdef \"env \\\"Secret\\\" 4\"` verbose-mode \
                env \"Secret\" 4 pw-Secret-3 url-Secret-5 url-Secret-6 header-Secret-7 0123456789abcdef0123456789abcdef";
    let out = outgoing(text);
    assert!(!out.contains("Secret") && !out.contains("0123456789abcdef"), "{out}");
    assert!(out.contains("npx --api-key [redacted]") && out.contains("verbose-mode"), "{out}");
    assert!(!address(&Address::Command(command)).contains("Secret"));
}

#[test]
fn words_are_not_hidden_because_somebody_has_them_for_a_secret() {
    let env = [
        ("AUTH", "disabled"),
        ("TOKEN_URL", "https://example.com/oauth"),
        ("TOKEN_FILE", "/run/secrets/x"),
        ("PIN", "1234"),
        ("COOKIE_DOMAIN", "shop.example.com"),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    learn(&Address::Command(Command { program: "x".into(), args: Vec::new(), env, directory: None }));
    let text = "disabled https://example.com/oauth /run/secrets/x 1234 shop.example.com";
    assert_eq!(outgoing(text), text);
}

#[test]
fn an_address_has_no_tokens_in_its_path() {
    let shown = address_of("https://mcp.example.com/api/s/0123456789abcdef0123456789abcdef/mcp");
    assert_eq!(shown, "https://mcp.example.com/api/s/[redacted]/mcp");
    assert_eq!(
        address_of("https://example.com/some-rather-long-but-plain-name/v2/mcp"),
        "https://example.com/some-rather-long-but-plain-name/v2/mcp"
    );
}

#[test]
fn an_excerpt_of_a_broken_file_keeps_its_width_and_no_secrets() {
    for (line, expected) in [
        (r#"  "env": { "API_KEY": "abc" "x": 1 }"#, r#"  "env": { "API_KEY": "***" "x": 1 }"#),
        (r#""args": ["--token", "abc", "-y"]"#, r#""args": ["--token", "***", "-y"]"#),
        ("password = 'abc", "password = '***"),
        ("token: abc,", "token: ***,"),
        (r#""url": "https://me:pw@h/?t=1""#, r#""url": "********************""#),
        (r#""command": "npx" "args""#, r#""command": "npx" "args""#),
        (r#"{"a": "é", "\"": ["#, r#"{"a": "é", "\"": ["#),
    ] {
        assert_eq!(excerpt(line), expected);
        assert_eq!(excerpt(line).chars().count(), line.chars().count());
    }
}
