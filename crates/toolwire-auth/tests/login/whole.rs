//! A client, a server of ours behind a guard, and an issuer: the whole way, in both eras.

use std::{
    error::Error as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::{net::TcpListener, task::AbortHandle};
use toolwire_auth::{
    Secret,
    client::{AuthError, AuthErrorKind, Notice, OAuth, OAuthBuilder, Step, flow, register::ClientId},
    clock::{Clock as _, ManualClock},
    server::{Audience, Dpop, Expiry, Invalid, PresentedToken, ResourceServer, Verified},
};
use toolwire_client::{Client, EraChoice, Error};
use toolwire_http::{
    client::{Http, WebSocket},
    server::HttpService,
};
use toolwire_protocol::{Version, wire::CacheHint};
use toolwire_server::{Principal, Server, tool};

use super::world::World;

/// How long the guard takes a token without asking for it again.
const LIFETIME: Duration = Duration::from_secs(600);
/// Longer than that, and than the guard is lenient.
const LATER: Duration = Duration::from_secs(900);

/// A server of ours whose tokens an issuer gives.
struct Protected {
    world: World,
    url: String,
    /// The clock of the guard.
    clock: ManualClock,
    serving: AbortHandle,
}

impl Drop for Protected {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Protected {
    async fn new() -> Self {
        Self::described(|guard| guard).await
    }

    /// With a guard that is described further.
    async fn described(more: impl FnOnce(ResourceServer) -> ResourceServer) -> Self {
        let world = World::new().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        world.state().resource = Some(url.clone());
        let clock = ManualClock::at(toolwire_auth::clock::unix_seconds(std::time::SystemTime::now()));
        let guard = ResourceServer::new(&url, world.origin())
            .verify(verifier(world.clone(), url.clone(), clock.clone()))
            .scopes(["files:read"])
            .clock(clock.clone());
        let guard = more(guard).build().unwrap();
        let service = HttpService::builder(server()).guard(guard).websocket(true).build().unwrap();
        let serving = tokio::spawn(async move { service.serve(listener).await.unwrap() }).abort_handle();
        Self { world, url, clock, serving }
    }

    async fn connect(&self, oauth: &OAuth, era: EraChoice) -> Result<Client, Error> {
        let http = Http::builder(&self.url).auth(oauth.clone()).build().unwrap();
        Client::builder("notes", "1.0").era(era).connect(http).await
    }
}

/// Asks the issuer itself who a token stands for.
fn verifier(
    world: World,
    resource: String,
    clock: ManualClock,
) -> impl Fn(PresentedToken) -> std::future::Ready<Result<Verified, Invalid>> + Send + Sync + 'static {
    move |token| {
        let found = world.state().scopes_of(token.expose()).ok_or_else(|| Invalid::new("nobody gave it"));
        let key = world.state().key_of(token.expose());
        std::future::ready(found.map(|scopes| {
            let expiry = Expiry::At(clock.now() + LIFETIME);
            let known = Verified::new("alice", Audience::is(&resource), expiry).client_id("marked-client");
            let known = known.scopes(scopes.split(' '));
            key.iter().fold(known, Verified::bound_to)
        }))
    }
}

fn server() -> Server {
    let writes = |who: &Principal| who.scopes().contains("files:write");
    Server::builder("files", "1.0")
        .tool(tool("whoami", |who: Principal| async move { who.subject().to_owned() }))
        .tool(tool("write", || async { "written" }).scopes(["files:write"]))
        .tool(tool("undo", || async { "undone" }).visible_to(writes))
        .list_cache(CacheHint::of(Some(3_600_000), None))
        .build()
        .unwrap()
}

async fn names(client: &Client) -> Vec<String> {
    client.all_tools().await.unwrap().into_iter().map(|tool| tool.name).collect()
}

async fn call(client: &Client, tool: &str) -> Result<String, Error> {
    Ok(client.call(tool, json!({})).await?.text())
}

/// What was behind an error, if it was about credentials.
fn cause(error: &Error) -> &AuthError {
    let mut next = error.source();
    while let Some(found) = next {
        if let Some(found) = found.downcast_ref() {
            return found;
        }
        next = found.source();
    }
    panic!("it has nothing to do with credentials: {error:?}")
}

#[tokio::test]
async fn a_client_logs_in_asks_for_more_and_renews_without_anybody_noticing() {
    for version in [Version::V2025_11_25, Version::V2026_07_28] {
        let (protected, era) = (Protected::new().await, EraChoice::Version(version));
        let world = &protected.world;
        let oauth = World::oauth().build().unwrap();
        // 401, and a person logs in.
        let client = protected.connect(&oauth, era).await.unwrap();
        assert_eq!(world.state().scopes_asked, ["files:read"], "{version}");
        assert_eq!(names(&client).await, ["whoami", "write"]);
        assert_eq!(call(&client, "whoami").await.unwrap(), "alice");
        // 403, and a person is asked for more.
        assert_eq!(call(&client, "write").await.unwrap(), "written");
        assert_eq!(world.state().scopes_asked[1..], ["files:read files:write"], "{version}");
        // What was said to somebody who could do less is not repeated, though it was to be kept for an hour.
        assert_eq!(names(&client).await, ["whoami", "write", "undo"]);
        assert_eq!(call(&client, "undo").await.unwrap(), "undone");
        assert_eq!((world.seen().asked, world.seen().registrations, world.seen().renewals), (2, 1, 0));
        // The server does not take the token any more, and nobody has to be asked.
        world.expire();
        protected.clock.advance(LATER);
        assert_eq!(call(&client, "write").await.unwrap(), "written");
        assert_eq!((world.seen().asked, world.seen().renewals), (2, 1), "{version}");
        // Another client of the same application finds all of it.
        let other = protected.connect(&oauth, EraChoice::Auto).await.unwrap();
        assert_eq!(call(&other, "undo").await.unwrap(), "undone");
        assert_eq!((world.seen().asked, world.seen().token_requests), (2, 3), "{version}");
        client.close().await.unwrap();
        other.close().await.unwrap();
    }
}

#[tokio::test]
async fn without_a_way_to_a_person_the_error_says_that_a_login_is_needed() {
    let protected = Protected::new().await;
    let oauth = OAuth::builder("Notes").build().unwrap();
    let error = protected.connect(&oauth, EraChoice::Auto).await.unwrap_err();
    assert_eq!(error.status(), Some(401), "{error:?}");
    assert_eq!(cause(&error).kind, AuthErrorKind::LoginNeeded);
    assert_eq!(protected.world.seen().token_requests, 0);
}

#[tokio::test]
async fn a_program_that_is_given_fewer_scopes_is_told_so_with_403_even_before_it_is_sent() {
    let protected = Protected::new().await;
    let (world, clock) = (&protected.world, protected.clock.clone());
    world.state().lasts = Some(LIFETIME.as_secs());
    let client = ClientId::new("marked-client");
    let robot = OAuth::client_credentials(&world.origin(), client, Secret::from("marked-secret"));
    let robot = robot.clock(clock.clone()).build().unwrap();
    let client = protected.connect(&robot, EraChoice::Auto).await.unwrap();
    assert_eq!(call(&client, "write").await.unwrap(), "written");
    assert_eq!((world.seen().asked, world.seen().token_requests), (0, 2));
    // Its token ends, and the issuer does not give it these scopes any more.
    clock.advance(LATER);
    world.state().token_fault = Some((400, r#"{"error":"invalid_scope"}"#));
    let error = call(&client, "write").await.unwrap_err();
    assert_eq!(error.status(), Some(403), "{error:?}");
    assert_eq!(cause(&error).kind, AuthErrorKind::ScopeRejected);
    // It does not know the program at all any more.
    world.state().token_fault = Some((401, r#"{"error":"invalid_client"}"#));
    let error = call(&client, "write").await.unwrap_err();
    assert_eq!(error.status(), Some(401), "{error:?}");
    assert_eq!(cause(&error).kind, AuthErrorKind::ClientRejected);
}

/// A client whose clock is so many seconds ahead of that of the server, or behind it, with a token that is bound to a key.
fn off_by(seconds: i64) -> (OAuthBuilder, ManualClock) {
    let now = toolwire_auth::clock::unix_seconds(std::time::SystemTime::now());
    let clock = ManualClock::at(now.saturating_add_signed(seconds));
    (World::oauth().dpop(flow::Dpop::Always).clock(clock.clone()), clock)
}

#[tokio::test]
async fn proofs_for_a_server_are_dated_by_its_clock_where_that_differs() {
    for nonces in [false, true] {
        for seconds in [-250, 0, 250] {
            let protected = Protected::described(|guard| {
                let dpop = Dpop::required();
                guard.dpop(if nonces { dpop.nonces([[7; 32]]).unwrap() } else { dpop })
            })
            .await;
            let (oauth, clock) = off_by(seconds);
            let told = Arc::new(AtomicUsize::new(0));
            let noted = Arc::clone(&told);
            let oauth = oauth.on_event(move |event| {
                let is_clock = event.step == Step::Use && event.notice == Some(Notice::ClockWrong);
                noted.fetch_add(is_clock.into(), Ordering::Relaxed);
            });
            let client = protected.connect(&oauth.build().unwrap(), EraChoice::Auto).await.unwrap();
            assert_eq!(call(&client, "whoami").await.unwrap(), "alice", "{nonces} {seconds}");
            let world = &protected.world;
            assert_eq!((world.seen().asked, world.seen().renewals), (1, 0), "{nonces} {seconds}");
            assert!(seconds == 0 || told.load(Ordering::Relaxed) > 0, "{nonces} {seconds}");
            // A clock that is set right meanwhile is learned as well.
            if seconds < 0 {
                clock.advance(Duration::from_secs(seconds.unsigned_abs()));
                assert_eq!(call(&client, "whoami").await.unwrap(), "alice", "{nonces}");
                assert_eq!((world.seen().asked, world.seen().renewals), (1, 0), "{nonces}");
            }
        }
    }
}

#[tokio::test]
async fn a_server_does_not_get_proofs_of_a_day_that_is_yet_to_come() {
    // The guard takes a minute more or less, and proofs are dated five minutes from our clock at most.
    for seconds in [-86_400, -420, 420] {
        let protected = Protected::described(|guard| guard.dpop(Dpop::required())).await;
        let (oauth, _) = off_by(seconds);
        let error = protected.connect(&oauth.build().unwrap(), EraChoice::Auto).await.unwrap_err();
        assert_eq!(cause(&error).kind, AuthErrorKind::TokenRejected, "{seconds}");
    }
}

#[tokio::test]
async fn a_websocket_is_opened_with_a_login_and_one_that_is_not_says_401() {
    let protected = Protected::new().await;
    let socket = |oauth: OAuth| {
        WebSocket::builder(protected.url.replacen("http", "ws", 1)).auth(oauth).build().unwrap()
    };
    let nobody = OAuth::builder("Notes").build().unwrap();
    let error = Client::builder("notes", "1.0").connect(socket(nobody)).await.unwrap_err();
    assert_eq!((error.status(), &cause(&error).kind), (Some(401), &AuthErrorKind::LoginNeeded), "{error:?}");

    let oauth = World::oauth().build().unwrap();
    let client = Client::builder("notes", "1.0").connect(socket(oauth)).await.unwrap();
    assert_eq!(call(&client, "whoami").await.unwrap(), "alice");
    assert_eq!(protected.world.state().scopes_asked, ["files:read"]);
}
