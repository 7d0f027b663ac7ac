use http::Request;

use super::*;

fn gate(change: impl FnOnce(&mut HttpConfig)) -> Gate {
    let mut config = HttpConfig::default();
    change(&mut config);
    Gate::new(&config).unwrap()
}

impl Gate {
    fn check_anywhere(&self, parts: &Parts) -> Result<(), Stopped> {
        self.check(parts, &Head::of(&parts.headers), None)
    }

    fn check_at(&self, parts: &Parts, local: &str) -> Result<(), Stopped> {
        self.check(parts, &Head::of(&parts.headers), Some(local.parse().unwrap()))
    }
}

fn request(host: Option<&str>, origin: Option<&str>) -> Parts {
    let mut request = Request::post("/mcp");
    if let Some(host) = host {
        request = request.header(header::HOST, host);
    }
    if let Some(origin) = origin {
        request = request.header(header::ORIGIN, origin);
    }
    request.body(()).unwrap().into_parts().0
}

#[test]
fn loopback_names_are_allowed_with_any_port() {
    let gate = gate(|_| {});
    for host in
        ["localhost", "localhost:3000", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:80", "[::1]:9", "[::1]"]
    {
        assert_eq!(gate.check_anywhere(&request(Some(host), None)), Ok(()), "{host}");
        let origin = format!("http://{host}");
        assert_eq!(gate.check_anywhere(&request(Some("localhost"), Some(&origin))), Ok(()), "{origin}");
    }
}

#[test]
fn other_names_are_stopped() {
    let gate = gate(|_| {});
    for host in [
        "evil.example.com",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "user@localhost",
        "localhost:",
        "localhost:99999",
        "localhost:80:80",
        "",
        ":80",
        "192.168.1.1",
        "::1",
        "localhost/x",
    ] {
        assert_eq!(
            gate.check_anywhere(&request(Some(host), None)),
            Err(Stopped::Host(host.to_owned())),
            "{host:?}"
        );
    }
    for origin in
        ["http://evil.example.com", "null", "", "localhost", "http://localhost/path", "http://localhost.evil"]
    {
        let verdict = gate.check_anywhere(&request(Some("localhost"), Some(origin)));
        assert_eq!(verdict, Err(Stopped::Origin(origin.to_owned())), "{origin:?}");
    }
}

#[test]
fn a_request_that_names_no_host_comes_from_no_browser() {
    assert_eq!(gate(|_| {}).check_anywhere(&request(None, None)), Ok(()));
}

#[test]
fn every_host_that_is_named_must_be_allowed() {
    let gate = gate(|_| {});
    let mut parts = request(Some("localhost"), None);
    parts.uri = "http://evil.example/mcp".parse().unwrap();
    assert_eq!(gate.check_anywhere(&parts), Err(Stopped::Host("evil.example".to_owned())));
    let mut parts = request(Some("localhost"), None);
    parts.headers.append(header::HOST, "evil.example".parse().unwrap());
    assert_eq!(gate.check_anywhere(&parts), Err(Stopped::Host("evil.example".to_owned())));
    let mut parts = request(Some("localhost"), Some("http://localhost"));
    parts.headers.append(header::ORIGIN, "http://evil.example".parse().unwrap());
    assert_eq!(gate.check_anywhere(&parts), Err(Stopped::Origin("http://evil.example".to_owned())));
}

#[test]
fn the_address_of_the_connection_itself_is_allowed() {
    let gate = gate(|_| {});
    let parts = request(Some("192.168.1.5:3000"), Some("http://192.168.1.5:3000"));
    assert!(gate.check_anywhere(&parts).is_err());
    assert_eq!(gate.check_at(&parts, "192.168.1.5"), Ok(()));
    let parts = request(Some("[2001:db8::1]"), None);
    assert_eq!(gate.check_at(&parts, "2001:db8::1"), Ok(()));
    let parts = request(Some("evil.example"), None);
    assert!(gate.check_at(&parts, "192.168.1.5").is_err());
}

#[test]
fn hosts_and_origins_can_be_added() {
    let gate = gate(|config| {
        config.hosts = vec!["mcp.internal".into(), "pinned.internal:8443".into()];
        config.origins = vec!["https://app.example".into()];
    });
    for (host, good) in [
        ("mcp.internal", true),
        ("mcp.internal:99", true),
        ("pinned.internal:8443", true),
        ("pinned.internal", false),
        ("pinned.internal:1", false),
        ("sub.mcp.internal", false),
    ] {
        assert_eq!(gate.check_anywhere(&request(Some(host), None)).is_ok(), good, "{host}");
    }
    for (origin, good) in [
        ("https://app.example", true),
        ("https://app.example:443", true),
        ("https://APP.example", true),
        ("http://app.example", false),
        ("https://app.example:444", false),
        // A page that the host itself has served.
        ("http://mcp.internal:99", true),
        ("http://mcp.internal", false),
    ] {
        assert_eq!(
            gate.check_anywhere(&request(Some("mcp.internal:99"), Some(origin))).is_ok(),
            good,
            "{origin}"
        );
    }
}

#[test]
fn a_public_url_names_the_host_and_the_origin() {
    let gate = gate(|config| config.public_url = Some("https://mcp.example/path?x".into()));
    for (host, origin, good) in [
        ("mcp.example", None, true),
        ("mcp.example:8080", None, true),
        ("mcp.example", Some("https://mcp.example"), true),
        ("localhost:3000", Some("https://mcp.example"), true),
        ("other.example", None, false),
        ("mcp.example", Some("https://other.example"), false),
        // The pages of visitors' machines are none of ours.
        ("mcp.example", Some("http://localhost:5173"), false),
    ] {
        assert_eq!(gate.check_anywhere(&request(Some(host), origin)).is_ok(), good, "{host} {origin:?}");
    }
}

#[test]
fn anything_can_be_allowed() {
    let gate = gate(|config| {
        config.any_host = true;
        config.any_origin = true;
    });
    assert_eq!(gate.check_anywhere(&request(Some("evil.example"), Some("null"))), Ok(()));
}

#[test]
fn entries_that_make_no_sense_are_named() {
    for (hosts, origins, url) in [
        (vec!["http://x".to_owned()], vec![], None),
        (vec![], vec!["app.example".to_owned()], None),
        (vec![], vec![], Some("mcp.example".to_owned())),
        (vec![], vec![], Some("ftp://mcp.example".to_owned())),
    ] {
        let config = HttpConfig { hosts, origins, public_url: url, ..HttpConfig::default() };
        assert!(Gate::new(&config).is_err(), "{config:?}");
    }
}

#[test]
fn a_header_that_stands_twice_equals_nothing() {
    let mut headers = HeaderMap::new();
    assert_eq!(text(&headers, "mcp-name"), None);
    headers.append("mcp-name", "add".parse().unwrap());
    assert_eq!(text(&headers, "mcp-name"), Some("add"));
    headers.append("mcp-name", "add".parse().unwrap());
    assert_eq!(text(&headers, "mcp-name"), Some("\0"));
    headers.insert("mcp-name", http::HeaderValue::from_bytes("ä".as_bytes()).unwrap());
    assert_eq!(text(&headers, "mcp-name"), Some("\0"));
}
