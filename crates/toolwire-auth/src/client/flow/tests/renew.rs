//! Renewing what is stored.

use super::*;
use crate::client::register::ClientId;

fn with(credential: Credential) -> Plan {
    let mut plan = plan();
    plan.stored.registrations = vec![credential.client.clone()];
    plan.stored.credential = Some(credential.into());
    plan
}

#[test]
fn with_the_recorded_resource_and_scopes() {
    World::good().run(with(stored()), Cause::Expired).is("renewal");
}

#[test]
fn a_refused_token_is_renewed_while_its_issuer_is_listed() {
    let outcome = World::good().run(with(stored()), Cause::Refused(vec![bearer()]));
    assert_eq!(outcome.form(TOKEN)["grant_type"], "refresh_token");
    assert_eq!(outcome.requests.len(), 2);
}

#[test]
fn no_new_refresh_token_keeps_the_old_one() {
    let bare = json!({ "access_token": "at-2", "token_type": "Bearer" });
    let renewed = World::good().json(TOKEN, 200, &bare).run(with(stored()), Cause::Expired).credential();
    assert_eq!(renewed.refresh.unwrap().expose(), "rt-1");
    assert_eq!(renewed.granted, scopes("files:read"));
    let rotated = json!({ "access_token": "at-2", "token_type": "Bearer", "refresh_token": "rt-2" });
    let renewed = World::good().json(TOKEN, 200, &rotated).run(with(stored()), Cause::Expired).credential();
    assert_eq!(renewed.refresh.unwrap().expose(), "rt-2");
}

#[test]
fn a_rejected_refresh_token_is_deleted_and_a_person_asked() {
    let gone = json!({ "error": "invalid_grant" });
    let mut world = World::good().json(TOKEN, 400, &gone).then(TOKEN, 200, &token());
    world.run(with(stored()), Cause::Expired).is("renewal-rejected");
    let again =
        World::good().json(TOKEN, 400, &gone).then(TOKEN, 200, &token()).run(with(stored()), Cause::Expired);
    assert_eq!(again.credential().granted, scopes("files:read"), "no scope is lost by logging in again");
    let mut background = with(stored());
    background.may_ask = false;
    let outcome = World::good().json(TOKEN, 400, &gone).run(background, Cause::Expired);
    assert!(matches!(&outcome.changes[..], [Change::RefreshRejected(token)] if token.expose() == "rt-1"));
    assert!(outcome.result.unwrap_err().needs_login());
}

#[test]
fn another_final_refusal_needs_a_login_and_deletes_nothing() {
    let mut background = with(stored());
    background.may_ask = false;
    let mut world = World::good().json(TOKEN, 400, &json!({ "error": "invalid_request" }));
    let outcome = world.run(background, Cause::Expired);
    assert!(outcome.changes.is_empty());
    assert!(outcome.result.unwrap_err().needs_login());
}

#[test]
fn a_fault_changes_nothing_and_is_temporary() {
    for mut world in [
        World::good().json(TOKEN, 503, &json!({})),
        World::good().json(TOKEN, 429, &json!({ "error": "invalid_grant" })),
        World::good().json(TOKEN, 200, &json!("garbage")),
        World::good().down(TOKEN, FetchErrorKind::Network),
    ] {
        let outcome = world.run(with(stored()), Cause::Expired);
        assert!(outcome.changes.is_empty());
        let error = outcome.result.unwrap_err();
        assert!(error.is_temporary() && !error.needs_login(), "{error}");
    }
}

#[test]
fn scopes_that_are_not_wanted_are_left_out_once() {
    let unwanted = json!({ "error": "invalid_scope" });
    let mut world = World::good().json(TOKEN, 400, &unwanted).then(TOKEN, 200, &token());
    let outcome = world.run(with(stored()), Cause::Expired);
    let bodies: Vec<_> = outcome.to(TOKEN).map(|request| request.body.clone()).collect();
    let has_scope = |body: &[u8]| url::form_urlencoded::parse(body).any(|(name, _)| name == "scope");
    assert!(has_scope(&bodies[0]) && !has_scope(&bodies[1]) && bodies.len() == 2);
    assert_eq!(outcome.credential().granted, scopes("files:read"));
    let mut background = with(stored());
    background.may_ask = false;
    let outcome = World::good().json(TOKEN, 400, &unwanted).run(background, Cause::Expired);
    assert_eq!(outcome.to(TOKEN).count(), 2);
    assert!(outcome.result.unwrap_err().needs_login());
}

#[test]
fn a_credential_is_renewed_with_the_client_it_was_made_with() {
    let mut plan = with(stored());
    plan.settings.clients = vec![ClientId::new("other").issuer(ISSUER)];
    let outcome = World::good().run(plan, Cause::Expired);
    assert_eq!(outcome.form(TOKEN)["client_id"], "made-1");
}
