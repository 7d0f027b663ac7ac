//! Tokens that nobody is asked for, and tokens that are bound to a key.

use super::*;
use crate::{
    client::{
        register::{AuthMethod, ClientId},
        token::SubjectKind,
    },
    jose::{Algorithm, Compact, KeySet, PrivateKey},
};

fn robot(way: Way, client: ClientId) -> Plan {
    let mut plan = Plan { way, ..plan() };
    plan.settings.clients = vec![client.issuer(ISSUER)];
    plan
}

fn with_methods(methods: &[&str]) -> World {
    let changes = json!({
        "token_endpoint_auth_methods_supported": methods,
        "code_challenge_methods_supported": null,
        "authorization_endpoint": null,
    });
    World::good().json(ISSUER_PLACE, 200, &metadata_with(&changes))
}

#[test]
fn client_credentials_by_a_secret() {
    let plan = robot(Way::ClientCredentials, ClientId::new("ci").secret(Secret::from("s")));
    let outcome = with_methods(&["client_secret_basic"]).run(plan, Cause::Refused(vec![bearer()]));
    outcome.is("client-credentials");
    assert!(outcome.credential().refresh.is_none());
}

#[test]
fn client_credentials_by_an_assertion() {
    let key = PrivateKey::generate(Algorithm::Es256).unwrap();
    let keys = KeySet::of([key.public_key().clone()]);
    let plan = robot(Way::ClientCredentials, ClientId::new("ci").key(key));
    let outcome = with_methods(&["private_key_jwt"]).run(plan.clone(), Cause::Start);
    let form = outcome.form(TOKEN);
    let claims = keys.verify(&Compact::parse(&form["client_assertion"]).unwrap()).unwrap().object().unwrap();
    assert_eq!(
        (&claims["iss"], &claims["sub"], &claims["aud"]),
        (&json!("ci"), &json!("ci"), &json!(ISSUER))
    );
    assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 120);
    assert_eq!(form["client_assertion_type"], "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    let other = metadata_with(&json!({ "token_endpoint_auth_signing_alg_values_supported": ["RS256"],
        "token_endpoint_auth_methods_supported": ["private_key_jwt"] }));
    let outcome = World::good().json(ISSUER_PLACE, 200, &other).run(plan, Cause::Start);
    assert_eq!(outcome.kind(), AuthErrorKind::Misconfigured);
}

#[test]
fn assertions_are_dated_by_the_clock_of_the_issuer_if_that_is_far_off() {
    let key = PrivateKey::generate(Algorithm::Es256).unwrap();
    let keys = KeySet::of([key.public_key().clone()]);
    let plan =
        robot(Way::ClientCredentials, ClientId::new("ci").key(key).audience("https://login.example/token"));
    // 1,800,000,000 is 08:00:00.
    for (date, iat) in [
        ("Fri, 15 Jan 2027 08:00:30 GMT", START),
        ("Fri, 15 Jan 2027 08:00:31 GMT", START + 31),
        ("Fri, 15 Jan 2027 07:00:00 GMT", START - 3_600),
        ("Fri, 15 Jan 2027 06:59:59 GMT", START - 3_600),
        ("Fri, 15 Jan 2027 09:00:01 GMT", START + 3_600),
        ("Sat, 01 Jan 2050 00:00:00 GMT", START + 3_600),
    ] {
        let mut world = with_methods(&["private_key_jwt"]).with_header(ISSUER_PLACE, "date", date);
        let outcome = world.run(plan.clone(), Cause::Start);
        let form = outcome.form(TOKEN);
        let claims =
            keys.verify(&Compact::parse(&form["client_assertion"]).unwrap()).unwrap().object().unwrap();
        assert_eq!(
            (&claims["iat"], &claims["aud"]),
            (&json!(iat), &json!("https://login.example/token")),
            "{date}"
        );
        let told = outcome.events.iter().any(|event| event.notice == Some(crate::client::Notice::ClockWrong));
        assert_eq!(told, iat != START);
    }
}

#[test]
fn a_server_that_names_another_issuer_receives_no_secret_assertion_or_platform_token() {
    let mine = "https://mine.example";
    let key = || PrivateKey::generate(Algorithm::Es256).unwrap();
    let idp = Idp {
        issuer: Issuer::parse("https://idp.example").unwrap(),
        client_id: "notes-idp".into(),
        subject: SubjectKind::IdToken,
    };
    let secret = || ClientId::new("ci").secret(Secret::from("marked"));
    for (way, client) in [
        (Way::ClientCredentials, secret()),
        (Way::ClientCredentials, ClientId::new("ci").key(key()).audience("https://mine.example/token")),
        (Way::Workload, ClientId::new("ci").method(AuthMethod::None)),
        (Way::Enterprise(idp), secret()),
        (Way::Device, secret()),
        (Way::Browser(redirects()), ClientId::new("ci").key(key())),
    ] {
        let (person, mut plan) = (way.asks_a_person(), Plan { way, ..plan() });
        for client in [client.clone().issuer(mine), client] {
            let has_issuer = client.issuer.is_some();
            plan.settings.clients = vec![client];
            let metadata = metadata_with(&json!({
                "registration_endpoint": null,
                "device_authorization_endpoint": "https://login.example/device",
                "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt", "none"],
            }));
            let outcome = World::good().json(ISSUER_PLACE, 200, &metadata).run(plan.clone(), Cause::Start);
            assert!(outcome.requests.iter().all(|request| request.method == "GET"), "{}", outcome.transcript);
            assert!(!outcome.transcript.contains("assert") && !outcome.transcript.contains("identify"));
            let expected = match (has_issuer, person) {
                (false, _) => AuthErrorKind::Misconfigured,
                (true, false) => AuthErrorKind::IssuerChanged,
                (true, true) => AuthErrorKind::RegistrationImpossible,
            };
            assert_eq!(outcome.kind(), expected);
        }
    }
}

#[test]
fn a_recorded_client_gets_back_its_secret_only_at_its_own_issuer() {
    let mut plan = plan();
    plan.settings.clients = vec![ClientId::new("ci").secret(Secret::from("s"))];
    let mut registration = stored().client;
    (registration.client_id, registration.source) =
        ("ci".into(), crate::client::register::Source::Configured);
    let secret = |plan: &Plan| crate::client::register::recorded(plan, &registration).registration.secret;
    assert_eq!(secret(&plan), None);
    plan.settings.issuer = Some(Issuer::parse("https://mine.example").unwrap());
    assert_eq!(secret(&plan), None);
    plan.settings.issuer = Some(Issuer::parse(ISSUER).unwrap());
    assert_eq!(secret(&plan), Some(Secret::from("s")));
}

#[test]
fn robots_are_never_registered() {
    let plan = Plan { way: Way::ClientCredentials, ..plan() };
    let outcome = World::good().run(plan, Cause::Start);
    assert_eq!(outcome.to(REGISTER).count(), 0);
    assert_eq!(outcome.kind(), AuthErrorKind::RegistrationImpossible);
}

#[test]
fn workload_identity_is_one_request() {
    let plan = robot(Way::Workload, ClientId::new("ci").method(AuthMethod::None));
    World::good().run(plan.clone(), Cause::Start).is("workload");
    let outcome =
        World::good().json(TOKEN, 400, &json!({ "error": "invalid_grant" })).run(plan, Cause::Start);
    assert_eq!(outcome.to(TOKEN).count(), 1);
    assert_eq!(outcome.kind(), AuthErrorKind::GrantRejected);
}

const IDP_TOKEN: &str = "POST https://idp.example/token";

fn enterprise(answer: &Value) -> (World, Plan) {
    let idp = json!({ "issuer": "https://idp.example", "token_endpoint": "https://idp.example/token" });
    let world = with_methods(&["client_secret_basic"])
        .json("GET https://idp.example/.well-known/openid-configuration", 200, &idp)
        .json(IDP_TOKEN, 200, answer);
    let idp = Idp {
        issuer: Issuer::parse("https://idp.example").unwrap(),
        client_id: "notes-idp".into(),
        subject: SubjectKind::IdToken,
    };
    (world, robot(Way::Enterprise(idp), ClientId::new("notes").secret(Secret::from("s"))))
}

#[test]
fn enterprise_managed_authorization() {
    let answer = json!({
        "access_token": "jag-1",
        "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "token_type": "N_A",
    });
    let (mut world, plan) = enterprise(&answer);
    world.run(plan, Cause::Refused(vec![bearer().with("scope", "files:read")])).is("enterprise");
}

#[test]
fn an_identity_assertion_has_to_be_one() {
    let kind = "urn:ietf:params:oauth:token-type:id-jag";
    for answer in [
        json!({ "access_token": "jag-1", "issued_token_type": kind, "token_type": "Bearer" }),
        json!({ "access_token": "jag-1", "token_type": "N_A" }),
        json!({ "access_token": "jag-1", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "N_A" }),
    ] {
        let (mut world, plan) = enterprise(&answer);
        let outcome = world.run(plan, Cause::Start);
        assert_eq!(outcome.to(TOKEN).count(), 0);
        assert_eq!(outcome.kind(), AuthErrorKind::WrongTokenType);
    }
}

fn proof(request: &Request) -> serde_json::Map<String, Value> {
    let text = request.headers["dpop"].to_str().unwrap();
    let compact = Compact::parse(text).unwrap();
    let key = compact.header().embedded_key().unwrap().unwrap();
    assert!(compact.header().is_type("dpop+jwt"));
    key.verify(&compact).unwrap().object().unwrap()
}

#[test]
fn a_token_is_bound_where_only_that_is_offered() {
    let bound = json!({ "access_token": "at-1", "token_type": "DPoP" });
    let dpop = Challenge::new("DPoP").with("algs", "ES256");
    let mut world = World::good().json(TOKEN, 200, &bound);
    let outcome = world.run(plan(), Cause::Refused(vec![dpop.clone()]));
    let claims = proof(outcome.to(TOKEN).next().unwrap());
    assert_eq!((&claims["htm"], &claims["htu"]), (&json!("POST"), &json!("https://login.example/token")));
    assert!(!claims.contains_key("nonce") && !claims.contains_key("ath"));
    assert!(outcome.transcript.contains("&dpop_jkt="));
    assert_eq!(outcome.credential().kind.scheme(), "DPoP");
    let outcome = World::good().run(plan(), Cause::Refused(vec![dpop.clone(), bearer()]));
    assert!(!outcome.transcript.contains("dpop"));
    let required = json!({ "resource": SERVER, "authorization_servers": [ISSUER], "dpop_bound_access_tokens_required": true });
    let mut world = World::good().json(PATH_PLACE, 200, &required).json(TOKEN, 200, &bound);
    assert!(world.run(plan(), Cause::Refused(vec![bearer()])).transcript.contains("dpop: SIGNED"));
    let kind = World::good().run(plan(), Cause::Refused(vec![dpop])).kind();
    assert_eq!(kind, AuthErrorKind::WrongTokenType);
}

#[test]
fn the_nonce_of_the_issuer_is_used_once_with_a_new_proof() {
    let wanted = json!({ "error": "use_dpop_nonce" });
    let bound = json!({ "access_token": "at-1", "token_type": "DPoP" });
    let mut always = plan();
    always.settings.dpop = Dpop::Always;
    let mut world = World::good()
        .json(TOKEN, 400, &wanted)
        .with_header(TOKEN, "dpop-nonce", "n-1")
        .then(TOKEN, 200, &bound);
    let outcome = world.run(always.clone(), Cause::Start);
    let proofs: Vec<_> = outcome.to(TOKEN).map(proof).collect();
    assert_eq!((proofs.len(), &proofs[1]["nonce"]), (2, &json!("n-1")));
    assert_ne!(proofs[0]["jti"], proofs[1]["jti"]);
    let credential = outcome.credential();
    let outcome = World::good()
        .json(TOKEN, 400, &wanted)
        .with_header(TOKEN, "dpop-nonce", "n-1")
        .run(always.clone(), Cause::Start);
    assert_eq!(outcome.to(TOKEN).count(), 2);
    always.settings.dpop = Dpop::WhenAsked;
    always.stored.credential = Some(credential.into());
    let outcome = World::good().json(TOKEN, 200, &bound).run(always, Cause::Start);
    assert!(outcome.transcript.contains("dpop: SIGNED"), "what was bound stays bound");
}

#[test]
fn proofs_are_signed_with_an_algorithm_that_all_know() {
    let listed = metadata_with(&json!({ "dpop_signing_alg_values_supported": ["RS256", "EdDSA"] }));
    let bound = json!({ "access_token": "at-1", "token_type": "DPoP" });
    let mut always = plan();
    always.settings.dpop = Dpop::Always;
    let mut world = World::good().json(ISSUER_PLACE, 200, &listed).json(TOKEN, 200, &bound);
    let key = world.run(always.clone(), Cause::Start).credential().dpop.unwrap();
    assert_eq!(key.algorithm(), Algorithm::EdDsa);
    let none = metadata_with(&json!({ "dpop_signing_alg_values_supported": ["none"] }));
    let kind = World::good().json(ISSUER_PLACE, 200, &none).run(always, Cause::Start).kind();
    assert_eq!(kind, AuthErrorKind::KeyFailed);
}
