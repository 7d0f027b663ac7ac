//! Servers that are reached through a proxy.

use std::{
    process::Command,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use toolwire_client::{Delivery, ErrorKind};
use toolwire_http::client::Http;

use crate::{
    client_script::{Script, builder, discovered},
    port::Port,
};

/// What a proxy does with a request for a tunnel.
#[derive(Clone, Copy, Debug)]
enum Conduct {
    Connect,
    Say(&'static str),
}

/// A proxy that makes tunnels, and remembers what it was asked.
struct Proxy {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn start(conduct: Conduct) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(tunnel(stream, conduct, Arc::clone(&log)));
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn tunnel(mut stream: TcpStream, conduct: Conduct, log: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let authority = head.split(' ').nth(1).unwrap().to_owned();
    log.lock().unwrap().push(head);
    match conduct {
        Conduct::Connect => {
            let mut server = TcpStream::connect(authority).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
            // It ends when one of them does.
            let _ = copy_bidirectional(&mut stream, &mut server).await;
        }
        Conduct::Say(answer) => {
            // The client may have gone when it has read enough.
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.read(&mut [0; 16]).await;
        }
    }
}

#[tokio::test]
async fn without_tls_the_proxy_is_asked_for_the_whole_address() {
    let script = Script::start(discovered).await;
    let proxy = format!("http://user:pa%20ss@{}", script.address);
    let http =
        Http::builder("http://mcp.invalid:8000/mcp?a=b").bearer("token").proxy(&proxy).build().unwrap();
    let client = builder().connect(http).await.unwrap();
    assert!(client.version().is_modern());
    let seen = script.seen().pop().unwrap();
    assert_eq!(seen.path, "http://mcp.invalid:8000/mcp?a=b");
    assert_eq!(seen.header("host"), Some("mcp.invalid:8000"));
    assert_eq!(seen.header("proxy-authorization"), Some("Basic dXNlcjpwYSBzcw=="));
    assert_eq!(seen.header("authorization"), Some("Bearer token"));
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_named_as_such() {
    let port = Port::reserve();
    let proxy = port.address();
    let http = Http::builder("http://mcp.invalid/mcp").proxy(&format!("http://user:secret@{proxy}")).build();
    let error = builder().connect(http.unwrap()).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Connect, Delivery::NotSent));
    let text = error.to_string();
    assert!(text.contains(&format!("the proxy http://{proxy} cannot be reached")), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

/// The test itself once more, in a process that has this environment.
fn again(test: &str, variables: &[(&str, String)]) -> std::process::Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env("TOOLWIRE_TEST_AGAIN", "1");
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command.envs(variables.iter().map(|(name, value)| (name, value))).output().unwrap()
}

fn is_again() -> bool {
    std::env::var_os("TOOLWIRE_TEST_AGAIN").is_some()
}

/// An address of this machine that does not look like one.
fn any_address(script: &Script) -> String {
    script.url().replace("127.0.0.1", "0.0.0.0")
}

#[cfg(unix)]
#[tokio::test]
async fn the_environment_says_which_proxy_and_for_whom_not() {
    if is_again() {
        for variable in ["TEST_THROUGH", "TEST_DIRECT", "TEST_LOCAL"] {
            let url = std::env::var(variable).unwrap();
            builder().connect(Http::new(&url).unwrap()).await.unwrap();
        }
        return;
    }
    let (proxy, direct, local) =
        (Script::start(discovered).await, Script::start(discovered).await, Script::start(discovered).await);
    let variables = [
        ("http_proxy", format!("http://{}", proxy.address)),
        ("NO_PROXY", "other.invalid, 0.0.0.0".to_owned()),
        ("TEST_THROUGH", "http://mcp.invalid/mcp".to_owned()),
        ("TEST_DIRECT", any_address(&direct)),
        ("TEST_LOCAL", local.url()),
    ];
    let test = "client_proxy::the_environment_says_which_proxy_and_for_whom_not";
    let output = tokio::task::spawn_blocking(move || again(test, &variables)).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let paths = |script: &Script| script.seen().into_iter().map(|seen| seen.path).collect::<Vec<_>>();
    assert_eq!(paths(&proxy), ["http://mcp.invalid/mcp"]);
    assert_eq!(paths(&direct), ["/mcp"]);
    assert_eq!(paths(&local), ["/mcp"]);
}

#[cfg(unix)]
#[tokio::test]
async fn no_proxy_of_ours_counts_more_than_the_environment() {
    if is_again() {
        let url = std::env::var("TEST_DIRECT").unwrap();
        builder().connect(Http::builder(&url).no_proxy().build().unwrap()).await.unwrap();
        let error = Http::new("http://mcp.invalid/mcp").unwrap_err().to_string();
        assert!(error.contains("socks5://") && !error.contains("secret"), "{error}");
        return;
    }
    let direct = Script::start(discovered).await;
    let variables =
        [("ALL_PROXY", "socks5://user:secret@127.0.0.1:9".to_owned()), ("TEST_DIRECT", any_address(&direct))];
    let test = "client_proxy::no_proxy_of_ours_counts_more_than_the_environment";
    let output = tokio::task::spawn_blocking(move || again(test, &variables)).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(direct.seen().len(), 1);
}

#[cfg(all(feature = "client-tls", feature = "tls"))]
mod with_tls {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::{
        PATIENCE,
        client_tls::{CERTIFICATE, serve},
    };

    #[tokio::test]
    async fn with_tls_the_proxy_makes_a_tunnel_and_sees_nothing() {
        let url = serve().await;
        let proxy = Proxy::start(Conduct::Connect).await;
        let http = Http::builder(&url)
            .bearer("token")
            .root_certificates(CERTIFICATE)
            .proxy(&format!("http://user:pass@{}", proxy.address))
            .build()
            .unwrap();
        let client = builder().connect(http).await.unwrap();
        assert_eq!(client.call("now", json!({})).await.unwrap().text(), "noon");
        let authority = url.trim_start_matches("https://").trim_end_matches("/mcp");
        let asked = proxy.asked();
        // HTTP/2 is spoken inside of it, so one is enough.
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert!(asked[0].starts_with(&format!("CONNECT {authority} HTTP/1.1\r\n")), "{asked:?}");
        assert!(asked[0].contains("proxy-authorization: Basic dXNlcjpwYXNz\r\n"), "{asked:?}");
        assert!(!asked[0].contains("token"), "{asked:?}");
    }

    #[tokio::test]
    async fn a_proxy_that_makes_no_tunnel_is_told_with_its_reason() {
        let endless: &'static str = "HTTP/1.1 200 OK\r\nx: ".to_owned().leak();
        let long: &'static str = format!("{endless}{}", "x".repeat(100_000)).leak();
        for (answer, user, expected) in [
            ("HTTP/1.1 403 Forbidden\r\n\r\n", "", "refuses to connect to localhost:443: 403 Forbidden"),
            ("HTTP/1.1 407 Proxy\r\n\r\n", "", "asks for credentials; they can be written into its address"),
            ("HTTP/1.1 407 Proxy\r\n\r\n", "user:secret@", "does not accept the credentials"),
            ("HTTP/1.1 200 OK\r\n\r\nhello, I am the server", "", "spoke before the server was asked"),
            ("SSH-2.0-OpenSSH\r\n\r\n", "", "is not HTTP"),
            (long, "", "header"),
        ] {
            let proxy = Proxy::start(Conduct::Say(answer)).await;
            let http = Http::builder("https://localhost/mcp")
                .proxy(&format!("http://{user}{}", proxy.address))
                .connect_timeout(PATIENCE)
                .build()
                .unwrap();
            let error = builder().connect(http).await.unwrap_err();
            assert_eq!((error.kind(), error.delivery()), (ErrorKind::Connect, Delivery::NotSent), "{error}");
            let text = error.to_string();
            assert!(text.contains(expected) && !text.contains("secret"), "{expected}: {text}");
            assert!(text.contains(&format!("the proxy http://{}", proxy.address)), "{text}");
        }
    }

    #[tokio::test]
    async fn a_proxy_that_says_nothing_is_not_waited_for_for_ever() {
        let proxy = Proxy::start(Conduct::Say("HTTP/1.1 200 ")).await;
        let http = Http::builder("https://localhost/mcp")
            .proxy(&format!("http://{}", proxy.address))
            .connect_timeout(Duration::from_millis(200))
            .build()
            .unwrap();
        let error = builder().connect(http).await.unwrap_err();
        assert!(error.to_string().contains("no connection was made within 200 ms"), "{error}");
        assert_eq!(error.delivery(), Delivery::NotSent);
    }
}
