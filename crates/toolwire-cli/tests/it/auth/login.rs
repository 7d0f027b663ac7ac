//! Logging in and out, and what the other commands make of it.

use std::{
    io::Write,
    process::Stdio,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;

use super::{person, world::World};
use crate::program::{Ended, finish, lines};

/// There are four ports for the answers of browsers, and other tests want some, too.
static PORTS: Mutex<()> = Mutex::new(());

/// Waits until no other test uses them.
pub(crate) fn ports() -> MutexGuard<'static, ()> {
    PORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn code(ended: &Ended) -> i32 {
    ended.status.code().unwrap()
}

#[test]
fn a_login_is_made_shown_used_widened_and_revoked() {
    let _ports = ports();
    let world = World::new();
    let server = world.server.as_str();

    let ended = world.run(&["tools", server]);
    assert_eq!(code(&ended), 3, "{ended:?}");
    assert!(ended.stderr.contains("error[auth-needed]"), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("hint: toolwire login {server}")), "{}", ended.stderr);
    assert_eq!(world.state().seen, Vec::<String>::new(), "nobody but login asks a person");

    let ended = world.run(&["login", server]);
    assert_eq!(code(&ended), 0, "{ended:?}");
    assert!(ended.stdout.contains(&format!("logged in to {server}")), "{}", ended.stdout);
    for line in
        [&format!("issuer:    {}", world.issuer()), "scopes:    files:read offline_access", "renewable: yes"]
    {
        assert!(ended.stdout.contains(line), "{line}: {}", ended.stdout);
    }
    assert_eq!(world.state().count("POST /register"), 1);

    let ended = world.run(&["auth", "status"]);
    assert!(ended.stdout.contains("SERVER") && ended.stdout.contains(server), "{}", ended.stdout);
    let ended = world.run(&["auth", "status", server, "--json"]);
    let status: Value = serde_json::from_str(&ended.stdout).unwrap();
    let login = &status["logins"][0];
    assert_eq!((&login["issuer"], &login["renewable"]), (&world.issuer().into(), &true.into()), "{status}");

    let ended = world.run(&["call", server, "whoami"]);
    assert_eq!((code(&ended), ended.stdout.trim()), (0, "alice"), "{ended:?}");

    let ended = world.run(&["call", server, "write"]);
    assert_eq!(code(&ended), 3, "{ended:?}");
    assert!(ended.stderr.contains("error[forbidden]"), "{}", ended.stderr);
    let hint = format!("hint: toolwire login {server} --scope files:write");
    assert!(ended.stderr.contains(&hint), "{}", ended.stderr);

    let ended = world.run(&["login", server, "--scope", "files:write", "--json"]);
    assert_eq!(code(&ended), 0, "{ended:?}");
    let login: Value = serde_json::from_str(&ended.stdout).unwrap();
    let scopes = ["files:read", "files:write", "offline_access"];
    assert_eq!(login["scopes"], serde_json::json!(scopes), "earlier ones are kept: {login}");
    assert_eq!(world.state().count("POST /register"), 1, "one registration lasts");
    let ended = world.run(&["call", server, "write", "--json"]);
    assert_eq!(code(&ended), 0, "{ended:?}");
    assert!(ended.stdout.contains("written"), "{ended:?}");

    let ended = world.run(&["logout", server, "--forget-client"]);
    assert_eq!(code(&ended), 0, "{ended:?}");
    assert!(ended.stdout.contains("revoked and forgotten"), "{}", ended.stdout);
    let revoked: Vec<String> =
        world.state().seen.iter().filter(|seen| seen.starts_with("revoked")).cloned().collect();
    assert_eq!(revoked, ["revoked refresh_token", "revoked access_token"]);
    let clients = std::fs::read_dir(world.home.path(".local/share/toolwire/auth/clients")).unwrap();
    assert_eq!(clients.count(), 0, "the client is forgotten as well");
    assert_eq!(code(&world.run(&["tools", server])), 3);
    let ended = world.run(&["logout", server]);
    assert_eq!(code(&ended), 3);
    assert!(ended.stderr.contains("no login is stored"), "{}", ended.stderr);
}

#[test]
fn what_could_not_be_revoked_is_said_and_forgotten() {
    let world = World::new();
    assert_eq!(code(&world.log_in(&[])), 0);
    world.state().revocation_fault = true;
    let ended = world.run(&["logout", "--all"]);
    assert_eq!(code(&ended), 0, "{ended:?}");
    assert!(ended.stderr.contains("could not be revoked"), "{}", ended.stderr);
    let ended = world.run(&["auth", "status", "--json"]);
    assert_eq!(ended.stdout.trim(), r#"{"logins":[]}"#);
}

#[test]
fn what_was_typed_counts_more_than_the_stored_login() {
    let world = World::new();
    assert_eq!(code(&world.log_in(&[])), 0);
    assert_eq!(code(&world.run(&["tools", &world.server])), 0);
    let ended = world.run(&["tools", &world.server, "--header", "Authorization: Bearer of-somebody-else"]);
    assert_eq!(code(&ended), 3, "{ended:?}");
    assert!(ended.stderr.contains("the token that was sent was refused"), "{}", ended.stderr);
    let ended = world
        .run_with(&[("MY_TOKEN", "of-somebody-else")], &["tools", &world.server, "--bearer-env", "MY_TOKEN"]);
    assert_eq!(code(&ended), 3, "{ended:?}");
    // A header of the host's settings comes before the login, too.
    let settings = serde_json::json!({ "mcpServers": { "files": {
        "url": world.server, "headers": { "Authorization": "Bearer of-somebody-else" } } } });
    std::fs::create_dir_all(world.home.path(".cursor")).unwrap();
    std::fs::write(world.home.path(".cursor/mcp.json"), settings.to_string()).unwrap();
    assert_eq!(code(&world.run(&["tools", "files"])), 3);
    let settings = serde_json::json!({ "mcpServers": { "files": { "url": world.server } } });
    std::fs::write(world.home.path(".cursor/mcp.json"), settings.to_string()).unwrap();
    assert_eq!(code(&world.run(&["tools", "files"])), 0, "a name means the same login");
    assert_eq!(code(&world.run(&["list"])), 0);
}

#[test]
fn a_login_is_renewed_when_it_is_due() {
    let world = World::new();
    world.state().lasts = 0;
    assert_eq!(code(&world.log_in(&[])), 0);
    world.state().lasts = 3600;
    for _ in 0..2 {
        let ended = world.run(&["call", &world.server, "whoami"]);
        assert_eq!((code(&ended), ended.stdout.trim()), (0, "alice"), "{ended:?}");
    }
    assert_eq!(world.state().count("refresh_token"), 1);
    assert_eq!(world.state().count("GET /authorize"), 1);
}

#[test]
fn a_fault_of_the_issuer_costs_no_login_and_a_refusal_does() {
    let world = World::new();
    world.state().lasts = 0;
    assert_eq!(code(&world.log_in(&[])), 0);
    world.state().token_fault = Some(("503 Service Unavailable", ""));
    let ended = world.run(&["tools", &world.server]);
    assert_eq!(code(&ended), 4, "{ended:?}");
    world.state().token_fault = None;
    world.state().refuses_refresh = true;
    let ended = world.run(&["doctor", &world.server, "--json"]);
    assert!(ended.stdout.contains("\"login-refused\""), "{ended:?}");
    let ended = world.run(&["tools", &world.server]);
    assert_eq!(code(&ended), 3, "{ended:?}");
    assert!(ended.stderr.contains("error[auth-needed]"), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("toolwire login {}", world.server)), "{}", ended.stderr);
    let ended = world.run(&["doctor", &world.server, "--json"]);
    assert!(ended.stdout.contains("\"login-expired\""), "{ended:?}");
}

#[test]
fn a_client_with_a_secret_takes_it_from_its_variable_each_time() {
    let world = World::new();
    {
        let mut state = world.state();
        (state.secret, state.lasts) = (Some("x".into()), 0);
    }
    let ended = world.log_in(&["--secret-env", "MY_SECRET"]);
    assert_eq!(code(&ended), 2, "{ended:?}");
    assert!(ended.stderr.contains("MY_SECRET is not set"), "{}", ended.stderr);
    let folder = tempfile::tempdir().unwrap();
    let browser = person::browser(folder.path());
    let variables = [("BROWSER", browser.as_str()), ("MY_SECRET", "mArK3d-secret-of-the-client")];
    let words = ["login", &world.server, "--client", "c", "--redirect", "http://127.0.0.1/callback"];
    let secret = [&words[..], &["--secret-env", "MY_SECRET"]].concat();
    let ended = world.run_with(&variables, &secret);
    assert_eq!(code(&ended), 2, "the server would say who receives the secret: {ended:?}");
    assert!(ended.stderr.contains("hint: add --issuer URL") && world.state().seen.is_empty(), "{ended:?}");
    let ended = world.run_with(&variables, &[&secret[..], &["--issuer", &world.issuer()]].concat());
    assert_eq!(code(&ended), 0, "{ended:?}");
    let ended = world.run_with(&variables, &["call", &world.server, "whoami", "-v"]);
    assert_eq!((code(&ended), ended.stdout.trim()), (0, "alice"), "{ended:?}");
    let ended = world.run(&["call", &world.server, "whoami"]);
    assert_eq!(code(&ended), 3, "without the variable it cannot be renewed: {ended:?}");
}

#[test]
fn without_a_screen_a_device_is_asked_for() {
    let world = World::new();
    world.state().device = true;
    let ended = world.run_with(&[], &["login", &world.server]);
    assert_eq!(code(&ended), 0, "{ended:?}");
    assert!(ended.stderr.contains("code: ABCD-EFGH"), "{}", ended.stderr);
    assert!(ended.stderr.contains("/activate"), "{}", ended.stderr);
    assert_eq!(code(&world.run(&["tools", &world.server])), 0);
}

#[test]
fn without_a_screen_and_devices_the_answer_is_pasted() {
    let world = World::new();
    let mut command = world.home.toolwire(&["login", &world.server]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = lines(child.stderr.take().unwrap());
    let page = lines.find(|line| line.contains("/authorize?")).unwrap();
    let back = person::answer(page.trim());
    // Something else first, which is not taken for the answer.
    writeln!(child.stdin.take().unwrap(), "https://example.com/\n{back}").unwrap();
    let ended = finish(child);
    assert_eq!(code(&ended), 0, "{ended:?}");
    world.assert_clean(&ended.stdout, "login");
    assert_eq!(code(&world.run(&["tools", &world.server])), 0);
}
