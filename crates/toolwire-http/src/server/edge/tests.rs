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
    for host in ["evil.example.com", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.1.1"] {
        assert_eq!(
            gate.check_anywhere(&request(Some(host), None)),
            Err(Stopped::Host(host.to_owned())),
            "{host:?}"
        );
    }
    for host in [
        "user@localhost",
        "localhost:",
        "localhost:99999",
        "localhost:80:80",
        "",
        ":80",
        "::1",
        "localhost/x",
        "localhost, localhost",
    ] {
        let verdict = gate.check_anywhere(&request(Some(host), None));
        assert!(matches!(verdict, Err(Stopped::InvalidHost(_))), "{host:?} {verdict:?}");
    }
    for origin in
        ["http://evil.example.com", "null", "", "localhost", "http://localhost/path", "http://localhost.evil"]
    {
        let verdict = gate.check_anywhere(&request(Some("localhost"), Some(origin)));
        assert_eq!(verdict, Err(Stopped::Origin(origin.to_owned())), "{origin:?}");
    }
}

#[test]
fn a_host_is_named_once_and_only_http_1_0_may_name_none() {
    let gate = gate(|config| config.any_host = true);
    for (version, host, expected) in [
        (Version::HTTP_10, None, true),
        (Version::HTTP_10, Some("a"), true),
        (Version::HTTP_11, None, false),
        (Version::HTTP_11, Some("a"), true),
        (Version::HTTP_2, None, false),
        (Version::HTTP_2, Some("a"), true),
    ] {
        let mut parts = request(host, None);
        parts.version = version;
        assert_eq!(gate.check_anywhere(&parts).is_ok(), expected, "{version:?} {host:?}");
        if host.is_some() {
            parts.headers.append(header::HOST, "a".parse().unwrap());
            let verdict = gate.check_anywhere(&parts);
            assert_eq!(verdict, Err(Stopped::InvalidHost("Host is duplicated".into())), "{version:?}");
        }
    }
}

#[test]
fn a_url_in_the_request_line_takes_precedence_over_the_header() {
    let gate = gate(|_| {});
    for (url, host, expected) in [
        ("http://evil.example/mcp", "localhost", Err(Stopped::Host("evil.example".to_owned()))),
        ("http://localhost/mcp", "evil.example", Ok(())),
    ] {
        for version in [Version::HTTP_10, Version::HTTP_11] {
            let mut parts = request(Some(host), None);
            (parts.uri, parts.version) = (url.parse().unwrap(), version);
            assert_eq!(gate.check_anywhere(&parts), expected, "{version:?} {url} {host}");
        }
    }
}

#[test]
fn in_http2_both_names_have_to_be_the_same() {
    let gate = gate(|_| {});
    for (url, host, good) in [
        ("http://localhost/mcp", None, true),
        ("http://localhost/mcp", Some("localhost"), true),
        ("http://localhost/mcp", Some("LocalHost:80"), true),
        ("https://localhost/mcp", Some("localhost:443"), true),
        ("http://localhost/mcp", Some("localhost:443"), false),
        ("http://localhost/mcp", Some("127.0.0.1"), false),
        ("http://localhost/mcp", Some("evil.example"), false),
        ("http://localhost/mcp", Some("local host"), false),
        ("http://evil.example/mcp", Some("evil.example"), false),
        ("http://evil.example/mcp", Some("localhost"), false),
    ] {
        let mut parts = request(host, None);
        (parts.uri, parts.version) = (url.parse().unwrap(), Version::HTTP_2);
        assert_eq!(gate.check_anywhere(&parts).is_ok(), good, "{url} {host:?}");
    }
}

#[test]
fn every_origin_that_is_named_must_be_allowed() {
    let mut parts = request(Some("localhost"), Some("http://localhost"));
    parts.headers.append(header::ORIGIN, "http://evil.example".parse().unwrap());
    let verdict = gate(|_| {}).check_anywhere(&parts);
    assert_eq!(verdict, Err(Stopped::Origin("http://evil.example".to_owned())));
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
fn entries_that_are_not_valid_are_named() {
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
fn a_header_that_is_duplicated_equals_nothing() {
    let mut headers = HeaderMap::new();
    assert_eq!(text(&headers, "mcp-name"), None);
    headers.append("mcp-name", "add".parse().unwrap());
    assert_eq!(text(&headers, "mcp-name"), Some("add"));
    headers.append("mcp-name", "add".parse().unwrap());
    assert_eq!(text(&headers, "mcp-name"), Some("\0"));
    headers.insert("mcp-name", http::HeaderValue::from_bytes("ä".as_bytes()).unwrap());
    assert_eq!(text(&headers, "mcp-name"), Some("\0"));
}

#[test]
fn every_header_that_counts_is_found_and_told_apart() {
    type Find = for<'h> fn(&Head<'h>) -> head::Field<'h>;
    let named: [(&str, Find); 9] = [
        ("host", |head| head.host),
        ("origin", |head| head.origin),
        ("content-type", |head| head.content_type),
        ("content-encoding", |head| head.content_encoding),
        ("accept", |head| head.accept),
        ("mcp-protocol-version", |head| head.protocol_version),
        ("mcp-session-id", |head| head.session_id),
        ("mcp-method", |head| head.method),
        ("mcp-name", |head| head.name),
    ];
    let mut headers = HeaderMap::new();
    for (name, _) in named {
        headers.insert(name, name.parse().unwrap());
    }
    let head = Head::of(&headers);
    for (name, field) in named {
        assert_eq!(field(&head).text(), Some(name));
    }
}

#[test]
fn without_settings_the_gate_is_that_of_the_defaults() {
    assert_eq!(Gate::local(), Gate::new(&HttpConfig::default()).unwrap());
}
