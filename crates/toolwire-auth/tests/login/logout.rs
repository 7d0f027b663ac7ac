use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use toolwire_auth::{
    client::{
        AuthErrorKind, OAuth, OAuthBuilder, Revoked,
        register::ClientId,
        store::{
            CredentialStore, FileStore, Key, MemoryStore, Record, StoreError, StoreErrorKind, StoreLock,
        },
    },
    clock::ManualClock,
    fetch::{BoxFuture, Fetch, FetchError, Guarded, Reach, Request, Response},
};
use toolwire_http::client::{authorize::Purpose, fetch::Fetcher};

use super::world::{World, bound, call, cause};

/// A clock that begins now, so that other processes agree.
fn clock() -> ManualClock {
    ManualClock::at(toolwire_auth::clock::unix_seconds(std::time::SystemTime::now()))
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("toolwire-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Self(folder)
    }

    /// A client with a store of its own, as another process has it.
    fn client(&self, clock: &ManualClock) -> OAuthBuilder {
        World::oauth().clock(clock.clone()).store(FileStore::at(&self.0))
    }

    async fn stored(&self, world: &World) -> Option<serde_json::Value> {
        let record = FileStore::at(&self.0).load(&Key::credential(&world.server(), "")).await.unwrap();
        record.map(|record| serde_json::from_str(&record.to_json()).unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn log_out(oauth: &OAuth, world: &World) {
    let out = oauth.log_out(&world.server(), Fetcher::new(), false).await.unwrap().unwrap();
    assert_eq!(out.revoked, Ok(Revoked::NotOffered), "its tokens stay good");
}

async fn log_in(oauth: &OAuth, world: &World) {
    oauth.log_in(&world.server(), Fetcher::new(), None).await.unwrap();
}

#[tokio::test]
async fn a_link_in_use_neither_uses_nor_renews_a_login_after_a_logout() {
    let (world, clock, store) = (World::new().await, clock(), MemoryStore::new());
    world.state().lasts = Some(600);
    let oauth = World::oauth().clock(clock.clone()).store(store.clone()).build().unwrap();
    let link = bound(&oauth, &world);
    assert_eq!(call(&*link, &world, Purpose::Request).await.unwrap(), 200);
    let identity = link.identity();
    log_out(&oauth, &world).await;
    assert_ne!(link.identity(), identity);
    for wait in [0, 3600] {
        clock.advance(Duration::from_secs(wait));
        let error = call(&*link, &world, Purpose::Background).await.unwrap_err();
        assert_eq!(cause(&error).kind, AuthErrorKind::LoginNeeded);
    }
    assert_eq!(world.seen().token_requests, 1);
    assert!(store.load(&Key::credential(&world.server(), "")).await.unwrap().is_none());
    // The next login is used as any other.
    log_in(&oauth, &world).await;
    assert_eq!(call(&*link, &world, Purpose::Background).await.unwrap(), 200);
}

#[tokio::test]
async fn another_process_does_not_renew_or_store_a_login_after_a_logout() {
    let (world, clock, folder) = (World::new().await, clock(), Folder::new("logout"));
    world.state().lasts = Some(600);
    let (host, program) = (folder.client(&clock).build().unwrap(), folder.client(&clock).build().unwrap());
    let link = bound(&host, &world);
    assert_eq!(call(&*link, &world, Purpose::Request).await.unwrap(), 200);
    log_out(&program, &world).await;
    clock.advance(Duration::from_secs(3600));
    let error = call(&*link, &world, Purpose::Background).await.unwrap_err();
    assert_eq!(cause(&error).kind, AuthErrorKind::LoginNeeded);
    assert_eq!((world.seen().token_requests, folder.stored(&world).await), (1, None));
}

#[tokio::test]
async fn another_process_takes_the_next_login_and_does_not_overwrite_it() {
    // The login of the other account is still good, or due as well.
    for (wait, renewals) in [(70, 0), (3600, 1)] {
        let (world, clock, folder) = (World::new().await, clock(), Folder::new(&format!("next-{wait}")));
        world.state().lasts = Some(600);
        let (host, program) =
            (folder.client(&clock).build().unwrap(), folder.client(&clock).build().unwrap());
        let link = bound(&host, &world);
        // Its generation is higher than that of the next login.
        assert_eq!(call(&*link, &world, Purpose::Request).await.unwrap(), 200);
        clock.advance(Duration::from_secs(550));
        assert_eq!(call(&*link, &world, Purpose::Background).await.unwrap(), 200);
        let (before, identity) = (folder.stored(&world).await.unwrap(), link.identity());
        assert_eq!((&before["token"]["refresh"], identity), (&"marked-refresh-2".into(), 1));
        clock.advance(Duration::from_secs(480));
        log_out(&program, &world).await;
        log_in(&program, &world).await;
        let other = folder.stored(&world).await.unwrap();
        assert!(other["lineage"].is_string() && other["lineage"] != before["lineage"]);
        clock.advance(Duration::from_secs(wait));
        assert_eq!(call(&*link, &world, Purpose::Background).await.unwrap(), 200);
        let after = folder.stored(&world).await.unwrap();
        assert_eq!((&after["lineage"], world.seen().renewals), (&other["lineage"], 1 + renewals));
        assert!(world.state().can_renew("marked-refresh-2"), "that of the first account was not used");
        assert_eq!(link.identity(), identity + 1);
    }
}

#[tokio::test]
async fn a_process_whose_login_was_revoked_takes_the_next_one_from_the_store() {
    let (world, clock, folder) = (World::new().await, clock(), Folder::new("revoked"));
    let way_out = OAuth::builder("Test").clock(clock.clone()).store(FileStore::at(&folder.0));
    let (host, program) = (way_out.build().unwrap(), folder.client(&clock).build().unwrap());
    world.state().revokes = true;
    log_in(&program, &world).await;
    let link = bound(&host, &world);
    assert_eq!(call(&*link, &world, Purpose::Background).await.unwrap(), 200);
    program.log_out(&world.server(), Fetcher::new(), false).await.unwrap().unwrap();
    assert!(call(&*link, &world, Purpose::Background).await.is_err());
    log_in(&program, &world).await;
    assert_eq!(call(&*link, &world, Purpose::Background).await.unwrap(), 200);
}

#[tokio::test]
async fn a_login_without_a_lineage_is_used_and_renewed() {
    let (world, clock, folder) = (World::new().await, clock(), Folder::new("earlier"));
    world.state().lasts = Some(600);
    log_in(&folder.client(&clock).build().unwrap(), &world).await;
    let (store, key) = (FileStore::at(&folder.0), Key::credential(&world.server(), ""));
    let mut earlier = folder.stored(&world).await.unwrap();
    earlier.as_object_mut().unwrap().remove("lineage").unwrap();
    std::fs::write(store.path(&key), earlier.to_string()).unwrap();
    let link = bound(&folder.client(&clock).build().unwrap(), &world);
    for renewals in 0..3 {
        assert_eq!(call(&*link, &world, Purpose::Background).await.unwrap(), 200);
        assert_eq!((world.seen().renewals, world.seen().asked, link.identity()), (renewals, 1, 1));
        clock.advance(Duration::from_secs(550));
    }
}

/// A store that cannot be written while it is broken.
#[derive(Debug)]
struct Broken(MemoryStore, Arc<AtomicBool>);

impl CredentialStore for Broken {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.0.load(key)
    }

    fn clients(&self) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.0.clients()
    }

    fn save<'a>(&'a self, key: &'a Key, record: Record, old: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        if self.1.load(Ordering::Relaxed) {
            let error = StoreError::new(StoreErrorKind::Failed, "the disk is full");
            return Box::pin(std::future::ready(Err(error)));
        }
        self.0.save(key, record, old)
    }

    fn remove<'a>(&'a self, key: &'a Key, expected: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.remove(key, expected)
    }

    fn lock<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<StoreLock>, StoreError>> {
        self.0.lock(key)
    }
}

#[tokio::test]
async fn a_login_whose_renewal_could_not_be_stored_ends_with_a_logout_of_another_process() {
    // The other process logs in again, or does not.
    for then in [false, true] {
        let (world, clock, store) = (World::new().await, clock(), MemoryStore::new());
        world.state().lasts = Some(600);
        let broken = Arc::new(AtomicBool::new(false));
        let failing = Broken(store.clone(), Arc::clone(&broken));
        let host = World::oauth().clock(clock.clone()).store(failing).build().unwrap();
        let program = World::oauth().clock(clock.clone()).store(store.clone()).build().unwrap();
        let link = bound(&host, &world);
        assert_eq!(call(&*link, &world, Purpose::Request).await.unwrap(), 200);
        clock.advance(Duration::from_secs(3600));
        broken.store(true, Ordering::Relaxed);
        assert_eq!(call(&*link, &world, Purpose::Background).await.unwrap(), 200);
        broken.store(false, Ordering::Relaxed);
        log_out(&program, &world).await;
        if then {
            log_in(&program, &world).await;
        }
        clock.advance(Duration::from_secs(3600));
        assert_eq!(call(&*link, &world, Purpose::Background).await.is_ok(), then);
        assert!(world.state().can_renew("marked-refresh-2"), "that of the ended login was not used");
        let stored = store.load(&Key::credential(&world.server(), "")).await.unwrap();
        assert_eq!(stored.is_some(), then);
    }
}

/// A store without locks.
#[derive(Debug)]
struct Lockless(MemoryStore);

impl CredentialStore for Lockless {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.0.load(key)
    }

    fn clients(&self) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.0.clients()
    }

    fn save<'a>(&'a self, key: &'a Key, record: Record, old: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.save(key, record, old)
    }

    fn remove<'a>(&'a self, key: &'a Key, expected: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.remove(key, expected)
    }

    fn lock<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<Option<StoreLock>, StoreError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// A network over which another process logs out, and in again, while a renewal is under way.
#[derive(Debug)]
struct Slow {
    world: World,
    store: MemoryStore,
    clock: ManualClock,
    then: bool,
}

impl Fetch for Slow {
    fn fetch<'a>(
        &'a self,
        request: Request,
        reach: &'a Reach,
    ) -> BoxFuture<'a, Result<Response, FetchError>> {
        Box::pin(async move {
            let renews = request.body.starts_with(b"grant_type=refresh_token");
            let answer = Guarded::new().fetch(request, reach).await;
            if renews {
                let store = Lockless(self.store.clone());
                let program = World::oauth().clock(self.clock.clone()).store(store).build().unwrap();
                log_out(&program, &self.world).await;
                if self.then {
                    log_in(&program, &self.world).await;
                }
            }
            answer
        })
    }
}

#[tokio::test]
async fn a_renewal_that_ends_after_a_logout_is_not_stored_where_there_are_no_locks() {
    for then in [false, true] {
        let (world, clock, store) = (World::new().await, clock(), MemoryStore::new());
        world.state().lasts = Some(600);
        let slow = Slow { world: world.clone(), store: store.clone(), clock: clock.clone(), then };
        let lockless = Lockless(store.clone());
        let host = World::oauth().clock(clock.clone()).store(lockless).fetch(slow).build().unwrap();
        let link = bound(&host, &world);
        assert_eq!(call(&*link, &world, Purpose::Request).await.unwrap(), 200);
        clock.advance(Duration::from_secs(3600));
        assert_eq!(call(&*link, &world, Purpose::Background).await.is_ok(), then);
        let stored = store.load(&Key::credential(&world.server(), "")).await.unwrap();
        let stored = stored.map(|record| record.to_json());
        assert_eq!(stored.is_some(), then);
        assert!(stored.is_none_or(|record| record.contains("marked-access-3")));
        assert_eq!(world.seen().renewals, 1);
    }
}

#[tokio::test]
async fn the_issuer_that_a_client_is_bound_to_outlives_a_logout() {
    let (world, store) = (World::new().await, MemoryStore::new());
    let oauth = || World::oauth().client(ClientId::new("public")).store(store.clone()).build().unwrap();
    log_in(&oauth(), &world).await;
    log_out(&oauth(), &world).await;
    assert!(oauth().log_out(&world.server(), Fetcher::new(), false).await.unwrap().is_none());
    let record = store.load(&Key::credential(&world.server(), "")).await.unwrap().unwrap();
    assert!(record.summary().unwrap().is_none() && !record.to_json().contains("marked"));
    // The server now names another issuer.
    let elsewhere = World::new().await;
    world.state().issuer = Some(elsewhere.origin());
    let error = oauth().log_in(&world.server(), Fetcher::new(), None).await.unwrap_err();
    assert_eq!((error.kind, elsewhere.seen().asked), (AuthErrorKind::IssuerChanged, 0));
}

#[tokio::test]
async fn no_program_without_a_user_sends_anything_to_an_issuer_that_the_server_names() {
    let (mine, world) = (World::new().await, World::new().await);
    let (issuer, client) = (mine.origin(), || ClientId::new("robot"));
    let token = || async { Ok::<_, String>(toolwire_auth::Secret::from("marked-platform")) };
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noting = Arc::clone(&asked);
    let workload = move |audience| {
        noting.lock().unwrap().push(audience);
        token()
    };
    let secret = || toolwire_auth::Secret::from("marked-secret");
    for oauth in
        [OAuth::client_credentials(&issuer, client(), secret()), OAuth::workload(&issuer, client(), workload)]
    {
        let link = bound(&oauth.build().unwrap(), &world);
        let error = call(&*link, &world, Purpose::Request).await.unwrap_err();
        assert_eq!(cause(&error).kind, AuthErrorKind::IssuerChanged);
    }
    assert!(asked.lock().unwrap().is_empty());
    assert_eq!((world.seen().token_requests, mine.seen().token_requests), (0, 0));
    // Those of a user need an issuer before anything is sent.
    let without = World::oauth().client(client().secret(secret())).build().unwrap_err();
    assert_eq!(without.kind, AuthErrorKind::Misconfigured);
    World::oauth().client(client().secret(secret())).issuer(&issuer).build().unwrap();
    assert!(OAuth::client_credentials("login", client(), secret()).build().is_err());
}

#[tokio::test]
async fn a_logout_says_what_the_issuer_has_revoked() {
    for (keeps_access, expected) in [(false, Revoked::Yes), (true, Revoked::Renewal)] {
        let (world, store) = (World::new().await, MemoryStore::new());
        world.state().revokes = true;
        world.state().keeps_access = keeps_access;
        let oauth = World::oauth().store(store.clone()).build().unwrap();
        let auth = bound(&oauth, &world);
        call(&*auth, &world, Purpose::Request).await.unwrap();
        let out = oauth.log_out(&world.server(), Fetcher::new(), false).await.unwrap().unwrap();
        assert_eq!(out.revoked, Ok(expected));
        // It is forgotten, too.
        let other = World::oauth().store(store).build().unwrap();
        assert!(other.log_out(&world.server(), Fetcher::new(), false).await.unwrap().is_none());
    }
}
