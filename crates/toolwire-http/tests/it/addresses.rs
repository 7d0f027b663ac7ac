//! What one address may take, and what is known of it.

use std::{net::SocketAddr, sync::Arc};

use http::request::Parts;
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket};
use toolwire_http::server::{HttpBuilder, HttpLimits, HttpService, PeerAddr};
use toolwire_server::{Extension, Server, tool};

use crate::{
    bare::{Connection, Request, ask},
    fixture::Fixture,
    until,
};

fn add() -> Request {
    Request::call("add", json!({ "a": 1, "b": 2 }))
}

fn two() -> HttpLimits {
    HttpLimits { connections_per_address: 2, ..HttpLimits::default() }
}

async fn from(address: &str, to: SocketAddr) -> Connection {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(address.parse().unwrap(), 0)).unwrap();
    Connection::over(socket.connect(to).await.unwrap())
}

#[tokio::test]
async fn one_address_has_its_share_and_the_others_have_theirs() {
    let fixture = Fixture::with(|http| http.limits(two())).await;
    let mut first = Connection::open(fixture.address).await;
    let mut second = Connection::open(fixture.address).await;
    for connection in [&mut first, &mut second] {
        assert_eq!(connection.ask(&add()).await.status(), 200);
    }
    // It is not kept waiting, and so nobody waits behind it.
    for _ in 0..10 {
        assert!(Connection::open(fixture.address).await.is_closed().await);
    }
    assert_eq!(from("127.0.0.2", fixture.address).await.ask(&add()).await.status(), 200);
    assert_eq!(first.ask(&add()).await.status(), 200);
    // What one gives back, another can take.
    first.finish().await;
    assert!(first.is_closed().await);
    let mut third = None;
    until("the place of the first one was not given back", async || {
        let connection = Connection::open(fixture.address).await;
        third.insert(connection).is_served(&add()).await
    })
    .await;
    assert_eq!(second.ask(&add()).await.status(), 200);
}

#[tokio::test]
async fn proxies_have_no_share() {
    let fixture = Fixture::with(|http| http.limits(two()).behind_proxy()).await;
    let mut open = Vec::new();
    for _ in 0..5 {
        let mut connection = Connection::open(fixture.address).await;
        assert_eq!(connection.ask(&add()).await.status(), 200);
        open.push(connection);
    }
}

async fn serve(change: impl FnOnce(HttpBuilder) -> HttpBuilder) -> SocketAddr {
    let from = tool("from", |Extension(parts): Extension<Arc<Parts>>| async move {
        parts
            .extensions
            .get::<PeerAddr>()
            .map_or_else(|| "nowhere".to_owned(), |peer| peer.0.ip().to_string())
    });
    let server = Server::builder("from", "1.0").tool(from).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = change(HttpService::builder(server).path("/mcp")).build().unwrap();
    tokio::spawn(service.serve(listener).into_future());
    address
}

#[tokio::test]
async fn a_request_says_where_it_comes_from_unless_that_is_a_proxy() {
    let call = Request::call("from", json!({}));
    let address = serve(|http| http).await;
    for client in ["127.0.0.1", "127.0.0.2"] {
        let answer = from(client, address).await.ask(&call).await.json();
        assert_eq!(answer["result"]["content"][0]["text"], client);
    }
    let answer = ask(serve(HttpBuilder::behind_proxy).await, &call).await.json();
    assert_eq!(answer["result"]["content"][0]["text"], "nowhere");
}

#[tokio::test]
async fn a_function_that_finds_the_address_overrides_that_of_the_connection() {
    let call = Request::call("from", json!({}));
    for behind_proxy in [false, true] {
        let address = serve(|http| {
            let http = http.peer_addr(move |parts| {
                assert_eq!(parts.extensions.get::<PeerAddr>().is_none(), behind_proxy);
                Some(SocketAddr::from(([192, 0, 2, 1], 1)))
            });
            if behind_proxy { http.behind_proxy() } else { http }
        })
        .await;
        let answer = ask(address, &call).await.json();
        assert_eq!(answer["result"]["content"][0]["text"], "192.0.2.1");
    }
    let refused = ask(serve(|http| http.peer_addr(|_| None)).await, &call).await;
    assert_eq!(refused.status(), 500, "that of the connection does not take its place");
}

#[cfg(feature = "ws")]
#[tokio::test]
async fn one_address_has_its_share_of_websockets() {
    let fixture = Fixture::with(|http| http.limits(two()).websocket(true)).await;
    let open = |client: &'static str| async move {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(client.parse().unwrap(), 0)).unwrap();
        let stream = socket.connect(fixture.address).await.unwrap();
        let url = format!("ws://{}/mcp", fixture.address);
        tokio_tungstenite::client_async(url, stream).await.map(|(socket, _)| socket)
    };
    let _open = [open("127.0.0.1").await.unwrap(), open("127.0.0.1").await.unwrap()];
    match open("127.0.0.1").await {
        Err(tokio_tungstenite::tungstenite::Error::Http(response)) => assert_eq!(response.status(), 503),
        other => panic!("{other:?}"),
    }
    let _other = open("127.0.0.2").await.unwrap();
}

#[cfg(feature = "ws")]
#[tokio::test]
async fn no_address_has_all_the_websockets() {
    let limits = HttpLimits { websockets: 8, ..HttpLimits::default() };
    let fixture = Fixture::with(|http| http.limits(limits).websocket(true)).await;
    let open = |client: &'static str| async move {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(client.parse().unwrap(), 0)).unwrap();
        let stream = socket.connect(fixture.address).await.unwrap();
        let url = format!("ws://{}/mcp", fixture.address);
        tokio_tungstenite::client_async(url, stream).await.map(|(socket, _)| socket)
    };
    let mut sockets = Vec::new();
    while let Ok(socket) = open("127.0.0.1").await {
        sockets.push(socket);
    }
    assert_eq!(sockets.len(), 2);
    let _other = open("127.0.0.2").await.unwrap();
}
