use std::{
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use toolwire_auth::client::{
    AuthErrorKind,
    store::{CredentialStore as _, FileStore, Key, MemoryStore, Record},
};
use toolwire_auth::clock::ManualClock;
use toolwire_http::client::authorize::Purpose;

use super::world::{World, bound, call, cause};

/// A clock that begins now, so that other processes agree.
fn clock() -> ManualClock {
    ManualClock::at(toolwire_auth::clock::unix_seconds(std::time::SystemTime::now()))
}

#[tokio::test]
async fn a_login_is_used_stored_and_renewed_before_it_ends() {
    let (world, clock, store) = (World::new().await, clock(), MemoryStore::new());
    world.state().lasts = Some(600);
    let oauth = World::oauth().clock(clock.clone()).store(store.clone()).build().unwrap();
    let auth = bound(&oauth, &world);
    for _ in 0..3 {
        assert_eq!(call(&*auth, &world, Purpose::Request).await.unwrap(), 200);
    }
    assert_eq!((world.seen().asked, world.seen().token_requests, auth.identity()), (1, 1, 1));
    clock.advance(Duration::from_secs(541));
    assert_eq!(call(&*auth, &world, Purpose::Background).await.unwrap(), 200);
    assert_eq!((world.seen().asked, world.seen().renewals), (1, 1));
    // A mere refresh is still the same somebody.
    assert_eq!(auth.identity(), 1);
    let record = store.load(&Key::credential(&world.server(), "")).await.unwrap().unwrap();
    assert_eq!(record.generation(), 2);
    // Another program finds it.
    let other = World::oauth().clock(clock).store(store).build().unwrap();
    assert_eq!(call(&*bound(&other, &world), &world, Purpose::Background).await.unwrap(), 200);
    assert_eq!(world.seen().token_requests, 2);
}

#[tokio::test]
async fn many_tasks_that_renew_at_once_send_one_request() {
    let (world, clock) = (World::new().await, clock());
    world.state().lasts = Some(600);
    let oauth = World::oauth().clock(clock.clone()).build().unwrap();
    let auth = bound(&oauth, &world);
    call(&*auth, &world, Purpose::Request).await.unwrap();
    clock.advance(Duration::from_secs(3600));
    world.expire();
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let (auth, world) = (Arc::clone(&auth), world.clone());
            tokio::spawn(async move { call(&*auth, &world, Purpose::Background).await.unwrap() })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), 200);
    }
    let state = world.seen();
    assert_eq!((state.renewals, state.reused, state.asked), (1, false, 1));
}

#[tokio::test]
async fn many_tasks_that_are_refused_at_once_log_in_once() {
    let world = World::new().await;
    let auth = bound(&World::oauth().build().unwrap(), &world);
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let (auth, world) = (Arc::clone(&auth), world.clone());
            tokio::spawn(async move { call(&*auth, &world, Purpose::Request).await.unwrap() })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), 200);
    }
    assert_eq!((world.seen().asked, world.seen().registrations), (1, 1));
}

const CHILD: &str = "TOOLWIRE_TEST_RENEWING_CHILD";

/// What each of the four processes does; nothing unless it is one of them.
#[tokio::test]
async fn renewing_child() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let (port, folder) = task.split_once(' ').unwrap();
    let server = format!("http://127.0.0.1:{port}/mcp");
    let clock = clock();
    clock.advance(Duration::from_secs(3600));
    let oauth = toolwire_auth::client::OAuth::builder("Test")
        .clock(clock)
        .store(FileStore::at(folder))
        .build()
        .unwrap();
    let auth = toolwire_http::client::authorize::Authorization::bind(
        &oauth,
        &server,
        toolwire_http::client::fetch::Fetcher::new(),
    )
    .unwrap();
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let (auth, server) = (Arc::clone(&auth), server.clone());
            tokio::spawn(async move {
                let mut attempt = auth.attempt(Purpose::Background);
                let body = bytes::Bytes::new();
                let hop = toolwire_http::client::authorize::Hop::new(&http::Method::GET, &server, &body);
                let headers = attempt.headers(hop).await.unwrap();
                assert!(headers.contains_key(http::header::AUTHORIZATION));
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_tasks_in_four_processes_renew_at_once_and_nobody_is_logged_out() {
    let world = World::new().await;
    // So long that what the first process gets is good for the others, whose clocks are an hour ahead.
    world.state().lasts = Some(600);
    let folder = std::env::temp_dir().join(format!("toolwire-four-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let oauth = World::oauth().clock(clock()).store(FileStore::at(&folder)).build().unwrap();
    assert_eq!(call(&*bound(&oauth, &world), &world, Purpose::Request).await.unwrap(), 200);
    let program = std::env::current_exe().unwrap();
    let children: Vec<_> = (0..4)
        .map(|_| {
            Command::new(&program)
                .args(["renewal::renewing_child", "--exact", "--nocapture"])
                .env(CHILD, format!("{} {}", world.port, folder.display()))
                .spawn()
                .unwrap()
        })
        .collect();
    let waited = tokio::task::spawn_blocking(move || {
        children.into_iter().all(|mut child| child.wait().unwrap().success())
    });
    assert!(waited.await.unwrap());
    let (renewals, reused) = (world.seen().renewals, world.seen().reused);
    let _ = std::fs::remove_dir_all(&folder);
    assert_eq!((renewals, reused), (1, false));
}

#[tokio::test]
async fn no_fault_of_the_network_or_the_issuer_drops_a_credential() {
    let faults = [(500, "{}"), (429, "{}"), (503, "busy"), (200, "<html>"), (200, "")];
    for fault in faults {
        let (world, clock, store) = (World::new().await, clock(), MemoryStore::new());
        world.state().lasts = Some(600);
        let oauth = World::oauth().clock(clock.clone()).store(store.clone()).build().unwrap();
        let auth = bound(&oauth, &world);
        call(&*auth, &world, Purpose::Request).await.unwrap();
        let key = Key::credential(&world.server(), "");
        let before = store.load(&key).await.unwrap();
        world.state().token_fault = Some(fault);
        // It is due, and good for a little longer.
        clock.advance(Duration::from_secs(570));
        assert_eq!(call(&*auth, &world, Purpose::Request).await.unwrap(), 200, "{fault:?}");
        // Now it has ended.
        clock.advance(Duration::from_secs(60));
        let error = call(&*auth, &world, Purpose::Request).await.unwrap_err();
        assert!(cause(&error).is_temporary(), "{fault:?}: {error:?}");
        assert_eq!(store.load(&key).await.unwrap(), before, "{fault:?}");
        assert_eq!(world.seen().asked, 1, "nobody is asked because of a fault: {fault:?}");
        // The issuer is not asked again at once.
        assert_eq!(world.seen().token_requests, 2, "{fault:?}");
    }
}

#[tokio::test]
async fn a_refresh_token_that_is_void_is_forgotten_and_a_login_follows_if_somebody_waits() {
    let (world, clock, store) = (World::new().await, clock(), MemoryStore::new());
    world.state().lasts = Some(600);
    let oauth = World::oauth().clock(clock.clone()).store(store.clone()).build().unwrap();
    let auth = bound(&oauth, &world);
    call(&*auth, &world, Purpose::Request).await.unwrap();
    world.expire();
    world.revoke();
    let error = call(&*auth, &world, Purpose::Background).await.unwrap_err();
    assert!(cause(&error).needs_login(), "{error:?}");
    assert_eq!((world.seen().renewals, world.seen().asked), (1, 1));
    let record = store.load(&Key::credential(&world.server(), "")).await.unwrap().unwrap();
    assert!(!record.to_json().contains("marked-refresh"));
    assert_eq!(call(&*auth, &world, Purpose::Request).await.unwrap(), 200);
    assert_eq!((world.seen().renewals, world.seen().asked, auth.identity()), (1, 2, 2));
}

#[tokio::test]
async fn a_server_that_always_names_scopes_that_are_not_given_does_not_keep_a_token_from_being_renewed() {
    let world = World::new().await;
    world.state().wanted = Some("read write");
    world.state().grants = Some("read");
    let auth = bound(&World::oauth().build().unwrap(), &world);
    for renewals in 0..3 {
        assert_eq!(call(&*auth, &world, Purpose::Request).await.unwrap(), 200);
        assert_eq!((world.seen().asked, world.seen().renewals), (1, renewals));
        world.expire();
    }
    // The same in the background, where nobody may be asked.
    assert_eq!(call(&*auth, &world, Purpose::Background).await.unwrap(), 200);
    assert_eq!((world.seen().asked, world.seen().renewals), (1, 3));
}

#[tokio::test]
async fn a_server_that_wants_more_with_401_gets_a_renewed_token_and_then_one_with_more() {
    let world = World::new().await;
    world.state().wanted = Some("read");
    let auth = bound(&World::oauth().build().unwrap(), &world);
    assert_eq!(call(&*auth, &world, Purpose::Request).await.unwrap(), 200);
    let place = format!("{}/.well-known/oauth-protected-resource/mcp", world.origin());
    let challenge = format!("Bearer resource_metadata=\"{place}\", scope=\"read write\"");
    world.state().server_fault = Some((401, challenge));
    let error = call(&*auth, &world, Purpose::Request).await.unwrap_err();
    assert_eq!(cause(&error).kind, AuthErrorKind::TokenRejected);
    assert_eq!(world.state().scopes_asked, ["read", "read write"]);
    assert_eq!(world.seen().renewals, 1);
}

#[tokio::test]
async fn a_token_that_has_ended_and_cannot_be_renewed_is_followed_by_a_login() {
    let (world, clock, store) = (World::new().await, clock(), MemoryStore::new());
    world.state().lasts = Some(600);
    let oauth = World::oauth().clock(clock.clone()).store(store.clone()).build().unwrap();
    let auth = bound(&oauth, &world);
    call(&*auth, &world, Purpose::Request).await.unwrap();
    clock.advance(Duration::from_secs(601));
    world.expire();
    world.revoke();
    // Another program that nobody sits at says so.
    let other = toolwire_auth::client::OAuth::builder("Test").clock(clock).store(store).build().unwrap();
    let error = call(&*bound(&other, &world), &world, Purpose::Request).await.unwrap_err();
    assert!(cause(&error).needs_login(), "{error:?}");
    assert_eq!(call(&*auth, &world, Purpose::Request).await.unwrap(), 200);
    assert_eq!(world.seen().asked, 2);
}

#[tokio::test]
async fn without_a_way_to_a_person_a_login_is_an_error_that_says_so() {
    let world = World::new().await;
    let oauth = toolwire_auth::client::OAuth::builder("Test").build().unwrap();
    let error = call(&*bound(&oauth, &world), &world, Purpose::Request).await.unwrap_err();
    assert_eq!(cause(&error).kind, AuthErrorKind::LoginNeeded);
    assert_eq!(world.seen().token_requests, 0);
}

#[tokio::test]
async fn a_credential_that_is_over_for_good_ends_with_a_login_and_not_with_endless_tries() {
    let (world, clock, store) = (World::new().await, clock(), MemoryStore::new());
    world.state().lasts = Some(600);
    let oauth = World::oauth().clock(clock.clone()).store(store.clone()).build().unwrap();
    call(&*bound(&oauth, &world), &world, Purpose::Request).await.unwrap();
    clock.advance(Duration::from_secs(3600));
    world.expire();
    world.revoke();
    let oauth = toolwire_auth::client::OAuth::builder("Test").clock(clock).store(store).build().unwrap();
    for _ in 0..2 {
        let error = call(&*bound(&oauth, &world), &world, Purpose::Request).await.unwrap_err();
        assert!(cause(&error).needs_login(), "{error:?}");
    }
    assert_eq!((world.seen().asked, world.seen().renewals), (1, 1));
}

#[tokio::test]
async fn scopes_that_nobody_can_be_asked_for_are_named() {
    let (world, store) = (World::new().await, MemoryStore::new());
    let oauth = World::oauth().store(store.clone()).scopes(["a"]).build().unwrap();
    call(&*bound(&oauth, &world), &world, Purpose::Request).await.unwrap();
    let challenge = "Bearer error=\"insufficient_scope\", scope=\"a b\"".to_owned();
    world.state().server_fault = Some((403, challenge));
    let oauth = toolwire_auth::client::OAuth::builder("Test").store(store).build().unwrap();
    let error = call(&*bound(&oauth, &world), &world, Purpose::Request).await.unwrap_err();
    let AuthErrorKind::ScopesNeeded { scopes } = &cause(&error).kind else { panic!("{error:?}") };
    assert_eq!((scopes.to_string().as_str(), world.seen().asked), ("b", 1));
}

#[tokio::test]
async fn logging_in_and_out_on_purpose_leaves_nothing_behind() {
    let (world, store) = (World::new().await, MemoryStore::new());
    let oauth = World::oauth().store(store.clone()).build().unwrap();
    let fetcher = toolwire_http::client::fetch::Fetcher::new;
    let prospect = oauth.explain(&world.server(), fetcher(), None).await.unwrap();
    assert!(matches!(prospect, toolwire_auth::client::Prospect::Register(_)), "{prospect:?}");
    assert_eq!((world.seen().asked, world.seen().registrations), (0, 0), "nothing is done");
    let key = Key::credential(&world.server(), "");
    assert!(store.load(&key).await.unwrap().is_none());
    for round in 1..=2 {
        let summary = oauth.log_in(&world.server(), fetcher(), None).await.unwrap();
        assert!(summary.renewable && !format!("{summary:?}").contains("marked-access"));
        assert_eq!(world.seen().asked, round, "each time somebody is asked");
    }
    assert_eq!(world.seen().registrations, 1);
    let out = oauth.log_out(&world.server(), fetcher(), true).await.unwrap().unwrap();
    assert_eq!(out.revoked.unwrap(), toolwire_auth::client::Revoked::NotOffered);
    assert!(store.load(&key).await.unwrap().is_none() && store.clients().await.unwrap().is_empty());
    assert!(oauth.log_out(&world.server(), fetcher(), true).await.unwrap().is_none());
}

#[tokio::test]
async fn a_registration_that_cannot_be_read_is_told_and_made_anew() {
    let (world, store) = (World::new().await, MemoryStore::new());
    let record =
        Record::from_json(br#"{"version":1,"generation":1,"issuer":"https://login.example"}"#).unwrap();
    store.save(&Key::client("https://login.example"), record, 0).await.unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&told);
    let oauth = World::oauth()
        .store(store)
        .on_event(move |event| noted.lock().unwrap().push(event.detail.clone()))
        .build()
        .unwrap();
    call(&*bound(&oauth, &world), &world, Purpose::Request).await.unwrap();
    let told = told.lock().unwrap();
    assert!(told.iter().any(|detail| detail.contains("a registered client cannot be read")), "{told:?}");
    assert_eq!(world.seen().registrations, 1);
}

#[tokio::test]
async fn a_damaged_record_is_replaced_by_the_next_renewal() {
    let (world, clock, store) = (World::new().await, clock(), MemoryStore::new());
    world.state().lasts = Some(600);
    let oauth = World::oauth().clock(clock.clone()).store(store.clone()).build().unwrap();
    let auth = bound(&oauth, &world);
    call(&*auth, &world, Purpose::Request).await.unwrap();
    let key = Key::credential(&world.server(), "");
    let record = store.load(&key).await.unwrap().unwrap();
    let mut damaged: serde_json::Value = serde_json::from_str(&record.to_json()).unwrap();
    (damaged["token"], damaged["lineage"]) = (5.into(), serde_json::Value::Null);
    damaged["generation"] = (record.generation() + 1).into();
    let damaged = Record::from_json(damaged.to_string().as_bytes()).unwrap();
    assert!(damaged.summary().is_err());
    store.save(&key, damaged, record.generation()).await.unwrap();
    clock.advance(Duration::from_secs(601));
    assert_eq!(call(&*auth, &world, Purpose::Request).await.unwrap(), 200);
    let repaired = store.load(&key).await.unwrap().unwrap();
    assert!(repaired.summary().unwrap().unwrap().renewable);
    assert!(repaired.to_json().contains("marked-access-2"));
    assert_eq!((world.seen().asked, world.seen().renewals), (1, 1));
    // The login is the same for links that go on, here and in other processes.
    clock.advance(Duration::from_secs(601));
    assert_eq!(call(&*auth, &world, Purpose::Request).await.unwrap(), 200);
    assert_eq!((world.seen().asked, auth.identity()), (1, 1));
}
