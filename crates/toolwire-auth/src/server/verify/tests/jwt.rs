//! Attacks 1 to 9: tokens that are not for us, not of our issuer, or no access tokens.

use super::*;

/// Says what becomes of a token with these claims, signed as an access token.
async fn verdict(changes: &[(&str, Value)]) -> Result<Verified, VerifyError> {
    typed("at+jwt", changes, |jwt| jwt).await
}

async fn typed(
    typ: &str,
    changes: &[(&str, Value)],
    setters: impl FnOnce(Jwt) -> Jwt,
) -> Result<Verified, VerifyError> {
    let key = key();
    let jwt = prepared(setters(Jwt::keys(set(&[&key]).to_string())));
    let token = key.sign(typ, &claims(changes)).unwrap();
    jwt.verify(&presented(&token), now()).await
}

#[tokio::test]
async fn a_good_token_says_who_what_and_how_long() {
    let verified = verdict(&[("department", json!("maths"))]).await.unwrap();
    assert_eq!(verified.subject, "ada");
    assert_eq!(verified.issuer.as_deref(), Some(ISSUER));
    assert_eq!(verified.client_id.as_deref(), Some("notes"));
    assert_eq!(verified.scopes, ["files:read", "files:write"]);
    assert_eq!(verified.expiry, Expiry::At(at(NOW + 300)));
    assert_eq!(verified.audience, Audience::is(RESOURCE));
    assert_eq!(verified.claims["department"], "maths");
    assert_eq!(verified.key, None);
}

#[tokio::test]
async fn only_byte_equality_of_the_audience_passes() {
    for aud in [
        json!("https://other.example/mcp"),
        json!("https://files.example/mc"),
        json!("https://files.example/mcp/"),
        json!("https://files.example/mcp/x"),
        json!("https://FILES.example/mcp"),
        json!("https://files.example:443/mcp"),
        json!("https://files.example"),
        json!(["https://other.example", "https://files.example/mcp/"]),
        json!([]),
        json!(""),
    ] {
        assert_eq!(reason(verdict(&[("aud", aud.clone())]).await), "it is for another audience", "{aud}");
    }
    for aud in [json!(1), json!({}), json!([RESOURCE, 1]), json!([[RESOURCE]])] {
        assert!(reason(verdict(&[("aud", aud.clone())]).await).starts_with("the claim aud is"), "{aud}");
    }
    assert_eq!(reason(verdict(&[("aud", json!(null))]).await), "it names no audience");
    assert!(verdict(&[("aud", json!(["https://other.example", RESOURCE]))]).await.is_ok());
    let configured =
        typed("at+jwt", &[("aud", json!("api://files"))], |jwt| jwt.audience("api://files")).await;
    assert_eq!(configured.unwrap().audience, Audience::is("api://files"));
}

#[tokio::test]
async fn a_token_of_another_issuer_is_refused_though_its_key_is_ours() {
    for iss in
        [json!("https://evil.example"), json!("https://login.example/"), json!("https://LOGIN.example")]
    {
        assert_eq!(reason(verdict(&[("iss", iss.clone())]).await), "it names another issuer", "{iss}");
    }
    assert_eq!(reason(verdict(&[("iss", json!(null))]).await), "it names no issuer");
    assert_eq!(reason(verdict(&[("iss", json!([ISSUER]))]).await), "the claim iss is not text");
}

#[tokio::test]
async fn issuers_of_tokens_can_be_named_and_follow_a_pattern_for_tenants_that_are_listed() {
    let named = |jwt: Jwt| jwt.token_issuer("https://sts.example/1/");
    assert!(typed("at+jwt", &[("iss", json!("https://sts.example/1/"))], named).await.is_ok());
    assert_eq!(reason(typed("at+jwt", &[], named).await), "it names another issuer", "the configured one");
    let pattern = |jwt: Jwt| jwt.token_issuers("https://login.example/{tid}/v2.0", ["t1", "t2"]);
    let of =
        async |iss: &str, tid: Value| typed("at+jwt", &[("iss", json!(iss)), ("tid", tid)], pattern).await;
    assert!(of("https://login.example/t1/v2.0", json!("t1")).await.is_ok());
    assert!(of("https://login.example/t2/v2.0", json!("t2")).await.is_ok());
    let other = "its claim tid is not that of its issuer";
    assert_eq!(reason(of("https://login.example/t1/v2.0", json!("t2")).await), other);
    assert_eq!(reason(of("https://login.example/t1/v2.0", json!(null)).await), other);
    assert_eq!(reason(of("https://login.example/t3/v2.0", json!("t3")).await), "it names another issuer");
    let jwt = prepared(pattern(Jwt::keys(set(&[&key()]).to_string())));
    assert!(jwt.accepts_issuer(ISSUER, "https://login.example/t2/v2.0"));
    assert!(!jwt.accepts_issuer(ISSUER, ISSUER));
}

#[tokio::test]
async fn unsigned_and_symmetric_tokens_are_refused_before_any_key_is_looked_for() {
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
    let web = Web::default();
    let jwt = prepared(Jwt::at(KEYS).fetch(web.clone()));
    let payload = BASE64.encode(serde_json::to_vec(&claims(&[])).unwrap());
    for alg in ["none", "None", "HS256", "ES512"] {
        let header = BASE64.encode(json!({ "alg": alg }).to_string());
        for token in [
            format!("{header}.{payload}."),
            format!("{header}.{payload}"),
            format!("{header}.{payload}.AAAA"),
        ] {
            reason(jwt.verify(&presented(&token), now()).await);
        }
    }
    assert_eq!(web.asked().len(), 0);
}

#[tokio::test]
async fn algorithms_that_were_not_configured_are_refused_before_any_key_is_looked_for() {
    let web = Web::default();
    let jwt = prepared(Jwt::at(KEYS).algorithms([Algorithm::Rs256]).fetch(web.clone()));
    let token = key().sign("at+jwt", &claims(&[])).unwrap();
    assert_eq!(
        reason(jwt.verify(&presented(&token), now()).await),
        "the algorithm of the token is not accepted"
    );
    assert_eq!(web.asked().len(), 0);
}

#[tokio::test]
async fn times_are_numbers_and_have_a_leeway_of_a_minute() {
    assert!(verdict(&[("exp", json!(NOW - 59))]).await.is_ok());
    for exp in [NOW - 60, NOW - 61, 0] {
        assert_eq!(reason(verdict(&[("exp", json!(exp))]).await), "the token has expired");
    }
    for exp in [json!("2100000000"), json!(-1), json!(1e300), json!(1e18), json!(true), json!([NOW])] {
        assert_eq!(reason(verdict(&[("exp", exp)]).await), "the claim exp is not a time");
    }
    assert_eq!(reason(verdict(&[("exp", json!(null))]).await), "it has no expiry");
    for name in ["nbf", "iat"] {
        assert!(verdict(&[(name, json!(NOW + 60))]).await.is_ok());
        assert!(reason(verdict(&[(name, json!(NOW + 61))]).await).contains("in the future"));
        assert!(reason(verdict(&[(name, json!("soon"))]).await).contains("is not a time"));
    }
    let fraction = f64::from(u32::try_from(NOW).unwrap()) + 0.5;
    assert!(verdict(&[("exp", json!(fraction))]).await.is_ok());
}

#[tokio::test]
async fn other_kinds_of_tokens_are_no_access_tokens() {
    for typ in ["dpop+jwt", "oauth-id-jag+jwt", "logout+jwt", "application/logout+jwt", "secevent+jwt", ""] {
        let refused = typed(typ, &[], |jwt| jwt).await;
        assert_eq!(reason(refused), "its type is that of another kind of token", "{typ}");
    }
    for (name, value) in [
        ("at_hash", json!("x")),
        ("c_hash", json!("x")),
        ("events", json!({})),
        ("token_use", json!("id")),
        ("typ", json!("ID")),
        ("typ", json!("Refresh")),
        ("typ", json!("Logout")),
    ] {
        let refused = typed("JWT", &[(name, value.clone())], |jwt| jwt).await;
        assert!(reason(refused).starts_with("it is not an access token"), "{name} {value}");
    }
    for (name, value) in [("nonce", json!("x")), ("token_use", json!("access")), ("typ", json!("Bearer"))] {
        assert!(typed("JWT", &[(name, value)], |jwt| jwt).await.is_ok(), "{name}");
    }
    assert!(typed("application/AT+jwt", &[], |jwt| jwt).await.is_ok());
    assert_eq!(reason(typed("JWT", &[], Jwt::strict_type).await), "its type is not at+jwt");
    assert!(typed("at+jwt", &[], Jwt::strict_type).await.is_ok());
}

#[tokio::test]
async fn a_token_that_may_be_an_id_token_is_refused() {
    let clientless = [("client_id", json!(null))];
    let why = "neither does its type say that it is an access token, nor is a client named";
    assert_eq!(reason(typed("JWT", &clientless, |jwt| jwt).await), why);
    assert!(typed("at+jwt", &clientless, |jwt| jwt).await.is_ok());
    assert!(typed("JWT", &clientless, |jwt| jwt.dangerous().without_client()).await.is_ok());
    for name in ["azp", "cid", "appid"] {
        let named = [("client_id", json!(null)), (name, json!("notes"))];
        assert!(typed("JWT", &named, |jwt| jwt).await.is_ok(), "{name}");
    }
    let empty = [("client_id", json!(""))];
    assert_eq!(reason(typed("JWT", &empty, |jwt| jwt).await), why);
}

#[tokio::test]
async fn subjects_are_who_is_named_and_nobody_by_default() {
    let client = verdict(&[("sub", json!(null))]).await.unwrap();
    assert_eq!(client.subject, "notes", "a token that stands for a client alone");
    assert!(client.is_client);
    assert!(!verdict(&[("sub", json!("notes"))]).await.unwrap().is_client);
    let nobody = [("sub", json!(null)), ("client_id", json!(null))];
    assert_eq!(reason(verdict(&nobody).await), "it names neither a subject nor a client");
    for sub in [json!(""), json!(7), json!(["ada"])] {
        assert_eq!(reason(verdict(&[("sub", sub)]).await), "its claim sub is not a name");
    }
    let oid = |jwt: Jwt| jwt.subject_claim("oid");
    assert_eq!(typed("at+jwt", &[("oid", json!("x-1"))], oid).await.unwrap().subject, "x-1");
    assert_eq!(reason(typed("at+jwt", &[], oid).await), "it has no claim oid");
    for name in ["azp", "cid", "appid"] {
        let verified = verdict(&[("client_id", json!(null)), (name, json!("other"))]).await.unwrap();
        assert_eq!(verified.client_id.as_deref(), Some("other"));
    }
}

#[tokio::test]
async fn scopes_are_text_or_lists_in_the_claims_that_were_configured() {
    let scopes = async |changes: &[(&str, Value)], more: &'static [&'static str]| {
        typed("at+jwt", changes, |jwt| jwt.scope_claims(more.iter().copied()))
            .await
            .map(|verified| verified.scopes)
    };
    assert_eq!(scopes(&[("scope", json!(null)), ("scp", json!(["a", "b"]))], &[]).await.unwrap(), ["a", "b"]);
    assert_eq!(scopes(&[("scope", json!(" a  b "))], &[]).await.unwrap(), ["a", "b"]);
    assert_eq!(scopes(&[("scope", json!(null))], &[]).await.unwrap(), [""; 0]);
    let roles = ("roles", json!(["admin"]));
    assert_eq!(scopes(&[("scope", json!("a")), roles.clone()], &["roles"]).await.unwrap(), ["a", "admin"]);
    assert_eq!(scopes(&[("scope", json!("a")), roles], &[]).await.unwrap(), ["a"]);
    for scope in [json!(1), json!({}), json!([1])] {
        assert!(matches!(scopes(&[("scope", scope)], &[]).await, Err(VerifyError::Invalid(_))));
    }
}

#[tokio::test]
async fn bound_tokens_say_their_key_or_are_refused() {
    let bound = verdict(&[("cnf", json!({ "jkt": "thumbprint" }))]).await.unwrap();
    assert_eq!(bound.key.as_deref(), Some("thumbprint"));
    for cnf in [
        json!({}),
        json!("x"),
        json!({ "jkt": 1 }),
        json!({ "x5t#S256": "certificate" }),
        json!({ "jkt": "thumbprint", "x5t#S256": "certificate" }),
    ] {
        let refused = reason(verdict(&[("cnf", cnf.clone())]).await);
        assert_eq!(refused, "the token is bound to a key in a way that cannot be checked", "{cnf}");
    }
}

#[tokio::test]
async fn tokens_without_an_audience_pass_only_for_clients_that_were_named() {
    let by_client = |jwt: Jwt| jwt.dangerous().audience_by_client(["notes"]);
    let without = ("aud", json!(null));
    assert_eq!(
        typed("at+jwt", std::slice::from_ref(&without), by_client).await.unwrap().audience,
        Audience::Vouched
    );
    let other = [without.clone(), ("client_id", json!("other"))];
    assert_eq!(reason(typed("at+jwt", &other, by_client).await), "it names no audience");
    let foreign = [("aud", json!("https://other.example"))];
    assert_eq!(reason(typed("at+jwt", &foreign, by_client).await), "it is for another audience");
}

/// Claims that name two audiences under one name, which nothing here writes by itself.
struct TwoAudiences;

impl serde::Serialize for TwoAudiences {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("aud", RESOURCE), ("aud", "https://other.example")])
    }
}

#[tokio::test]
async fn claims_that_are_duplicated_are_refused() {
    let key = key();
    let jwt = prepared(Jwt::keys(set(&[&key]).to_string()));
    let token = key.sign("at+jwt", &TwoAudiences).unwrap();
    let refused = jwt.verify(&presented(&token), now()).await;
    assert_eq!(reason(refused), "the payload of the token is not a JSON object");
}

#[test]
fn settings_that_cannot_work_are_told_when_the_guard_is_built() {
    let refused = |mut jwt: Jwt, issuer: &str| {
        jwt.prepare(&Setting::new(RESOURCE, issuer)).map_err(|error| error.to_string()).unwrap_err()
    };
    let keys = || Jwt::keys(set(&[&key()]).to_string());
    assert_eq!(refused(keys().algorithms([]), ISSUER), "no algorithm is accepted");
    assert!(refused(keys().algorithms([Algorithm::Rs256]), ISSUER).starts_with("none of the keys fits"));
    assert!(refused(Jwt::keys("{}"), ISSUER).starts_with("the keys: "));
    assert!(
        refused(Jwt::at("http://login.example/keys"), ISSUER)
            .ends_with("is plain http and not on this machine")
    );
    assert!(
        refused(Jwt::discovered(), "http://login.example").ends_with("is plain http and not on this machine")
    );
    assert!(refused(Jwt::discovered(), "login").starts_with("the issuer \"login\" "));
    for pattern in ["https://login.example/", "https://{a}/{b}", "https://{}/", "https://{a"] {
        assert!(refused(keys().token_issuers(pattern, ["t1"]), ISSUER).contains("pattern"), "{pattern}");
    }
    assert!(refused(keys().token_issuers("https://{tid}/", [""; 0]), ISSUER).contains("pattern"));
    let mut trusted = Jwt::discovered().dangerous().trust_origin("http://keycloak:8080");
    assert!(trusted.prepare(&Setting::new(RESOURCE, "http://keycloak:8080/realms/a")).is_ok());
}

#[test]
fn a_verifier_knows_the_tokens_of_its_issuer_by_what_they_say() {
    let key = key();
    let jwt = prepared(Jwt::keys(set(&[&key]).to_string()));
    assert!(jwt.may_know(&presented(&key.sign("at+jwt", &claims(&[])).unwrap())));
    let other = key.sign("at+jwt", &claims(&[("iss", json!("https://other.example"))])).unwrap();
    assert!(!jwt.may_know(&presented(&other)));
    assert!(!jwt.may_know(&presented("opaque")));
}
