//! Logins that must not go on.

use super::*;

fn refused(world: &mut World) -> Outcome {
    let outcome = world.run(plan(), Cause::Start);
    assert_eq!(outcome.to(TOKEN).count(), 0, "{}", outcome.transcript);
    outcome
}

#[test]
fn the_resource_is_another() {
    let evil = json!({ "resource": "https://evil.example/mcp", "authorization_servers": [ISSUER] });
    refused(&mut World::good().json(PATH_PLACE, 200, &evil)).is("refused-resource-mismatch");
}

#[test]
fn the_metadata_are_another_issuers() {
    let evil = metadata_with(&json!({ "issuer": "https://evil.example" }));
    refused(&mut World::good().json(ISSUER_PLACE, 200, &evil)).is("refused-issuer-mismatch");
}

#[test]
fn the_response_is_another_issuers() {
    let mut world = World::good().callback("code=c&state=STATE&iss=https://evil.example");
    refused(&mut world).is("refused-iss");
}

#[test]
fn the_rows_of_iss() {
    let rows = [
        // advertised, what came, whether it goes on
        (json!(true), Some(ISSUER), true),
        (json!(true), None, false),
        (json!(true), Some("https://evil.example"), false),
        (json!(true), Some("https://login.example/"), false),
        (json!(null), Some(ISSUER), true),
        (json!(null), None, true),
        (json!(null), Some("https://evil.example"), false),
        (json!(null), Some("HTTPS://login.example"), false),
        (json!(false), Some("https://login.example:443"), false),
        (json!(false), None, true),
    ];
    for (advertised, iss, fine) in rows {
        let metadata =
            metadata_with(&json!({ "authorization_response_iss_parameter_supported": advertised }));
        let iss = iss.map(|iss| format!("&iss={iss}")).unwrap_or_default();
        let mut world =
            World::good().json(ISSUER_PLACE, 200, &metadata).callback(&format!("code=c&state=STATE{iss}"));
        let outcome = world.run(plan(), Cause::Start);
        assert_eq!(outcome.to(TOKEN).count(), usize::from(fine), "{advertised} {iss}");
        if !fine {
            assert_eq!(outcome.kind(), AuthErrorKind::IssuerMismatch, "{advertised} {iss}");
        }
    }
}

#[test]
fn places_that_cannot_answer_are_not_places_without_metadata() {
    use FetchErrorKind as Fault;
    let kind = |mut world: World| world.run(plan(), Cause::Start).kind();
    for status in [500, 503, 408, 429] {
        assert_eq!(
            kind(World::good().json(PATH_PLACE, status, &json!({}))),
            AuthErrorKind::Unavailable,
            "{status}"
        );
        assert_eq!(
            kind(World::good().json(REGISTER, status, &json!({}))),
            AuthErrorKind::Unavailable,
            "{status}"
        );
        assert_eq!(
            kind(World::good().json(TOKEN, status, &json!({}))),
            AuthErrorKind::Unavailable,
            "{status}"
        );
    }
    for page in [PATH_PLACE, REGISTER, TOKEN] {
        assert_eq!(kind(World::good().down(page, Fault::Network)), AuthErrorKind::Unavailable, "{page}");
        assert_eq!(kind(World::good().down(page, Fault::Timeout)), AuthErrorKind::Unavailable, "{page}");
    }
    for page in [PATH_PLACE, ISSUER_PLACE, REGISTER, TOKEN] {
        assert_eq!(
            kind(World::good().down(page, Fault::Forbidden)),
            AuthErrorKind::MetadataRefused,
            "{page}"
        );
    }
    let openid = "GET https://login.example/.well-known/openid-configuration";
    let away = || World::good().json(ISSUER_PLACE, 503, &json!({})).json(openid, 503, &json!({}));
    assert_eq!(kind(away()), AuthErrorKind::Unavailable);
    let why = away().run(plan(), Cause::Start).result.unwrap_err().to_string();
    assert!(why.contains("https://login.example cannot be asked at the moment: status 503"), "{why}");
    let other = World::good().json(ISSUER_PLACE, 503, &json!({})).json(openid, 200, &metadata());
    assert!({ other }.run(plan(), Cause::Start).result.is_ok());
    let absent = World::good().json(ISSUER_PLACE, 503, &json!({}));
    assert_eq!(kind(absent), AuthErrorKind::NoMetadata);
}

#[test]
fn a_guess_rules_out_itself_and_what_is_advertised_has_to_be_right() {
    let challenge = bearer().with("resource_metadata", &PATH_PLACE[4..]);
    let whole = json!({ "resource": "https://files.example", "authorization_servers": [ISSUER] });
    for (page, kind) in [
        (json!([1]), AuthErrorKind::MetadataRefused),
        (json!({ "hello": true }), AuthErrorKind::MetadataRefused),
        (json!({ "resource": 1, "authorization_servers": [ISSUER] }), AuthErrorKind::MetadataRefused),
        (json!({ "resource": SERVER }), AuthErrorKind::NoIssuers),
    ] {
        let mut world = World::good().json(PATH_PLACE, 200, &page).json(ROOT_PLACE, 200, &whole);
        assert!(world.run(plan(), Cause::Start).result.is_ok(), "{page}");
        assert_eq!(world.run(plan(), Cause::Refused(vec![challenge.clone()])).kind(), kind, "{page}");
    }
    let none = json!({ "resource": SERVER, "authorization_servers": [] });
    assert_eq!(
        World::good().json(PATH_PLACE, 200, &none).run(plan(), Cause::Start).kind(),
        AuthErrorKind::NoIssuers
    );
    let mut gone = World::good().json(PATH_PLACE, 404, &json!({})).json(ROOT_PLACE, 200, &whole);
    let kind = gone.run(plan(), Cause::Refused(vec![challenge])).kind();
    assert_eq!(kind, AuthErrorKind::NoResourceMetadata);
}

#[test]
fn nobody_is_asked_where_nobody_may_be() {
    let mut plan = plan();
    plan.may_ask = false;
    let outcome = World::good().run(plan, Cause::Start);
    assert!(outcome.result.as_ref().unwrap_err().needs_login());
    assert_eq!(outcome.kind(), AuthErrorKind::LoginNeeded);
}

#[test]
fn the_person_declines() {
    let mut world = World::good().callback("error=access_denied&state=STATE&iss=https://login.example");
    assert_eq!(refused(&mut world).kind(), AuthErrorKind::Declined);
    let mut world = World::good().callback("error=server%1b_error&state=STATE&iss=https://login.example");
    assert_eq!(
        refused(&mut world).kind(),
        AuthErrorKind::AuthorizationRefused { error: "server?_error".into() }
    );
}

#[test]
fn parameters_of_the_protocol_are_not_the_applications() {
    for name in crate::client::authorize::PROTOCOL_PARAMETERS {
        let mut plan = plan();
        plan.settings.authorize_params = vec![(name.into(), "x".into())];
        assert_eq!(World::good().run(plan, Cause::Start).kind(), AuthErrorKind::Misconfigured, "{name}");
    }
    let mut plan = plan();
    plan.settings.authorize_params = vec![("audience".into(), "api".into())];
    assert!(World::good().run(plan, Cause::Start).transcript.contains("&audience=api\n"));
}

#[test]
fn the_rows_of_the_token_endpoint() {
    let refused = |error: &str| AuthErrorKind::TokenRefused { error: error.into() };
    let rows = [
        (400, json!({ "error": "invalid_grant" }), AuthErrorKind::GrantRejected),
        (200, json!({ "error": "invalid_grant" }), AuthErrorKind::GrantRejected),
        (400, json!({ "error": "invalid_scope" }), AuthErrorKind::ScopeRejected),
        (400, json!({ "error": "invalid_target" }), AuthErrorKind::ResourceRejected),
        (400, json!({ "error": "temporarily_unavailable" }), AuthErrorKind::Unavailable),
        (400, json!({ "error": "use_dpop_nonce" }), refused("use_dpop_nonce")),
        (400, json!({ "error": "else" }), refused("else")),
        (400, json!({}), refused("")),
        (400, json!("text"), AuthErrorKind::Unavailable),
        (200, json!("text"), AuthErrorKind::Unavailable),
        (307, json!({}), AuthErrorKind::TokenInvalid),
        (200, json!({ "access_token": "a" }), AuthErrorKind::WrongTokenType),
        (200, json!({ "access_token": "a", "token_type": "mac" }), AuthErrorKind::WrongTokenType),
        (200, json!({ "access_token": "a", "token_type": "DPoP" }), AuthErrorKind::WrongTokenType),
        (200, json!({ "token_type": "Bearer" }), AuthErrorKind::TokenInvalid),
        (200, json!({ "access_token": "", "token_type": "Bearer" }), AuthErrorKind::TokenInvalid),
        (200, json!({ "access_token": "a\r\nb", "token_type": "Bearer" }), AuthErrorKind::TokenInvalid),
        (
            200,
            json!({ "access_token": "a", "token_type": "Bearer", "expires_in": -1 }),
            AuthErrorKind::TokenInvalid,
        ),
        (
            200,
            json!({ "access_token": "a", "token_type": "Bearer", "expires_in": "x" }),
            AuthErrorKind::TokenInvalid,
        ),
        (
            200,
            json!({ "access_token": "a", "token_type": "Bearer", "scope": "\"" }),
            AuthErrorKind::TokenInvalid,
        ),
    ];
    for (status, body, kind) in rows {
        assert_eq!(
            World::good().json(TOKEN, status, &body).run(plan(), Cause::Start).kind(),
            kind,
            "{status} {body}"
        );
    }
}

#[test]
fn what_a_token_endpoint_may_leave_open() {
    let granted = |body: Value| World::good().json(TOKEN, 200, &body).run(plan(), Cause::Start).credential();
    let bare = granted(json!({ "access_token": "a", "token_type": "bEARER" }));
    assert_eq!((bare.expires, bare.refresh), (None, None));
    assert!(!granted(json!({ "access_token": "a", "token_type": "Bearer" })).is_due(UNIX_EPOCH));
    let digits =
        granted(json!({ "access_token": "a", "token_type": "Bearer", "expires_in": "60", "scope": "a,b" }));
    assert_eq!(digits.expires.unwrap().duration_since(digits.received).unwrap().as_secs(), 60);
    assert_eq!(digits.granted, scopes("a b"));
    let at = |seconds| digits.received + Duration::from_secs(seconds);
    assert!(
        !digits.is_due(at(53))
            && digits.is_due(at(54))
            && !digits.is_expired(at(59))
            && digits.is_expired(at(60))
    );
}
