//! Everything that can be wrong on the way to a login, and what is said about it.

use serde_json::{Value, json};

use super::world::{World, json_of};
use crate::{
    fake_web::{FakeWeb, refusing, response, server_at},
    home::Home,
    program::Ended,
};

/// A server and its issuer at one origin, described by their documents, which a test spoils.
struct Broken {
    challenge: &'static str,
    /// What the server says of itself; nothing is there if it is null.
    resource: fn(&str) -> Value,
    /// What the issuer says of itself.
    issuer: fn(&str) -> Value,
    headers: &'static str,
}

fn resource(origin: &str) -> Value {
    json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin] })
}

fn issuer(origin: &str) -> Value {
    json!({
        "issuer": origin,
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": format!("{origin}/token"),
        "registration_endpoint": format!("{origin}/register"),
        "code_challenge_methods_supported": ["S256"],
    })
}

fn changed(mut value: Value, name: &str, to: Value) -> Value {
    value[name] = to;
    value
}

impl Broken {
    const fn not() -> Self {
        Self { challenge: "Bearer", resource, issuer, headers: "" }
    }

    fn start(self) -> FakeWeb {
        FakeWeb::start(move |asked| {
            let host = asked
                .head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("host: ").map(str::to_owned))?;
            let origin = format!("http://{host}");
            let path = asked.line.split(' ').nth(1).unwrap();
            let document = match path {
                "/mcp" => {
                    let challenge = format!("WWW-Authenticate: {}\r\n", self.challenge);
                    return Some(response("401 Unauthorized", &challenge, ""));
                }
                "/.well-known/oauth-protected-resource/mcp" => (self.resource)(&origin),
                "/.well-known/oauth-authorization-server" => (self.issuer)(&origin),
                _ => Value::Null,
            };
            Some(match document {
                Value::Null => response("404 Not Found", "", ""),
                document => {
                    let headers = format!("Content-Type: application/json\r\n{}", self.headers);
                    response("200 OK", &headers, &document.to_string())
                }
            })
        })
    }
}

fn findings(ended: &Ended) -> Vec<String> {
    let json: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    let findings = json["servers"][0]["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

/// What `doctor`, `login` and `auth explain` say, and the option that helps.
#[test]
fn every_fault_has_its_name_and_names_the_option_that_helps() {
    let cases: [(&str, &str, Broken); 7] = [
        ("resource-metadata-missing", "--issuer", Broken { resource: |_| Value::Null, ..Broken::not() }),
        (
            "resource-mismatch",
            "--resource",
            Broken {
                resource: |origin| changed(resource(origin), "resource", json!(format!("{origin}/other"))),
                ..Broken::not()
            },
        ),
        (
            "issuer-mismatch",
            "--issuer",
            Broken {
                issuer: |origin| changed(issuer(origin), "issuer", json!("http://127.0.0.1:1")),
                ..Broken::not()
            },
        ),
        ("issuer-metadata-missing", "--issuer", Broken { issuer: |_| Value::Null, ..Broken::not() }),
        (
            "pkce-missing",
            "--assume-pkce",
            Broken {
                issuer: |origin| changed(issuer(origin), "code_challenge_methods_supported", Value::Null),
                ..Broken::not()
            },
        ),
        (
            "registration-impossible",
            "--client",
            Broken {
                issuer: |origin| changed(issuer(origin), "registration_endpoint", Value::Null),
                ..Broken::not()
            },
        ),
        (
            "metadata-refused",
            "--trust-origin",
            Broken {
                issuer: |origin| {
                    changed(issuer(origin), "token_endpoint", json!("http://keycloak:8080/token"))
                },
                ..Broken::not()
            },
        ),
    ];
    for (code, option, broken) in cases {
        let web = broken.start();
        let (home, url) = (Home::new(), web.url("/mcp"));
        let ended = home.run(&["doctor", &url, "--json"]);
        assert_eq!(findings(&ended), ["auth-needed", code], "{ended:?}");
        assert!(ended.stdout.contains(option), "{code}: {}", ended.stdout);
        for words in [&["login", &url, "--paste"][..], &["auth", "explain", &url]] {
            let ended = home.run(words);
            assert_eq!(ended.status.code(), Some(3), "{code} {words:?}: {ended:?}");
            assert!(ended.stderr.contains(&format!("error[{code}]")), "{words:?}: {}", ended.stderr);
            assert!(ended.stderr.contains(option), "{words:?}: {}", ended.stderr);
        }
        let ended = home.run(&["auth", "explain", &url, "--json"]);
        let told: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(told["outcome"]["error"]["code"], code, "{told}");
        assert_eq!(told["hops"][0]["status"], 401, "{told}");
        assert!(!home.path(".local/share/toolwire/auth/clients").exists(), "nothing is written");
    }
}

#[test]
fn what_is_accepted_with_a_frown_is_a_warning() {
    let cases: [(&str, Broken); 3] = [
        ("challenge-unreadable", Broken { challenge: "Bearer realm=\"open", ..Broken::not() }),
        (
            "issuer-slash",
            Broken {
                issuer: |origin| changed(issuer(origin), "issuer", json!(format!("{origin}/"))),
                ..Broken::not()
            },
        ),
        ("clock-wrong", Broken { headers: "Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n", ..Broken::not() }),
    ];
    for (code, broken) in cases {
        let web = broken.start();
        let (home, url) = (Home::new(), web.url("/mcp"));
        let ended = home.run(&["doctor", &url, "--json"]);
        assert_eq!(findings(&ended), ["auth-needed", code], "{ended:?}");
        assert!(ended.stdout.contains(&format!("toolwire login {url}")), "{ended:?}");
    }
}

#[test]
fn the_way_to_a_login_is_told_and_nothing_is_written() {
    let web = Broken::not().start();
    let (home, url) = (Home::new(), web.url("/mcp"));
    let ended = home.run(&["auth", "explain", &url]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    insta::assert_snapshot!("auth_explain", web.hide_port(&ended.stdout));
    assert!(!home.path(".local/share").exists(), "nothing is written");
}

#[test]
fn why_an_issuer_cannot_be_asked_is_told() {
    let (_bound, issuer) = refusing();
    let web = FakeWeb::start(move |asked| {
        let host = asked
            .head
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("host: ").map(str::to_owned))?;
        let document = json!({
            "resource": format!("http://{host}/mcp"), "authorization_servers": [format!("http://{issuer}")],
        });
        Some(match asked.line.split(' ').nth(1).unwrap() {
            "/mcp" => response("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", ""),
            "/.well-known/oauth-protected-resource/mcp" => json_of("200 OK", &document),
            _ => response("404 Not Found", "", ""),
        })
    });
    let (home, url) = (Home::new(), web.url("/mcp"));
    for words in [&["login", &url, "--paste"][..], &["auth", "explain", &url]] {
        let ended = home.run(words);
        assert!(ended.stderr.contains("error[unreachable]"), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains("cannot be asked at the moment"), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains("refused"), "{words:?}: {ended:?}");
    }
    let ended = home.run(&["doctor", &url, "--json"]);
    assert_eq!(findings(&ended), ["auth-needed"], "{ended:?}");
    assert!(ended.stdout.contains(&format!("toolwire login {url}, when")), "{ended:?}");
    assert!(ended.stdout.contains("refused"), "{ended:?}");
}

#[test]
fn an_open_server_needs_no_login() {
    let serve = server_at("/mcp");
    let web = FakeWeb::start(move |asked| {
        let path = asked.line.split(' ').nth(1).unwrap().to_owned();
        if path == "/mcp" { serve(asked) } else { Some(response("404 Not Found", "", "")) }
    });
    let (home, url) = (Home::new(), web.url("/mcp"));
    let ended = home.run(&["auth", "explain", &url]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stdout.contains("No login is needed"), "{ended:?}");
    let ended = home.run(&["auth", "explain", &url, "--json"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(told["outcome"], json!({ "next": "nothing" }), "{told}");
}

#[test]
fn an_issuer_that_does_not_know_the_server_is_told() {
    let world = World::new();
    world.state().token_fault = Some(("400 Bad Request", r#"{"error":"invalid_target"}"#));
    let ended = world.log_in(&[]);
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(ended.stderr.contains("error[resource-refused]"), "{}", ended.stderr);
    assert!(ended.stderr.contains("--omit-resource"), "{}", ended.stderr);
    world.state().token_fault = Some(("400 Bad Request", r#"{"error":"invalid_grant"}"#));
    let ended = world.log_in(&[]);
    assert!(ended.stderr.contains("error[login-refused]"), "{}", ended.stderr);
}

#[test]
fn a_login_that_lacks_a_scope_of_the_server_is_told() {
    let web = FakeWeb::start(|asked| {
        let bearer = asked.head.to_lowercase().contains("authorization: bearer");
        let host = asked
            .head
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("host: ").map(str::to_owned))?;
        let origin = format!("http://{host}");
        let asked_for = asked.line.split(' ').nth(1).unwrap();
        let (path, query) = asked_for.split_once('?').unwrap_or((asked_for, ""));
        Some(match path {
            "/mcp" if bearer => response(
                "403 Forbidden",
                "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"files:read files:admin\"\r\n",
                "",
            ),
            "/mcp" => response("401 Unauthorized", "WWW-Authenticate: Bearer scope=\"files:read\"\r\n", ""),
            "/.well-known/oauth-protected-resource/mcp" => json_of("200 OK", &resource(&origin)),
            "/.well-known/oauth-authorization-server" => json_of("200 OK", &issuer(&origin)),
            "/authorize" => {
                let asked: Vec<(String, String)> =
                    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
                let of = |name: &str| asked.iter().find(|(known, _)| known == name).unwrap().1.clone();
                let location = format!("Location: {}?code=c&state={}\r\n", of("redirect_uri"), of("state"));
                response("302 Found", &location, "")
            }
            "/token" => json_of(
                "200 OK",
                &json!({ "access_token": "token-of-alice", "token_type": "Bearer", "scope": "files:read" }),
            ),
            _ => response("404 Not Found", "", ""),
        })
    });
    let (home, url) = (Home::new(), web.url("/mcp"));
    let folder = tempfile::tempdir().unwrap();
    let browser = super::person::browser(folder.path());
    let words = ["login", &url, "--client", "c", "--redirect", "http://127.0.0.1/callback"];
    let ended = home.run_with(&[("BROWSER", &browser)], &words);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let ended = home.run(&["tools", &url]);
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(ended.stderr.contains(&format!("toolwire login {url} --scope files:admin")), "{}", ended.stderr);
    let ended = home.run(&["doctor", &url, "--json"]);
    assert_eq!(findings(&ended), ["scope-missing"], "{ended:?}");
    assert!(ended.stdout.contains("--scope files:admin"), "{ended:?}");
}
