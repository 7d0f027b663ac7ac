//! Logging in with another device, at issuers that make it difficult.

use serde_json::{Value, json};

use super::world::World;
use crate::program::Ended;

fn log_in(world: &World) -> Ended {
    world.state().device = true;
    world.run_with(&[], &["login", &world.server, "--device"])
}

#[test]
fn a_device_waits_until_somebody_has_decided() {
    let world = World::new();
    world.state().device_answers = vec!["authorization_pending", "authorization_pending"];
    let ended = log_in(&world);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(world.state().count("urn:ietf:params:oauth:grant-type:device_code"), 3);
}

#[test]
fn a_code_is_shown_with_the_issuer_and_the_server_and_a_page_of_another_site_with_a_warning() {
    let world = World::new();
    let ended = log_in(&world);
    let told = format!("{}, the issuer for {}, asks you to confirm", world.issuer(), world.server);
    assert!(ended.stderr.contains(&told) && !ended.stderr.contains("another site"), "{}", ended.stderr);
    world.state().device_code = json!({ "verification_uri": "https://login.example/activate" });
    let ended = log_in(&world);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let warning = "the page to confirm at is on login.example, which is another site than that of the issuer";
    assert!(ended.stderr.find(warning).unwrap() < ended.stderr.find("code: ").unwrap(), "{}", ended.stderr);
    let ended = world.run_with(&[], &["login", &world.server, "--device", "--json"]);
    let line = ended.stderr.lines().find(|line| line.contains("\"device\"")).unwrap();
    let told: Value = serde_json::from_str(line).unwrap();
    let device = &told["device"];
    assert_eq!(
        (&device["issuer"], &device["server"], &device["otherSite"]),
        (&json!(world.issuer()), &json!(world.server), &json!(true))
    );
}

#[test]
fn a_device_that_asks_too_often_waits_longer_and_ends_with_its_code() {
    let world = World::new();
    // Six seconds after it was told to slow down, the code would be over: it does not even ask.
    world.state().device_answers = vec!["slow_down"];
    world.state().device_code = json!({ "expires_in": 6 });
    let ended = log_in(&world);
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(ended.stderr.contains("error[login-refused]"), "{}", ended.stderr);
    assert!(ended.stderr.contains("was not confirmed in time"), "{}", ended.stderr);
    assert_eq!(world.state().count("urn:ietf:params:oauth:grant-type:device_code"), 1);
}

#[test]
fn a_device_that_is_kept_waiting_ends_with_its_code() {
    let world = World::new();
    world.state().device_answers = vec!["authorization_pending"; 100];
    world.state().device_code = json!({ "expires_in": 3 });
    let ended = log_in(&world);
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(ended.stderr.contains("was not confirmed in time"), "{}", ended.stderr);
}

#[test]
fn a_device_that_is_refused_says_so() {
    for answer in ["access_denied", "expired_token"] {
        let world = World::new();
        world.state().device_answers = vec![answer];
        let ended = log_in(&world);
        assert_eq!(ended.status.code(), Some(3), "{ended:?}");
        assert!(ended.stderr.contains("error[login-refused]"), "{}", ended.stderr);
        assert_eq!(world.run(&["tools", &world.server]).status.code(), Some(3));
    }
}

#[test]
fn what_a_person_is_shown_is_harmless() {
    for page in ["javascript:alert(1)", "file:///etc/passwd", "http://login.example/activate"] {
        let world = World::new();
        world.state().device_code = json!({ "verification_uri": page });
        let ended = log_in(&world);
        assert_eq!(ended.status.code(), Some(3), "{ended:?}");
        assert!(!ended.stderr.contains("alert(1)") && !ended.stderr.contains("code: "), "{}", ended.stderr);
        assert_eq!(world.state().count("urn:ietf:params:oauth:grant-type:device_code"), 0);
    }
    let world = World::new();
    world.state().device_code = json!({ "user_code": "AB\u{1b}[31m\u{202e}CD\r\nEF" });
    let ended = log_in(&world);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stderr.contains("code: AB?[31m?CD??EF"), "{:?}", ended.stderr);
    // The same for scripts.
    let ended = world.run_with(&[], &["login", &world.server, "--device", "--json"]);
    let line = ended.stderr.lines().find(|line| line.contains("\"device\"")).unwrap();
    let told: Value = serde_json::from_str(line).unwrap();
    assert_eq!(told["device"]["code"], "AB?[31m?CD??EF");
}
