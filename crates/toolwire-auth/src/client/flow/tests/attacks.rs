//! What others may try, by the number of the design's list.

use super::*;
use crate::Resource;
use crate::client::{
    discover::resource,
    register::{ClientDocument, ClientId},
};

/// 20: mix-up.
#[test]
fn a_response_of_another_request_or_issuer_sends_no_code_and_shows_no_text() {
    let cases = [
        ("code=c&iss=https://login.example", AuthErrorKind::StateMismatch),
        ("code=c&state=other&iss=https://login.example", AuthErrorKind::StateMismatch),
        ("code=c&state=STATE&state=STATE&iss=https://login.example", AuthErrorKind::StateMismatch),
        (
            "code=c&state=STATE&iss=https://login.example&iss=https://login.example",
            AuthErrorKind::ResponseInvalid,
        ),
        ("code=c&code=d&state=STATE&iss=https://login.example", AuthErrorKind::ResponseInvalid),
        ("state=STATE&iss=https://login.example", AuthErrorKind::ResponseInvalid),
        ("code=&state=STATE&iss=https://login.example", AuthErrorKind::ResponseInvalid),
        ("code=c&state=STATE", AuthErrorKind::IssuerMismatch),
        ("code=c&state=STATE&iss=https://login.example/", AuthErrorKind::IssuerMismatch),
        (
            "error=MARKED&error_description=MARKED&state=STATE&iss=https://evil.example",
            AuthErrorKind::IssuerMismatch,
        ),
        ("error=MARKED&iss=https://login.example", AuthErrorKind::StateMismatch),
    ];
    for (callback, kind) in cases {
        let outcome = World::good().callback(callback).run(plan(), Cause::Start);
        assert_eq!(outcome.to(TOKEN).count(), 0, "{callback}");
        assert!(outcome.events.iter().all(|event| !event.to_string().contains("MARKED")), "{callback}");
        let error = outcome.result.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("MARKED"), "{callback}");
        assert_eq!(error.kind, kind, "{callback}");
    }
}

/// 20: what may be a mix-up and cannot be told from a provider with two sites.
#[test]
fn a_token_endpoint_on_another_site_than_the_page_is_warned_of_unless_answers_name_the_issuer() {
    for (page, names_issuer, warned) in [
        ("https://login.example/authorize", false, false),
        ("https://www.login.example/authorize", false, false),
        ("https://honest.example/authorize", false, true),
        ("https://honest.example/authorize", true, false),
    ] {
        let metadata = metadata_with(&json!({
            "authorization_endpoint": page, "authorization_response_iss_parameter_supported": names_issuer,
        }));
        let outcome = World::good().json(ISSUER_PLACE, 200, &metadata).run(plan(), Cause::Start);
        let told = outcome.events.iter().any(|event| event.rule == "RFC 9700, 4.4");
        assert_eq!(told, warned, "{page} {names_issuer}");
        outcome.credential();
    }
}

/// 20: the answer of an issuer that does not name itself comes to a place of its own.
#[test]
fn each_issuer_that_registers_us_and_does_not_name_itself_has_a_redirect_of_its_own() {
    let quiet = || json!({ "authorization_response_iss_parameter_supported": false });
    let run = |issuer: &str, changes: Value, plan: Plan| {
        let mut metadata = metadata_with(&changes);
        metadata["issuer"] = issuer.into();
        let place = issuer.strip_prefix(ISSUER).unwrap();
        World::good()
            .json(PATH_PLACE, 200, &json!({ "resource": SERVER, "authorization_servers": [issuer] }))
            .json(&format!("{ISSUER_PLACE}{place}"), 200, &metadata)
            .callback(&format!("code=c&state=STATE&iss={issuer}"))
            .run(plan, Cause::Start)
    };
    let ours = || Plan { way: Way::Browser(redirects().per_issuer()), ..plan() };
    let redirect = |outcome: &Outcome| outcome.form(TOKEN)["redirect_uri"].clone();
    let (one, two) = (run(ISSUER, quiet(), ours()), run("https://login.example/two", quiet(), ours()));
    assert_ne!(redirect(&one), redirect(&two));
    for outcome in [&one, &two] {
        let own = redirect(outcome);
        let path = own.strip_prefix("http://127.0.0.1:17854/callback/").unwrap().to_owned();
        assert!(path.len() == 16 && !path.contains('/'), "{path}");
        let registered: Value = serde_json::from_slice(&outcome.to(REGISTER).next().unwrap().body).unwrap();
        let all = registered["redirect_uris"].as_array().unwrap();
        assert_eq!(all.len(), 4);
        assert!(all.iter().all(|redirect| redirect.as_str().unwrap().ends_with(&path)), "{all:?}");
        assert!(outcome.transcript.contains(&format!("callback%2F{path}\n")), "{}", outcome.transcript);
    }
    // A registration of that place is used again, and one of a place that issuers share is not.
    let mut again = ours();
    again.stored.registrations = vec![one.credential().client];
    assert_eq!(run(ISSUER, quiet(), again.clone()).to(REGISTER).count(), 0);
    again.stored.registrations[0].redirects = redirects().registered;
    assert_eq!(run(ISSUER, quiet(), again).to(REGISTER).count(), 1);
    // The name of the issuer in the answer says as much, a client that was made elsewhere has the redirects it was made with, and
    // so has a person who is asked in a way of the application.
    let shared = "http://127.0.0.1:17854/callback";
    assert_eq!(redirect(&run(ISSUER, json!({}), ours())), shared);
    let mut by_hand = ours();
    by_hand.settings.clients = vec![ClientId::new("mine").issuer(ISSUER)];
    assert_eq!(redirect(&run(ISSUER, quiet(), by_hand)), shared);
    assert_eq!(redirect(&run(ISSUER, quiet(), plan())), shared);
}

/// 21: endpoints that must not be opened.
#[test]
fn metadata_with_endpoints_that_are_none_are_refused() {
    for endpoint in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://login.example/authorize",
        "/authorize",
        "https://login.example/authorize#x",
        "https://u:p@login.example/",
        "https://login.example/`id`\n",
        "data:,x",
    ] {
        for name in ["authorization_endpoint", "token_endpoint", "registration_endpoint"] {
            let metadata = metadata_with(&json!({ name: endpoint }));
            let outcome = World::good().json(ISSUER_PLACE, 200, &metadata).run(plan(), Cause::Start);
            assert!(
                !outcome.transcript.contains("browse") && outcome.to(REGISTER).count() == 0,
                "{name} {endpoint}"
            );
            assert_eq!(outcome.kind(), AuthErrorKind::MetadataRefused, "{name} {endpoint}");
        }
    }
}

/// 21: a redirect to another host is an answer that is no metadata.
#[test]
fn metadata_that_redirect_elsewhere_are_not_followed() {
    let challenge = bearer().with("resource_metadata", &PATH_PLACE[4..]);
    let mut world = World::good().json(PATH_PLACE, 302, &json!({})).with_header(
        PATH_PLACE,
        "location",
        "https://evil.example/",
    );
    let outcome = world.run(plan(), Cause::Refused(vec![challenge]));
    assert_eq!(outcome.requests.len(), 1);
    assert_eq!(outcome.kind(), AuthErrorKind::MetadataRefused);
    let mut world = World::good().json(ISSUER_PLACE, 302, &metadata());
    assert_eq!(world.run(plan(), Cause::Start).kind(), AuthErrorKind::NoMetadata);
}

/// 23: who may speak of which resource.
#[test]
fn nobody_speaks_of_more_than_their_own() {
    let tenant = "https://files.example/t/mcp";
    let at = |place: &str, advertised| resource::Place { url: Endpoint::parse(place).unwrap(), advertised };
    let own = at("https://files.example/.well-known/oauth-protected-resource/t/mcp", true);
    let above = at("https://files.example/.well-known/oauth-protected-resource/t", true);
    let root = at("https://files.example/.well-known/oauth-protected-resource", true);
    let foreign = at("https://evil.example/.well-known/oauth-protected-resource", true);
    let documents = at("https://files.example/t/documents/mine.json", true);
    let cases = [
        (&own, tenant, true),
        (&own, "https://files.example/t/mcp/", true),
        (&own, "HTTPS://FILES.example:443/t/mcp", true),
        (&foreign, tenant, true),
        (&documents, tenant, true),
        (&above, "https://files.example/t", true),
        (&above, "https://files.example/t/", false),
        (&root, "https://files.example", true),
        (&root, "https://files.example/", true),
        (&own, "https://files.example", false),
        (&documents, "https://files.example", false),
        (&documents, "https://files.example/t", false),
        (&foreign, "https://files.example", false),
        (&foreign, "https://evil.example", false),
        (&root, "https://files.example/t", false),
        (&above, "https://files.example/t/mc", false),
        (&own, "https://files.example/t/mcp/more", false),
        (&own, "https://files.example/t/mcp?tenant=2", false),
        (&own, "http://files.example/t/mcp", false),
        (&own, "https://files.example:8443/t/mcp", false),
        (&own, "api://files", false),
    ];
    let server = Endpoint::parse(tenant).unwrap();
    for (place, named, fine) in cases {
        let document = json!({ "resource": named, "authorization_servers": [ISSUER] });
        let response = Response::json(StatusCode::OK, &document);
        match resource::accept(place, &server, None, &response) {
            Ok(resource::Next::Found(found)) => {
                assert!(fine, "{named} from {}", place.url);
                assert_eq!(found.resource.as_str(), named);
                let path = found.resource.as_str().trim_end_matches('/');
                assert_eq!(
                    resource::is_broader(&found.resource, &server),
                    !path.ends_with("/t/mcp"),
                    "{named}"
                );
            }
            Err(error) => {
                assert!(!fine, "{named} from {}", place.url);
                assert_eq!(error.kind, AuthErrorKind::ResourceMismatch);
            }
            other => panic!("{other:?}"),
        }
    }
    let asked = Endpoint::parse("https://files.example/t/mcp?session=1").unwrap();
    let document = json!({ "resource": tenant, "authorization_servers": [ISSUER] });
    let response = Response::json(StatusCode::OK, &document);
    assert!(matches!(resource::accept(&own, &asked, None, &response), Ok(resource::Next::Found(_))));
    assert!(resource::is_broader(&Resource::parse(tenant).unwrap(), &asked), "and for any other query");
}

/// 24: no request without S256.
#[test]
fn pkce_is_never_done_without() {
    for (methods, assumed, fine) in [
        (json!(["S256"]), false, true),
        (json!(["plain", "S256"]), false, true),
        (json!(["plain"]), false, false),
        (json!(["plain"]), true, false),
        (json!([]), true, false),
        (json!(["s256"]), true, false),
        (json!(null), false, false),
        (json!(null), true, true),
    ] {
        let metadata = metadata_with(&json!({ "code_challenge_methods_supported": methods }));
        let mut plan = plan();
        plan.settings.dangerous.assume_pkce =
            assumed.then(|| Issuer::parse(ISSUER).unwrap()).into_iter().collect();
        let outcome = World::good().json(ISSUER_PLACE, 200, &metadata).run(plan, Cause::Start);
        assert_eq!(outcome.transcript.contains("browse"), fine, "{methods} {assumed}");
        if !fine {
            assert_eq!(outcome.kind(), AuthErrorKind::PkceUnsupported, "{methods} {assumed}");
        }
    }
}

/// 24: metadata that change between the discovery and the login.
#[test]
fn metadata_that_change_after_the_discovery_lead_a_login_nowhere_else() {
    let evil = |name: &str| format!("https://evil.example/{name}");
    let changed = json!({
        "authorization_endpoint": evil("authorize"), "token_endpoint": evil("token"),
        "registration_endpoint": evil("register"), "revocation_endpoint": evil("revoke"),
        "code_challenge_methods_supported": ["plain"], "authorization_response_iss_parameter_supported": false,
    });
    let world = || World::good().then(ISSUER_PLACE, 200, &metadata_with(&changed));
    // One discovery counts for all of a login, and for its renewals.
    let outcome = world().run(plan(), Cause::Start);
    assert_eq!(outcome.to(ISSUER_PLACE).count(), 1);
    assert!(!outcome.transcript.contains("evil"), "{}", outcome.transcript);
    assert_eq!(outcome.credential().endpoints.token.as_str(), &TOKEN[5..]);
    let outcome = world().callback("code=c&state=STATE").run(plan(), Cause::Start);
    assert_eq!(
        outcome.kind(),
        AuthErrorKind::IssuerMismatch,
        "the answer has to name the issuer as promised"
    );
    let mut renewing = plan();
    renewing.stored.credential = Some(stored().into());
    let only_changed = || World::good().json(ISSUER_PLACE, 200, &metadata_with(&changed));
    for cause in [Cause::Expired, Cause::Refused(vec![bearer()])] {
        let outcome = only_changed().run(renewing.clone(), cause);
        assert_eq!(outcome.to(TOKEN).count(), 1);
        assert!(!outcome.transcript.contains("evil"), "{}", outcome.transcript);
        outcome.credential();
    }
    // Where the issuer is asked again, all of it is judged again: here, that it does not do PKCE any more.
    let void = json!({ "error": "invalid_grant" });
    let outcome = only_changed().json(TOKEN, 400, &void).run(renewing, Cause::Refused(vec![bearer()]));
    assert!(!outcome.transcript.contains("evil"), "{}", outcome.transcript);
    assert_eq!(outcome.kind(), AuthErrorKind::PkceUnsupported);
}

/// 24: parameters in the query of the endpoint.
#[test]
fn the_query_of_the_authorization_endpoint_cannot_say_our_parameters() {
    let endpoint = "https://login.example/authorize?tenant=1&resource=evil&code_challenge_method=plain&state=x\
                    &request_uri=https://evil.example&scope=all&response_mode=fragment";
    let metadata = metadata_with(&json!({ "authorization_endpoint": endpoint }));
    let outcome = World::good().json(ISSUER_PLACE, 200, &metadata).run(plan(), Cause::Start);
    let browsed = &outcome.transcript[outcome.transcript.find("browse").unwrap()..];
    assert!(browsed.starts_with("browse https://login.example/authorize?tenant=1\n"), "{browsed}");
    for absent in ["evil", "plain", "state=x", "request_uri", "scope=", "response_mode"] {
        assert!(!browsed.contains(absent), "{absent}");
    }
    assert_eq!(browsed.matches("code_challenge_method=S256").count(), 1);
    outcome.credential();
}

/// 26: documents that issuers could not, or should not, read.
#[test]
fn the_url_of_a_client_document_is_one_that_issuers_can_read() {
    assert!(ClientDocument::parse("https://does-not-resolve.invalid/client.json").is_ok());
    for url in [
        "https://notes.example/client.json#x",
        "https://u:p@notes.example/client.json",
        "https://notes.example/a/../client.json",
        "https://notes.example/a/%2E%2e/client.json",
        "https://notes.example/./client.json",
        "http://notes.example/client.json",
        "http://127.0.0.1/client.json",
        "https://notes.example",
        "https://notes.example/",
        "https://10.0.0.1/client.json",
        "https://127.0.0.1/client.json",
        "https://0x7f.1/client.json",
        "https://169.254.169.254/client.json",
        "https://100.64.0.1/client.json",
        "https://[::1]/client.json",
        "https://[::ffff:10.0.0.1]/client.json",
        "https://[fd00::1]/client.json",
        "https://localhost/client.json",
        "client.json",
    ] {
        let error = ClientDocument::parse(url).unwrap_err();
        assert_eq!(error.kind, AuthErrorKind::Misconfigured, "{url}");
    }
}

/// 27: a server that names another issuer than before.
#[test]
fn nothing_of_one_issuer_is_sent_to_another() {
    let mut credential = stored();
    credential.client.client_id = "marked-client".into();
    credential.client.secret = Some(Secret::from("marked-secret"));
    credential.refresh = Some(Secret::from("marked-refresh"));
    let mut plan = plan();
    plan.stored.registrations = vec![credential.client.clone()];
    plan.stored.credential = Some(credential.into());
    let other = "https://other.example";
    let moved = json!({ "resource": SERVER, "authorization_servers": [other] });
    let metadata = json!({
        "issuer": other,
        "authorization_endpoint": "https://other.example/authorize",
        "token_endpoint": "https://other.example/token",
        "registration_endpoint": "https://other.example/register",
        "code_challenge_methods_supported": ["S256"],
    });
    let mut world = World::good()
        .json(PATH_PLACE, 200, &moved)
        .json("GET https://other.example/.well-known/oauth-authorization-server", 200, &metadata)
        .json("POST https://other.example/register", 201, &json!({ "client_id": "made-2" }))
        .json("POST https://other.example/token", 200, &token())
        .callback("code=c&state=STATE");
    let outcome = world.run(plan, Cause::Refused(vec![bearer()]));
    outcome.is("migration");
    assert!(!outcome.transcript.contains("marked"));
    assert_eq!(outcome.credential().client.client_id, "made-2");
}

/// 31: tokens that would not stay one header.
#[test]
fn tokens_that_do_not_fit_into_a_header_are_refused() {
    for token in
        ["a b".to_owned(), "a\u{7f}".to_owned(), "a\n".to_owned(), "é".to_owned(), "a".repeat(5 << 20)]
    {
        for name in ["access_token", "refresh_token"] {
            let mut body = json!({ "access_token": "a", "token_type": "Bearer" });
            body[name] = token.clone().into();
            let outcome = World::good().json(TOKEN, 200, &body).run(plan(), Cause::Start);
            assert!(!outcome.changes.iter().any(|change| matches!(change, Change::Granted(_))));
            let kind = outcome.kind();
            assert!(matches!(kind, AuthErrorKind::TokenInvalid | AuthErrorKind::Unavailable), "{kind:?}");
        }
    }
    let mut world =
        World::good().json(TOKEN, 307, &token()).with_header(TOKEN, "location", "https://evil.example/");
    let outcome = world.run(plan(), Cause::Start);
    assert_eq!(outcome.to(TOKEN).count(), 1);
    assert_eq!(outcome.kind(), AuthErrorKind::TokenInvalid);
}

/// 35: the device grant.
#[test]
fn a_device_ends_and_shows_nothing_harmful() {
    let offered = metadata_with(&json!({ "device_authorization_endpoint": "https://login.example/device" }));
    let good = json!({
        "device_code": "dc", "user_code": "WDJB", "verification_uri": "https://login.example/go", "expires_in": 60,
    });
    let run = |changes: Value, answer: Value| {
        let mut code = good.clone();
        code.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let mut plan = plan();
        plan.way = Way::Device;
        World::good()
            .json(ISSUER_PLACE, 200, &offered)
            .json("POST https://login.example/device", 200, &code)
            .json(TOKEN, 400, &answer)
            .run(plan, Cause::Start)
    };
    let error = |code: &str| json!({ "error": code });
    let endless = run(json!({}), error("authorization_pending"));
    assert_eq!(endless.to(TOKEN).count(), 11);
    assert_eq!(endless.kind(), AuthErrorKind::DeviceExpired);
    let slow = run(json!({}), error("slow_down"));
    assert_eq!(slow.to(TOKEN).count(), 4, "a minute has room for 5, 10, 15 and 20 seconds");
    assert_eq!(slow.kind(), AuthErrorKind::DeviceExpired);
    assert_eq!(run(json!({}), error("expired_token")).kind(), AuthErrorKind::DeviceExpired);
    assert_eq!(run(json!({}), error("access_denied")).kind(), AuthErrorKind::Declined);
    for uri in ["javascript:alert(1)", "file:///etc/passwd", "http://login.example/go", "go"] {
        for name in ["verification_uri", "verification_uri_complete"] {
            let outcome = run(json!({ name: uri }), error("authorization_pending"));
            assert!(!outcome.transcript.contains("show"), "{uri}");
            assert_eq!(outcome.kind(), AuthErrorKind::MetadataRefused, "{uri}");
        }
    }
    for changes in
        [json!({ "expires_in": null }), json!({ "interval": -1 }), json!({ "user_code": "x".repeat(65) })]
    {
        assert_eq!(run(changes, error("authorization_pending")).kind(), AuthErrorKind::MetadataRefused);
    }
    let outcome = run(json!({ "user_code": "A\u{1b}]0;x\u{7}\u{202e}" }), error("access_denied"));
    assert!(outcome.transcript.contains("show A?]0;x?? "), "{}", outcome.transcript);
}

/// 33, as far as it is decided here.
#[test]
fn events_errors_and_debug_have_no_secrets() {
    let plan = plan();
    let outcome =
        World::good().callback("code=c-1&state=STATE&iss=https://login.example").run(plan, Cause::Start);
    let mut seen = String::new();
    for event in &outcome.events {
        write!(seen, "{event} {event:?}").unwrap();
    }
    write!(seen, "{:?} {:?} {:?}", outcome.result, outcome.changes, outcome.requests).unwrap();
    for secret in ["at-1", "rt-1", "c-1", "AwMDA", "BAQEB", "BQUFB"] {
        assert!(!seen.contains(secret), "{secret} in {seen}");
    }
}
