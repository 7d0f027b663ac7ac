//! Logging in, using and renewing a login, in every way that works and that does not.

use std::sync::Arc;

use serde_json::json;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use toolwire_auth::{
    client::{
        AuthError, OAuth, OAuthBuilder,
        authorize::{AuthorizationUrl, Callback},
        flow::Redirects,
        login::{Browser, Declined, Device, Login, PasteBack},
        store::{CredentialStore, FileStore, Key, MemoryStore},
    },
    clock::ManualClock,
    fetch::BoxFuture,
};
use toolwire_client::Client;
use toolwire_http::client::{
    Http,
    fetch::{Fetch, Fetcher},
};

use super::{
    guard::{self, CERTIFICATE, Place},
    issuer::{Fault, Issuer},
    marks::{learn, secret},
    recorder::{fail, say, show},
};

/// A person whose browser goes where it is sent, and who agrees.
#[derive(Debug)]
pub(crate) struct Agreeing;

impl Login for Agreeing {
    fn prepare(&self) -> Result<Redirects, AuthError> {
        let used = "http://127.0.0.1:17853/callback".to_owned();
        Ok(Redirects::new([used.clone()], used))
    }

    fn ask(&self, url: AuthorizationUrl) -> BoxFuture<'_, Result<Callback, Declined>> {
        show("the page", &url);
        Box::pin(async move {
            let callback = Callback::from_url(&visit(url.as_str()).await).unwrap();
            show("the answer", &callback);
            Ok(callback)
        })
    }
}

/// Where a browser is sent from a page.
async fn visit(page: &str) -> String {
    let response = Fetcher::new().no_proxy().fetch(Fetch::get(page)).await.unwrap();
    show("a page", &response);
    response.headers[http::header::LOCATION].to_str().unwrap().to_owned()
}

fn telling(builder: OAuthBuilder) -> OAuthBuilder {
    builder.on_event(|event| {
        say("an event", event);
        show("an event", event);
    })
}

fn agreeing() -> OAuthBuilder {
    telling(OAuth::builder("Notes").login(Agreeing))
}

/// Connects, calls a tool, and shows what can be seen.
pub(crate) async fn used(oauth: &OAuth, url: &str, tool: &str) -> bool {
    let http = Http::builder(url).root_certificates(CERTIFICATE).no_proxy().auth(oauth.clone());
    show("a builder", &http);
    let http = http.build().unwrap();
    show("a transport", &http);
    show("the login", oauth);
    let client = match Client::builder("notes", "1.0").connect(http).await {
        Ok(client) => client,
        Err(error) => {
            fail("connecting", &error);
            return false;
        }
    };
    show("a client", &client);
    let called = client.call(tool, json!({})).await;
    match &called {
        Ok(result) => show("a result", result),
        Err(error) => fail("calling", error),
    }
    let _ = client.close().await;
    called.is_ok()
}

/// Shows what is stored, and learns what is secret in it.
async fn stored(store: &impl CredentialStore, url: &str) {
    show("a store", store);
    let Some(record) = store.load(&Key::credential(url, "")).await.unwrap() else { return };
    show("a record", &record);
    let summary = record.summary();
    show("a summary", &summary);
    let whole: serde_json::Value = serde_json::from_str(&record.to_json()).unwrap();
    for place in ["/token/access", "/token/refresh", "/client/secret", "/dpop/key"] {
        whole.pointer(place).and_then(serde_json::Value::as_str).into_iter().for_each(learn);
    }
}

pub(crate) async fn over_tls_bound_to_a_key(issuer: &Issuer) {
    let place = Place::bound(issuer).await;
    let store = MemoryStore::new();
    let oauth = agreeing().store(store.clone()).build().unwrap();
    assert!(used(&oauth, &place.url, "whoami").await);
    stored(&store, &place.url).await;
    // It lacks a scope, and gets it.
    assert!(used(&oauth, &place.url, "write").await);
    assert!(used(&oauth, &place.url, "search").await);
    stored(&store, &place.url).await;
    assert!(!used(&oauth, &place.url, "fails").await);
    let fetcher = Fetcher::new().no_proxy().root_certificates(CERTIFICATE).unwrap();
    show("a fetcher", &fetcher);
    let out = oauth.log_out(&place.url, fetcher, true).await.unwrap();
    show("a logout", &out);
    if let Err(error) = out.unwrap().revoked {
        fail("revoking", &error);
    }
}

const FAULTS: [Fault; 13] = [
    Fault::Refuses("invalid_grant"),
    Fault::Refuses("invalid_client"),
    Fault::Refuses("invalid_target"),
    Fault::Refuses("something_else"),
    Fault::RefusesKindly,
    Fault::Status(503),
    Fault::Html,
    Fault::Short,
    Fault::Redirect,
    Fault::WrongType,
    Fault::Control,
    Fault::Huge,
    Fault::Doubled,
];

pub(crate) async fn that_fails(issuer: &Issuer) {
    let place = Place::signed(issuer).await;
    for fault in FAULTS {
        issuer.set(fault);
        let oauth = agreeing().build().unwrap();
        assert!(!used(&oauth, &place.url, "whoami").await, "{fault:?}");
        let error = oauth.log_in(&place.url, Fetcher::new().no_proxy(), None).await.unwrap_err();
        fail("logging in", &error);
    }
    issuer.set(Fault::None);
}

pub(crate) async fn renewals_that_fail(issuer: &Issuer) {
    let place = Place::signed(issuer).await;
    for fault in FAULTS {
        let (store, clock) = (MemoryStore::new(), guard::clock());
        let oauth = agreeing().clock(clock.clone()).store(store.clone()).build().unwrap();
        assert!(used(&oauth, &place.url, "whoami").await, "{fault:?}");
        stored(&store, &place.url).await;
        clock.advance(std::time::Duration::from_secs(3_600));
        issuer.set(fault);
        // Nobody is there to be asked.
        let robot = telling(OAuth::builder("Notes")).clock(clock).store(store.clone()).build().unwrap();
        assert!(!used(&robot, &place.url, "whoami").await, "{fault:?}");
        stored(&store, &place.url).await;
        issuer.set(Fault::None);
    }
}

pub(crate) async fn by_other_ways(issuer: &Issuer) {
    let place = Place::signed(issuer).await;
    let fetcher = || Fetcher::new().no_proxy();
    // With another device, that is confirmed at once.
    let device = telling(OAuth::builder("Notes").login(Device::new(|code| show("a code", code))));
    show("a login", &device.build().unwrap().log_in(&place.url, fetcher(), None).await.unwrap());
    issuer.set(Fault::Refuses("access_denied"));
    let device = telling(OAuth::builder("Notes").login(Device::new(|code| show("a code", code))));
    fail("a device", &device.build().unwrap().log_in(&place.url, fetcher(), None).await.unwrap_err());
    issuer.set(Fault::None);
    // What is pasted is not what was asked for.
    let pasted =
        PasteBack::new(|_| async { Some(format!("http://127.0.0.1/?code={}&state=x", secret("code"))) });
    show("a way", &pasted);
    let paste = telling(OAuth::builder("Notes").login(pasted)).build().unwrap();
    fail("pasting", &paste.log_in(&place.url, fetcher(), None).await.unwrap_err());
    // A browser that comes back, after somebody else has come.
    let browser =
        Browser::loopback().redirects(["http://127.0.0.1/callback"]).without_opening().show(|url| {
            show("the page", url);
            let (page, redirect) = (url.as_str().to_owned(), url.redirect().to_owned());
            tokio::spawn(async move {
                for query in ["code=SECRET", "code=SECRET&state=SECRET", "error=SECRET&state=SECRET&state=x"]
                {
                    let query = query.replace("SECRET", &secret("callback"));
                    say("a page for nobody", &come(&format!("{redirect}?{query}")).await);
                }
                say("the last page", &come(&visit(&page).await).await);
            });
        });
    show("a way", &browser);
    let browser = telling(OAuth::builder("Notes").login(browser)).build().unwrap();
    show("a login", &browser.log_in(&place.url, fetcher(), None).await.unwrap());
}

/// What somebody is answered who comes to a page of this machine.
async fn come(url: &str) -> String {
    let url: url::Url = url.parse().unwrap();
    let (port, target) = (url.port().unwrap(), &url[url::Position::BeforePath..]);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let head = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
    answer
}

/// Somebody who holds a secret, and stumbles.
#[derive(Debug)]
struct Stumbling;

impl Login for Stumbling {
    fn prepare(&self) -> Result<Redirects, AuthError> {
        Agreeing.prepare()
    }

    fn ask(&self, _: AuthorizationUrl) -> BoxFuture<'_, Result<Callback, Declined>> {
        Box::pin(async { panic!("the browser has vanished") })
    }
}

pub(crate) async fn that_panics(issuer: &Issuer) {
    let place = Place::signed(issuer).await;
    let oauth = telling(OAuth::builder("Notes").login(Stumbling)).build().unwrap();
    assert!(!used(&oauth, &place.url, "whoami").await);
    let oauth =
        OAuth::builder("Notes").login(Agreeing).on_event(|_| panic!("the log is full")).build().unwrap();
    assert!(!used(&oauth, &place.url, "whoami").await);
}

pub(crate) async fn kept_in_broken_files(issuer: &Issuer) {
    let place = Place::signed(issuer).await;
    let folder = std::env::temp_dir().join(format!("toolwire-secrets-{}", std::process::id()));
    let store = Arc::new(FileStore::at(&folder));
    let path = store.path(&Key::credential(&place.url, ""));
    let oauth = || agreeing().store(FileStore::at(&folder));
    assert!(used(&oauth().build().unwrap(), &place.url, "whoami").await);
    let good = std::fs::read_to_string(&path).unwrap();
    let strange = secret("file");
    for broken in [
        good.replace("\"version\":1", "\"version\":9"),
        good.replace("\"access\"", &format!("\"{strange}\"")),
        good.replace("\"Bearer\"", &format!("\"{strange}\"")),
        good.replace("\"authorization_code\"", &format!("\"{strange}\"")),
        good.replace("\"token\":\"http", &format!("\"token\":\"{strange}")),
        format!("{strange} {good}"),
        good[..good.len() / 2].to_owned(),
    ] {
        assert_ne!(broken, good);
        std::fs::write(&path, broken).unwrap();
        match store.load(&Key::credential(&place.url, "")).await {
            Ok(record) => show(
                "a record",
                &(record.as_ref().map(toolwire_auth::client::store::Record::summary), &record),
            ),
            Err(error) => fail("a record", &error),
        }
        show("files", &store.credentials());
        let clock: ManualClock = guard::clock();
        used(
            &telling(OAuth::builder("Notes").store(FileStore::at(&folder))).clock(clock).build().unwrap(),
            &place.url,
            "whoami",
        )
        .await;
        if let Err(error) = oauth().build().unwrap().log_in(&place.url, Fetcher::new().no_proxy(), None).await
        {
            fail("logging in", &error);
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}
