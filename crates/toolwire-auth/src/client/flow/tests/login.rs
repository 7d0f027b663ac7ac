//! Logins of people that work.

use super::*;
use crate::client::{
    Verdict,
    register::{AuthMethod, ClientDocument, ClientId, Registration, Source},
};

#[test]
fn by_dynamic_registration() {
    let challenge = bearer().with("scope", "files:read");
    World::good().run(plan(), Cause::Refused(vec![challenge])).is("login-dynamic");
}

#[test]
fn by_a_client_document() {
    let metadata = metadata_with(&json!({ "client_id_metadata_document_supported": true }));
    let mut plan = plan();
    plan.settings.document = Some(ClientDocument::parse("https://notes.invalid/client.json").unwrap());
    World::good().json(ISSUER_PLACE, 200, &metadata).run(plan, Cause::Start).is("login-document");
}

#[test]
fn by_a_configured_client_with_its_secret() {
    let methods = json!({ "token_endpoint_auth_methods_supported": ["client_secret_basic"] });
    let mut plan = plan();
    plan.settings.clients = vec![ClientId::new("a b:c").issuer(ISSUER).secret(Secret::from("s+/"))];
    World::good()
        .json(ISSUER_PLACE, 200, &metadata_with(&methods))
        .run(plan, Cause::Start)
        .is("login-configured");
}

#[test]
fn a_client_without_an_issuer_is_bound_to_the_first() {
    let mut plan = plan();
    plan.settings.clients = vec![ClientId::new("mine")];
    let outcome = World::good().run(plan.clone(), Cause::Start);
    assert!(matches!(&outcome.changes[0], Change::Bound { client_id, issuer }
        if client_id == "mine" && issuer.as_str() == ISSUER));
    let warned = |outcome: &Outcome| outcome.events.iter().any(|event| event.verdict == Verdict::Warning);
    assert!(warned(&outcome));
    assert_eq!(outcome.to(REGISTER).count(), 0);
    plan.stored.bound = Some(Issuer::parse(ISSUER).unwrap());
    let again = World::good().run(plan.clone(), Cause::Start);
    assert!(matches!(again.changes[..], [Change::Granted(_)]) && !warned(&again));
    plan.stored.bound = Some(Issuer::parse("https://other.example").unwrap());
    assert_eq!(World::good().run(plan, Cause::Start).kind(), AuthErrorKind::IssuerChanged);
}

#[test]
fn the_order_of_clients() {
    let documents = metadata_with(&json!({ "client_id_metadata_document_supported": true }));
    let mut plan = plan();
    let who = |plan: &Plan, metadata: &Value| {
        let outcome = World::good().json(ISSUER_PLACE, 200, metadata).run(plan.clone(), Cause::Start);
        outcome.credential().client.client_id
    };
    assert_eq!(who(&plan, &documents), "made-1");
    plan.stored.registrations = vec![Registration {
        issuer: Issuer::parse(ISSUER).unwrap(),
        client_id: "stored".into(),
        source: Source::Dynamic,
        secret: None,
        secret_expires: None,
        method: AuthMethod::None,
        redirects: redirects().registered,
    }];
    assert_eq!(who(&plan, &documents), "stored");
    let expired = UNIX_EPOCH + Duration::from_secs(START);
    let mut old = plan.clone();
    old.stored.registrations[0].secret_expires = Some(expired);
    assert_eq!(who(&old, &documents), "made-1");
    let mut moved = plan.clone();
    moved.stored.registrations[0].redirects = vec!["http://127.0.0.1:1/callback".into()];
    assert_eq!(who(&moved, &documents), "made-1");
    let mut elsewhere = plan.clone();
    elsewhere.stored.registrations[0].issuer = Issuer::parse("https://other.example").unwrap();
    assert_eq!(who(&elsewhere, &documents), "made-1");
    let mut fresh = plan.clone();
    fresh.settings.fresh = true;
    assert_eq!(who(&fresh, &documents), "made-1");
    plan.settings.document = Some(ClientDocument::parse("https://notes.invalid/client.json").unwrap());
    assert_eq!(who(&plan, &documents), "https://notes.invalid/client.json");
    assert_eq!(who(&plan, &metadata()), "stored");
    plan.settings.clients = vec![ClientId::new("other").issuer("https://other.example")];
    assert_eq!(who(&plan, &documents), "https://notes.invalid/client.json");
    plan.settings.clients.push(ClientId::new("mine").issuer(ISSUER));
    assert_eq!(who(&plan, &documents), "mine");
    let closed = metadata_with(&json!({ "registration_endpoint": null }));
    let kind = World::good().json(ISSUER_PLACE, 200, &closed).run(super::plan(), Cause::Start).kind();
    assert_eq!(kind, AuthErrorKind::RegistrationImpossible);
}

#[test]
fn the_way_a_client_authenticates_is_the_one_of_its_registration() {
    for (method, header, field) in [
        ("client_secret_basic", Some("Basic bWFkZS0xOnMx"), None),
        ("client_secret_post", None, Some("s1")),
        ("none", None, None),
    ] {
        let offered = metadata_with(&json!({ "token_endpoint_auth_methods_supported": [method] }));
        let made =
            json!({ "client_id": "made-1", "client_secret": "s1", "token_endpoint_auth_method": method });
        let mut world = World::good().json(ISSUER_PLACE, 200, &offered).json(REGISTER, 201, &made);
        let outcome = world.run(plan(), Cause::Start);
        let form = outcome.form(TOKEN);
        let request = outcome.to(TOKEN).next().unwrap();
        assert_eq!(
            request.headers.get("authorization").map(|value| value.to_str().unwrap()),
            header,
            "{method}"
        );
        assert_eq!(form.get("client_secret").map(String::as_str), field, "{method}");
        assert_eq!(form.contains_key("client_id"), header.is_none(), "{method}");
        let body: Value = serde_json::from_slice(&outcome.to(REGISTER).next().unwrap().body).unwrap();
        assert_eq!(body["token_endpoint_auth_method"], method);
    }
}

#[test]
fn without_a_secret_is_best_and_else_what_the_issuer_names_first() {
    for (offered, wanted) in [
        (json!(["client_secret_post", "client_secret_basic"]), "client_secret_post"),
        (json!(["private_key_jwt", "client_secret_basic", "client_secret_post"]), "client_secret_basic"),
        (json!(["client_secret_post", "none"]), "none"),
        (json!(["tls_client_auth"]), "client_secret_basic"),
        (Value::Null, "client_secret_basic"),
    ] {
        let metadata = metadata_with(&json!({ "token_endpoint_auth_methods_supported": offered }));
        let outcome = World::good().json(ISSUER_PLACE, 200, &metadata).run(plan(), Cause::Start);
        let body: Value = serde_json::from_slice(&outcome.to(REGISTER).next().unwrap().body).unwrap();
        assert_eq!(body["token_endpoint_auth_method"], wanted, "{offered}");
    }
}

#[test]
fn metadata_are_found_at_each_of_their_places() {
    let resource = json!({ "resource": SERVER, "authorization_servers": ["https://login.example/tenant1"] });
    let issuer = metadata_with(&json!({ "issuer": "https://login.example/tenant1" }));
    let forms = [
        "GET https://login.example/.well-known/oauth-authorization-server/tenant1",
        "GET https://login.example/.well-known/openid-configuration/tenant1",
        "GET https://login.example/tenant1/.well-known/openid-configuration",
    ];
    let custom = "GET https://files.example/custom/location.json";
    let challenge = bearer().with("resource_metadata", "https://files.example/custom/location.json");
    for (at, form) in forms.into_iter().enumerate() {
        let mut world = World::good()
            .json(custom, 200, &resource)
            .json(form, 200, &issuer)
            .callback("code=c&state=STATE&iss=https://login.example/tenant1");
        let outcome = world.run(plan(), Cause::Refused(vec![challenge.clone()]));
        assert_eq!(outcome.to(ISSUER_PLACE).count() + outcome.to(PATH_PLACE).count(), 0, "{form}");
        assert_eq!(outcome.requests.iter().filter(|request| request.method == "GET").count(), at + 2);
        outcome.credential();
    }
}

#[test]
fn the_root_place_speaks_of_the_whole_host_and_its_text_is_sent_as_it_is() {
    let whole = json!({ "resource": "https://files.example", "authorization_servers": [ISSUER] });
    let mut world = World::good().json(PATH_PLACE, 404, &json!({})).json(ROOT_PLACE, 200, &whole);
    let outcome = world.run(plan(), Cause::Start);
    assert_eq!(outcome.form(TOKEN)["resource"], "https://files.example");
    assert!(
        outcome.events.iter().any(|event| event.verdict == Verdict::Warning
            && event.detail.contains("a resource above this server"))
    );
    assert!(outcome.transcript.contains("&resource=https%3A%2F%2Ffiles.example\n"), "{}", outcome.transcript);
}

#[test]
fn an_issuer_that_differs_by_a_slash_is_refused_or_told_where_that_is_allowed() {
    let listed = json!({ "resource": SERVER, "authorization_servers": ["https://login.example/a"] });
    let slash = metadata_with(&json!({ "issuer": "https://login.example/a/" }));
    let mut world = World::good()
        .json(PATH_PLACE, 200, &listed)
        .json(&format!("{ISSUER_PLACE}/a"), 200, &slash)
        .callback("code=c&state=STATE&iss=https://login.example/a/");
    assert_eq!(world.run(plan(), Cause::Start).kind(), AuthErrorKind::IssuerMismatch);
    let mut lenient = plan();
    lenient.settings.dangerous.ignore_issuer_slash = true;
    let outcome = world.run(lenient, Cause::Start);
    let told = outcome.events.iter().find(|event| event.verdict == Verdict::Warning);
    assert_eq!(told.unwrap().notice, Some(crate::client::Notice::IssuerSlash));
    assert_eq!(outcome.credential().issuer.as_str(), "https://login.example/a/");
}

#[test]
fn an_issuer_without_a_path_is_the_same_with_a_slash_and_its_metadata_spell_it() {
    let slashed = "https://login.example/";
    for (listed, own) in [(slashed, ISSUER), (ISSUER, slashed)] {
        let mut world = World::good()
            .json(PATH_PLACE, 200, &json!({ "resource": SERVER, "authorization_servers": [listed] }))
            .json(ISSUER_PLACE, 200, &metadata_with(&json!({ "issuer": own })))
            .callback(&format!("code=c&state=STATE&iss={own}"));
        let outcome = world.run(plan(), Cause::Start);
        let told = outcome.events.iter().find(|event| event.verdict == Verdict::Warning);
        assert_eq!(told.unwrap().notice, Some(crate::client::Notice::IssuerSlash));
        let credential = outcome.credential();
        assert_eq!(credential.issuer.as_str(), own);
        // It is renewed while the server lists the other spelling.
        let mut refused = plan();
        refused.stored.credential = Some(credential.into());
        let outcome = world.run(refused, Cause::Refused(vec![bearer()]));
        assert_eq!(outcome.form(TOKEN)["grant_type"], "refresh_token");
        // The spelling of the metadata is the one that answers are compared with.
        let outcome = world.callback(&format!("code=c&state=STATE&iss={listed}")).run(plan(), Cause::Start);
        assert_eq!(outcome.kind(), AuthErrorKind::IssuerMismatch);
    }
}

#[test]
fn a_listed_issuer_is_asked_in_the_spelling_of_the_application_or_of_the_store() {
    let (own, listed) = ("https://login.example/a", "https://login.example/a/");
    let place = format!("{ISSUER_PLACE}/a");
    let mut world = World::good()
        .json(PATH_PLACE, 200, &json!({ "resource": SERVER, "authorization_servers": [listed] }))
        .json(&place, 200, &metadata_with(&json!({ "issuer": own })))
        .callback(&format!("code=c&state=STATE&iss={own}"));
    assert_eq!(world.run(plan(), Cause::Start).kind(), AuthErrorKind::IssuerMismatch);
    let mut configured = plan();
    configured.settings.clients = vec![ClientId::new("mine").issuer(own)];
    let credential = world.run(configured, Cause::Start).credential();
    assert_eq!((credential.issuer.as_str(), credential.client.client_id.as_str()), (own, "mine"));
    let mut refused = plan();
    refused.stored.credential = Some(credential.into());
    let outcome = world.run(refused, Cause::Refused(vec![bearer()]));
    assert_eq!(outcome.form(TOKEN)["grant_type"], "refresh_token");
    let mut fixed = plan();
    fixed.settings.endpoints = vec![FixedEndpoints {
        issuer: Issuer::parse(own).unwrap(),
        authorization: Endpoint::parse("https://login.example/authorize").unwrap(),
        token: Endpoint::parse("https://login.example/token").unwrap(),
    }];
    fixed.settings.clients = vec![ClientId::new("mine").issuer(own)];
    fixed.settings.dangerous.assume_pkce = vec![Issuer::parse(own).unwrap()];
    assert_eq!(world.run(fixed, Cause::Start).credential().issuer.as_str(), own);
    // Metadata of the spelling that was not asked for are those of another issuer.
    let mut other = plan();
    other.settings.clients = vec![ClientId::new("mine").issuer(own)];
    let slashed = metadata_with(&json!({ "issuer": listed }));
    assert_eq!(
        world.json(&place, 200, &slashed).run(other, Cause::Start).kind(),
        AuthErrorKind::IssuerMismatch
    );
}

/// A world whose issuer, which has a path, is listed and identifies itself like this.
fn spelled(issuer: &str, changes: &Value) -> World {
    let mut metadata = metadata_with(changes);
    metadata["issuer"] = issuer.into();
    World::good()
        .json(PATH_PLACE, 200, &json!({ "resource": SERVER, "authorization_servers": [issuer] }))
        .json(&format!("{ISSUER_PLACE}/a"), 200, &metadata)
        .callback(&format!("code=c&state=STATE&iss={issuer}"))
}

#[test]
fn an_issuer_that_is_renamed_by_a_slash_is_logged_in_to_without_a_logout() {
    let (before, after) = ("https://login.example/a", "https://login.example/a/");
    let challenge = bearer().with("scope", "files:read");
    let mut credential =
        spelled(before, &json!({})).run(plan(), Cause::Refused(vec![challenge])).credential();
    credential.refresh = None;
    let mut renamed = plan();
    renamed.stored.registrations = vec![credential.client.clone()];
    renamed.stored.credential = Some(credential.into());
    let outcome = spelled(after, &json!({})).run(renamed.clone(), Cause::Refused(vec![bearer()]));
    assert_eq!(outcome.to(REGISTER).count(), 1, "clients are kept by the very name of their issuer");
    let credential = outcome.credential();
    assert_eq!(
        (credential.issuer.as_str(), credential.requested.to_string().as_str()),
        (after, "files:read")
    );
    // Metadata that have neither the stored name nor the listed one are those of another issuer.
    let mut world = spelled(after, &json!({})).json(
        &format!("{ISSUER_PLACE}/a"),
        200,
        &metadata_with(&json!({ "issuer": "https://login.example/b" })),
    );
    let outcome = world.run(renamed.clone(), Cause::Refused(vec![bearer()]));
    assert_eq!(outcome.kind(), AuthErrorKind::IssuerMismatch);
    // And what the server lists counts less than what the application says.
    renamed.settings.clients = vec![ClientId::new("mine").issuer(before)];
    let outcome = spelled(after, &json!({})).run(renamed, Cause::Refused(vec![bearer()]));
    assert_eq!(outcome.kind(), AuthErrorKind::IssuerMismatch);
}

#[test]
fn what_is_assumed_of_an_issuer_holds_whether_it_is_named_with_a_final_slash_or_without() {
    let names = ["https://login.example/a", "https://login.example/a/"];
    for (named, found) in [(names[0], names[1]), (names[1], names[0]), (names[0], names[0])] {
        let mut plan = plan();
        plan.settings.dangerous.assume_pkce = vec![Issuer::parse(named).unwrap()];
        plan.settings.dangerous.omit_resource = vec![Issuer::parse(named).unwrap()];
        let mut world = spelled(found, &json!({ "code_challenge_methods_supported": null }));
        let outcome = world.run(plan, Cause::Start);
        assert!(!outcome.form(TOKEN).contains_key("resource"), "{named} {found}");
        assert_eq!(outcome.credential().issuer.as_str(), found);
    }
    let mut other = plan();
    other.settings.dangerous.assume_pkce = vec![Issuer::parse("https://login.example/b").unwrap()];
    let mut world = spelled(names[0], &json!({ "code_challenge_methods_supported": null }));
    assert_eq!(world.run(other, Cause::Start).kind(), AuthErrorKind::PkceUnsupported);
}

#[test]
fn a_client_that_is_bound_to_an_issuer_stays_bound_to_it_when_it_is_renamed_by_a_slash() {
    let mut bound = plan();
    bound.settings.clients = vec![ClientId::new("mine")];
    bound.stored.bound = Some(Issuer::parse("https://login.example/").unwrap());
    assert_eq!(World::good().run(bound.clone(), Cause::Start).credential().client.client_id, "mine");
    bound.stored.bound = Some(Issuer::parse("https://login.example/a").unwrap());
    assert_eq!(World::good().run(bound, Cause::Start).kind(), AuthErrorKind::IssuerChanged);
}

#[test]
fn the_next_issuer_is_asked_where_one_has_no_metadata_three_at_most() {
    let several = |last: &str| json!({ "resource": SERVER, "authorization_servers": ["https://a.example", "https://b.example", last, ISSUER] });
    let mut world = World::good().json(PATH_PLACE, 200, &several(ISSUER));
    assert_eq!(world.run(plan(), Cause::Start).credential().issuer.as_str(), ISSUER);
    let mut world = World::good().json(PATH_PLACE, 200, &several("https://c.example"));
    assert_eq!(world.run(plan(), Cause::Start).kind(), AuthErrorKind::NoMetadata);
    let mut preferring = plan();
    preferring.settings.clients = vec![ClientId::new("mine").issuer(ISSUER)];
    let outcome = world.run(preferring, Cause::Start);
    assert_eq!(outcome.requests[1].url.as_str(), &ISSUER_PLACE[4..]);
}

#[test]
fn a_server_of_2025_03_26_is_its_own_issuer_if_that_is_allowed() {
    let mut plan = plan();
    assert_eq!(World::empty().run(plan.clone(), Cause::Start).kind(), AuthErrorKind::NoResourceMetadata);
    plan.settings.allow_2025_03_26 = true;
    let mut world = World::empty()
        .json("POST https://files.example/register", 201, &json!({ "client_id": "made-1" }))
        .json("POST https://files.example/token", 200, &token())
        .callback("code=c&state=STATE");
    world.run(plan.clone(), Cause::Start).is("login-2025-03-26");
    let own = json!({
        "issuer": "https://files.example",
        "authorization_endpoint": "https://files.example/oauth/authorize",
        "token_endpoint": "https://files.example/oauth/token",
        "registration_endpoint": "https://files.example/oauth/register",
        "code_challenge_methods_supported": ["S256"],
    });
    let mut world = World::empty()
        .json("GET https://files.example/.well-known/oauth-authorization-server", 200, &own)
        .json("POST https://files.example/oauth/register", 201, &json!({ "client_id": "made-1" }))
        .json("POST https://files.example/oauth/token", 200, &token())
        .callback("code=c&state=STATE");
    world.run(plan, Cause::Start).credential();
}

#[test]
fn a_pinned_issuer_and_fixed_endpoints_stand_in_for_metadata() {
    let mut plan = plan();
    plan.settings.issuer = Some(Issuer::parse(ISSUER).unwrap());
    let outcome = World::good().json(PATH_PLACE, 404, &json!({})).run(plan.clone(), Cause::Start);
    assert_eq!(outcome.form(TOKEN)["resource"], SERVER);
    plan.settings.endpoints = vec![FixedEndpoints {
        issuer: Issuer::parse(ISSUER).unwrap(),
        authorization: Endpoint::parse("https://login.example/a").unwrap(),
        token: Endpoint::parse("https://login.example/token").unwrap(),
    }];
    plan.settings.clients = vec![ClientId::new("mine").issuer(ISSUER)];
    assert_eq!(World::good().run(plan.clone(), Cause::Start).kind(), AuthErrorKind::PkceUnsupported);
    plan.settings.dangerous.assume_pkce = vec![Issuer::parse(ISSUER).unwrap()];
    let outcome = World::good().run(plan, Cause::Start);
    assert_eq!(outcome.to(ISSUER_PLACE).count(), 0);
    outcome.credential();
}

#[test]
fn a_redirect_by_name_is_tried_where_the_address_is_refused() {
    let refused = json!({ "error": "invalid_redirect_uri" });
    let mut world =
        World::good().json(REGISTER, 400, &refused).then(REGISTER, 201, &json!({ "client_id": "made-2" }));
    let outcome = world.run(plan(), Cause::Start);
    assert_eq!(outcome.form(TOKEN)["redirect_uri"], "http://localhost:17854/callback");
    let mut world = World::good().json(REGISTER, 400, &refused);
    let outcome = world.run(plan(), Cause::Start);
    assert_eq!(outcome.to(REGISTER).count(), 2);
    assert!(
        matches!(outcome.kind(), AuthErrorKind::RegistrationRefused { error, .. } if error == "invalid_redirect_uri")
    );
}

#[test]
fn a_client_that_the_issuer_forgot_is_registered_anew_once() {
    let gone = json!({ "error": "invalid_client" });
    let mut world = World::good().json(TOKEN, 401, &gone).then(TOKEN, 200, &token());
    world.run(plan(), Cause::Start).is("login-forgotten-client");
    let outcome = World::good().json(TOKEN, 401, &gone).run(plan(), Cause::Start);
    assert_eq!(outcome.to(REGISTER).count(), 2);
    assert_eq!(outcome.kind(), AuthErrorKind::ClientRejected);
    let mut configured = plan();
    configured.settings.clients = vec![ClientId::new("mine").issuer(ISSUER)];
    let outcome = World::good().json(TOKEN, 401, &gone).run(configured, Cause::Start);
    assert_eq!(outcome.to(TOKEN).count(), 1);
}

#[test]
fn offline_access_without_a_refresh_token_is_told() {
    let listed = metadata_with(&json!({ "scopes_supported": ["offline_access"] }));
    let bare = json!({ "access_token": "at-1", "token_type": "bearer" });
    let mut world = World::good().json(ISSUER_PLACE, 200, &listed).json(TOKEN, 200, &bare);
    let outcome = world.run(plan(), Cause::Start);
    assert!(outcome.transcript.contains("&scope=offline_access\n"));
    assert!(outcome.events.iter().any(|event| event.detail.contains("--consent")));
    assert!(!outcome.transcript.contains("prompt"));
    let mut consenting = plan();
    consenting.settings.consent = true;
    assert!(world.run(consenting, Cause::Start).transcript.contains("&prompt=consent\n"));
}

#[test]
fn a_step_up_asks_again_with_all_scopes_and_keeps_the_client() {
    let mut plan = plan();
    let credential = stored();
    plan.stored.registrations = vec![credential.client.clone()];
    plan.stored.credential = Some(credential.into());
    let decoy = json!({
        "resource": SERVER, "authorization_servers": [ISSUER], "scopes_supported": ["decoy"],
    });
    let mut world = World::good().json(PATH_PLACE, 200, &decoy);
    let cause = Cause::Lack(vec![bearer().with("scope", "files:write")], scopes("files:read files:write"));
    world.run(plan.clone(), cause.clone()).is("step-up");
    let refused = "error=invalid_scope&state=STATE&iss=https://login.example";
    let outcome = world.callback(refused).run(plan, cause);
    assert_eq!(outcome.to(REGISTER).count(), 1);
    assert!(matches!(outcome.kind(), AuthErrorKind::AuthorizationRefused { .. }));
}

#[test]
fn a_device_waits_as_it_is_told() {
    let offered = metadata_with(&json!({ "device_authorization_endpoint": "https://login.example/device" }));
    let code = json!({
        "device_code": "dc-1",
        "user_code": "WDJB-\u{1b}[31m",
        "verification_uri": "https://login.example/go",
        "expires_in": 600,
    });
    let pending = json!({ "error": "authorization_pending" });
    let mut world = World::good()
        .json(ISSUER_PLACE, 200, &offered)
        .json("POST https://login.example/device", 200, &code)
        .json(TOKEN, 400, &pending)
        .then(TOKEN, 400, &json!({ "error": "slow_down" }))
        .then(TOKEN, 503, &json!({}))
        .then(TOKEN, 400, &pending)
        .then(TOKEN, 200, &token());
    let mut plan = plan();
    plan.way = Way::Device;
    world.run(plan, Cause::Start).is("login-device");
}
