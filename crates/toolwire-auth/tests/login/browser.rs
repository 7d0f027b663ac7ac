//! Logins with a browser, over sockets.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use toolwire_auth::{
    client::{
        AuthErrorKind, OAuth,
        authorize::AuthorizationUrl,
        login::{Browser, Device, Person},
    },
    fetch::{self, BoxFuture, FetchError, Reach, Request, Response},
};
use toolwire_http::client::fetch::{Fetch, Fetcher};

use super::world::World;

/// Goes where the page sends it, by an address that the name of this machine may mean.
async fn come_back(page: String, address: IpAddr) -> String {
    let response = Fetcher::new().fetch(Fetch::get(&page)).await.unwrap();
    let location: url::Url = response.headers[http::header::LOCATION].to_str().unwrap().parse().unwrap();
    let (host, port) = (location.host_str().unwrap(), location.port().unwrap());
    let mut stream = TcpStream::connect((address, port)).await.unwrap();
    let target = &location[url::Position::BeforePath..];
    let head = format!("GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn an_issuer_that_takes_redirects_by_name_alone_is_logged_in_to() {
    let has_ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.is_ok();
    let addresses = [IpAddr::from(Ipv4Addr::LOCALHOST)].into_iter();
    for address in addresses.chain(has_ipv6.then(|| Ipv6Addr::LOCALHOST.into())) {
        let world = World::new().await;
        world.state().names_only = true;
        let answers = Arc::new(Mutex::new(Vec::new()));
        let answering = Arc::clone(&answers);
        let show = move |url: &AuthorizationUrl| {
            assert!(url.redirect().starts_with("http://localhost:"), "{}", url.redirect());
            answering.lock().unwrap().push(tokio::spawn(come_back(url.as_str().to_owned(), address)));
        };
        let browser =
            Browser::loopback().redirects(["http://127.0.0.1/callback"]).without_opening().show(show);
        let oauth = OAuth::builder("Test").login(browser).build().unwrap();
        // The second login finds the registration of the first.
        for _ in 0..2 {
            let summary = oauth.log_in(&world.server(), Fetcher::new(), None).await.unwrap();
            assert!(summary.renewable, "{address}");
            let answer = answers.lock().unwrap().pop().unwrap();
            assert!(answer.await.unwrap().starts_with("HTTP/1.1 200"), "{address}");
        }
        assert_eq!(world.seen().asked, 2);
    }
}

/// A server on the internet and its issuer, whose pages are where `pages` says.
#[derive(Clone, Debug)]
struct Public {
    pages: &'static str,
}

impl fetch::Fetch for Public {
    fn fetch<'a>(&'a self, asked: Request, _: &'a Reach) -> BoxFuture<'a, Result<Response, FetchError>> {
        let document: Value = match asked.url.as_str() {
            "https://files.example/.well-known/oauth-protected-resource/mcp" => json!({
                "resource": "https://files.example/mcp", "authorization_servers": ["https://login.example"],
            }),
            "https://login.example/register" => json!({ "client_id": "made" }),
            "https://login.example/device" => json!({
                "device_code": "d", "user_code": "ABCD", "expires_in": 600, "verification_uri": self.pages,
            }),
            _ => json!({
                "issuer": "https://login.example", "authorization_endpoint": self.pages,
                "token_endpoint": "https://login.example/token", "registration_endpoint": "https://login.example/register",
                "device_authorization_endpoint": "https://login.example/device",
                "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"],
            }),
        };
        let status = if asked.url.as_str().ends_with("/register") { 201 } else { 200 };
        Box::pin(std::future::ready(Ok(Response::json(status.try_into().unwrap(), &document))))
    }
}

#[tokio::test]
async fn a_server_on_the_internet_has_no_page_inside_the_network_opened_or_shown() {
    for (pages, trusted, shown) in [
        ("http://127.0.0.1:8080/admin?do=x", false, false),
        ("http://localhost:8080/admin", false, false),
        ("https://192.168.1.1/admin", false, false),
        ("https://169.254.169.254/", false, false),
        ("https://[fd00::1]/", false, false),
        ("https://192.168.1.1/admin", true, true),
        ("https://login.example/authorize", false, true),
    ] {
        let seen = Arc::new(Mutex::new(0));
        let (browsing, device) = (Arc::clone(&seen), Arc::clone(&seen));
        let browser = Browser::loopback().redirects(["http://127.0.0.1/callback"]).without_opening();
        let ways: [Person; 2] = [
            browser.show(move |_| *browsing.lock().unwrap() += 1).into(),
            Device::new(move |_| *device.lock().unwrap() += 1).into(),
        ];
        for way in ways {
            let mut builder = OAuth::builder("Test").login(way).fetch(Public { pages });
            if trusted {
                builder = builder.dangerous().trust_origin("https://192.168.1.1").safe();
            }
            let oauth = builder.build().unwrap();
            let login = oauth.log_in("https://files.example/mcp", Fetcher::new(), None);
            if shown {
                let before = *seen.lock().unwrap();
                tokio::select! {
                    biased;
                    ended = login => panic!("{pages}: {ended:?}"),
                    () = async { while *seen.lock().unwrap() == before { tokio::task::yield_now().await } } => {}
                }
            } else {
                assert_eq!(login.await.unwrap_err().kind, AuthErrorKind::MetadataRefused, "{pages}");
            }
        }
        assert_eq!(*seen.lock().unwrap(), if shown { 2 } else { 0 }, "{pages}");
    }
}
