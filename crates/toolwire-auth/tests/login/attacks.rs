use std::{
    fmt::Write as _,
    sync::{Arc, Mutex},
    time::Duration,
};

use toolwire_auth::client::{AuthErrorKind, store::MemoryStore};
use toolwire_http::client::authorize::Purpose;

use super::world::{Silent, World, bound, call, cause};

#[tokio::test]
async fn a_server_that_never_accepts_a_token_gets_one_login() {
    let world = World::new().await;
    let place = format!("http://127.0.0.1:{}/.well-known/oauth-protected-resource/mcp", world.port);
    world.state().server_fault = Some((401, format!("Bearer resource_metadata=\"{place}\"")));
    let auth = bound(&World::oauth().build().unwrap(), &world);
    let error = call(&*auth, &world, Purpose::Request).await.unwrap_err();
    assert_eq!(cause(&error).kind, AuthErrorKind::TokenRejected);
    assert_eq!(world.seen().asked, 1);
}

#[tokio::test]
async fn a_server_that_always_wants_more_scopes_is_given_up() {
    let world = World::new().await;
    let auth = bound(&World::oauth().build().unwrap(), &world);
    assert_eq!(call(&*auth, &world, Purpose::Request).await.unwrap(), 200);
    world.state().server_fault = Some((403, "Bearer error=\"insufficient_scope\", scope=\"a\"".to_owned()));
    let error = call(&*auth, &world, Purpose::Request).await.unwrap_err();
    assert_eq!(cause(&error).kind, AuthErrorKind::StepUpFutile);
    // The next request of the same kind does not even try.
    call(&*auth, &world, Purpose::Request).await.unwrap_err();
    assert_eq!(world.state().scopes_asked, ["", "a"]);
}

#[tokio::test]
async fn nothing_in_the_background_ever_asks_a_person() {
    let world = World::new().await;
    let auth = bound(&World::oauth().build().unwrap(), &world);
    let error = call(&*auth, &world, Purpose::Background).await.unwrap_err();
    assert_eq!(cause(&error).kind, AuthErrorKind::LoginNeeded);
    world.state().server_fault = Some((403, "Bearer error=\"insufficient_scope\", scope=\"a\"".to_owned()));
    assert!(call(&*auth, &world, Purpose::Background).await.is_err());
    assert_eq!(world.seen().asked, 0);
}

#[tokio::test]
async fn any_other_403_is_left_as_it_is() {
    let world = World::new().await;
    let auth = bound(&World::oauth().build().unwrap(), &world);
    world.state().server_fault = Some((403, "Bearer error=\"invalid_token\"".to_owned()));
    assert_eq!(call(&*auth, &world, Purpose::Request).await.unwrap(), 403);
    assert_eq!(world.seen().asked, 0);
}

#[tokio::test]
async fn a_login_ends_with_the_last_of_those_who_wait_for_it() {
    let (world, person) = (World::new().await, Silent::default());
    let oauth = toolwire_auth::client::OAuth::builder("Test").login(person.clone()).build().unwrap();
    let auth = bound(&oauth, &world);
    let calls: Vec<_> = (0..2)
        .map(|_| {
            let (auth, world) = (Arc::clone(&auth), world.clone());
            tokio::spawn(async move { call(&*auth, &world, Purpose::Request).await })
        })
        .collect();
    let told = |count: usize| {
        let person = person.clone();
        async move {
            let waiting = async {
                while person.0.lock().unwrap().len() < count {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("nothing more was told");
            person.0.lock().unwrap().clone()
        }
    };
    assert_eq!(told(1).await, ["asked"]);
    let mut calls = calls.into_iter();
    calls.next().unwrap().abort();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(told(1).await, ["asked"]);
    calls.next().unwrap().abort();
    assert_eq!(told(2).await, ["asked", "done"]);
}

#[tokio::test]
async fn no_secret_is_in_an_event_an_error_or_what_is_printed() {
    let (world, said) = (World::new().await, Arc::new(Mutex::new(String::new())));
    let telling = Arc::clone(&said);
    let oauth = World::oauth()
        .store(MemoryStore::new())
        .on_event(move |event| writeln!(telling.lock().unwrap(), "{event} {event:?}").unwrap())
        .build()
        .unwrap();
    let auth = bound(&oauth, &world);
    assert_eq!(call(&*auth, &world, Purpose::Request).await.unwrap(), 200);
    world.expire();
    world.state().token_fault = Some((400, r#"{"error":"invalid_grant"}"#));
    let error = call(&*auth, &world, Purpose::Request).await.unwrap_err();
    let all = format!("{} {oauth:?} {auth:?} {error:?} {}", said.lock().unwrap(), cause(&error));
    for secret in ["marked-access", "marked-refresh", "marked-code"] {
        assert!(!all.contains(secret), "{all}");
    }
    assert!(all.contains("renewing the token"), "{all}");
}
