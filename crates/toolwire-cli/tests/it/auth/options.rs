//! The options of a login that answer what providers do differently: they work, and are kept for renewals.

use serde_json::{Value, json};

use super::world::{World, json_of};
use crate::{
    fake_web::{FakeWeb, response, server_at},
    home::Home,
    program::Ended,
};

fn code(ended: &Ended) -> i32 {
    ended.status.code().unwrap()
}

/// The login was made, and a command that has to renew it knows how.
fn renews(world: &World, variables: &[(&str, &str)]) {
    world.state().lasts = 3600;
    let ended = world.run_with(variables, &["call", &world.server, "whoami"]);
    assert_eq!((code(&ended), ended.stdout.trim()), (0, "alice"), "{ended:?}");
    assert_eq!(world.state().count("refresh_token"), 1);
}

#[test]
fn an_issuer_that_does_not_speak_of_pkce_is_trusted_to_know_it_when_one_says_so() {
    let world = World::new();
    (world.state().tells_pkce, world.state().lasts) = (false, 0);
    let ended = world.log_in(&[]);
    assert_eq!(code(&ended), 3, "{ended:?}");
    assert!(ended.stderr.contains("error[pkce-missing]"), "{}", ended.stderr);
    let issuer = world.issuer();
    assert_eq!(code(&world.log_in(&["--assume-pkce"])), 2, "for which issuer?");
    let ended = world.log_in(&["--issuer", "http://127.0.0.1:1", "--assume-pkce"]);
    assert_ne!(code(&ended), 0, "{ended:?}");
    let ended = world.log_in(&["--issuer", &issuer, "--assume-pkce"]);
    assert_eq!(code(&ended), 0, "{ended:?}");
    renews(&world, &[]);
}

#[test]
fn an_issuer_that_does_not_want_the_resource_is_not_told_it_when_one_says_so() {
    let world = World::new();
    (world.state().wants_resource, world.state().lasts) = (false, 0);
    let issuer = world.issuer();
    // The issuer itself asserts that it is told nothing, at the login and at the renewal.
    let ended = world.log_in(&["--issuer", &issuer, "--omit-resource"]);
    assert_eq!(code(&ended), 0, "{ended:?}");
    renews(&world, &[]);
}

#[test]
fn an_issuer_inside_the_network_without_tls_is_asked_when_one_says_so() {
    const INSIDE: &str = "http://login.internal:8080";
    let world = World::with_issuer(Some(INSIDE));
    world.state().lasts = 0;
    let proxy = world.issuer();
    let variables = [("BROWSER", world.browser()), ("http_proxy", &proxy), ("no_proxy", "127.0.0.1")];
    let login = ["login", &world.server, "--client", "by-hand", "--redirect", "http://127.0.0.1/callback"];
    let ended = world.run_with(&variables, &login);
    assert_eq!(code(&ended), 3, "{ended:?}");
    assert!(ended.stderr.contains("error[metadata-refused]"), "{}", ended.stderr);
    assert!(world.state().seen.is_empty(), "nobody was asked: {:?}", world.state().seen);
    let other = [&login[..], &["--trust-origin", "http://login.internal"]].concat();
    assert_eq!(code(&world.run_with(&variables, &other)), 3, "another port is another origin");
    let right = [&login[..], &["--trust-origin", INSIDE]].concat();
    let ended = world.run_with(&variables, &right);
    assert_eq!(code(&ended), 0, "{ended:?}");
    renews(&world, &variables);
}

/// A server of 2025-03-26, which is its own issuer and says nothing about it.
fn early() -> FakeWeb {
    let serve = server_at("/mcp");
    FakeWeb::start(move |asked| {
        let target = asked.line.split(' ').nth(1).unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let bearer = asked.head.to_lowercase().contains("authorization: bearer token-of-");
        Some(match path {
            "/mcp" if bearer => return serve(asked),
            "/mcp" => response("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", ""),
            "/register" => {
                let mut registered: Value = serde_json::from_str(&asked.body).unwrap();
                registered["client_id"] = "early".into();
                // Without metadata, clients authenticate by a secret.
                registered["client_secret"] = "secret-of-early".into();
                json_of("201 Created", &registered)
            }
            "/authorize" => {
                let asked: std::collections::HashMap<String, String> =
                    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
                assert_eq!(asked["code_challenge_method"], "S256");
                let location = format!("{}?code=c&state={}", asked["redirect_uri"], asked["state"]);
                response("302 Found", &format!("Location: {location}\r\n"), "")
            }
            "/token" => {
                json_of("200 OK", &json!({ "access_token": "token-of-alice", "token_type": "Bearer" }))
            }
            _ => response("404 Not Found", "", ""),
        })
    })
}

#[test]
fn a_server_of_2025_03_26_is_logged_in_to_when_one_says_that_it_is_one() {
    let _ports = super::login::ports();
    let (web, home) = (early(), Home::new());
    let url = web.url("/mcp");
    let folder = tempfile::tempdir().unwrap();
    let browser = super::person::browser(folder.path());
    let ended = home.run_with(&[("BROWSER", &browser)], &["login", &url]);
    assert_eq!(code(&ended), 3, "{ended:?}");
    assert!(ended.stderr.contains("error[resource-metadata-missing]"), "{}", ended.stderr);
    assert!(ended.stderr.contains("--early"), "{}", ended.stderr);
    let ended = home.run_with(&[("BROWSER", &browser)], &["login", &url, "--early"]);
    assert_eq!(code(&ended), 0, "{ended:?}");
    let ended = home.run(&["prompts", &url]);
    assert_eq!(code(&ended), 0, "{ended:?}");
    assert!(ended.stdout.contains("hello"), "{ended:?}");
}

#[test]
fn a_websocket_is_opened_with_the_login_of_its_server() {
    let world = World::new();
    let socket = world.server.replacen("http://", "ws://", 1);
    let ended = world.run(&["call", &socket, "whoami"]);
    assert_eq!(code(&ended), 3, "{ended:?}");
    assert!(ended.stderr.contains("error[auth-needed]"), "{}", ended.stderr);
    world.state().lasts = 0;
    assert_eq!(code(&world.log_in(&[])), 0);
    world.state().lasts = 3600;
    for _ in 0..2 {
        let ended = world.run(&["call", &socket, "whoami"]);
        assert_eq!((code(&ended), ended.stdout.trim()), (0, "alice"), "{ended:?}");
    }
    assert_eq!(world.state().count("refresh_token"), 1, "and renewed once");
}
