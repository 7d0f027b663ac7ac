//! Endpoints that know their address before they are served, and handles to end them.

use std::net::SocketAddr;

use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
};
use toolwire_http::server::HttpService;
use toolwire_server::{Server, tool};

use crate::{
    bare::{Connection, Request, ask},
    port::Port,
};

fn server() -> Server {
    Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build().unwrap()
}

fn now() -> Request {
    Request::call("now", json!({}))
}

#[tokio::test]
async fn an_address_in_use_is_named_with_the_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let error = HttpService::bind(server(), address).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    let said = error.to_string();
    assert!(said.starts_with(&format!("cannot listen on {address}: ")), "{said}");
    assert!(said.ends_with("; end the program that uses it, or choose another port"), "{said}");
}

#[tokio::test]
async fn a_client_may_connect_before_it_is_served() {
    let port = Port::reserve();
    let address = port.address();
    let serve = HttpService::bind(server(), address).await.unwrap();
    assert_eq!(serve.local_addr(), address);
    assert_eq!(serve.url(), format!("http://{address}/mcp"));
    let mut early = Connection::open(address).await;
    early.send(&now()).await;
    let serving = serve.spawn();
    assert_eq!((serving.local_addr(), serving.url()), (address, format!("http://{address}/mcp").as_str()));
    assert_eq!(early.response().await.status(), 200);
    serving.shutdown().await.unwrap();
    assert!(early.is_closed().await);
    assert!(TcpStream::connect(address).await.is_err());
    // The port is given back.
    port.listen().await;
}

#[tokio::test]
async fn a_handle_tells_when_it_has_ended() {
    let server = server();
    let mut serving = HttpService::bind(server.clone(), "127.0.0.1:0").await.unwrap().spawn();
    server.shutdown();
    serving.ended().await.unwrap();
    serving.ended().await.unwrap();
    serving.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_signal_ends_what_was_spawned() {
    let (stop, stopped) = oneshot::channel::<()>();
    let serve = HttpService::bind(server(), "127.0.0.1:0").await.unwrap();
    let mut serving = serve
        .with_graceful_shutdown(async {
            let _ = stopped.await;
        })
        .spawn();
    assert_eq!(ask(serving.local_addr(), &now()).await.status(), 200);
    stop.send(()).unwrap();
    serving.ended().await.unwrap();
}

#[tokio::test]
async fn dropping_the_handle_ends_everything() {
    let serving = HttpService::bind(server(), "127.0.0.1:0").await.unwrap().spawn();
    let mut connection = Connection::open(serving.local_addr()).await;
    assert_eq!(connection.ask(&now()).await.status(), 200);
    drop(serving);
    assert!(connection.is_closed().await);
}

#[tokio::test]
async fn the_url_is_one_that_clients_can_use() {
    let any = HttpService::bind(server(), "0.0.0.0:0").await.unwrap();
    let port = any.local_addr().port();
    assert_eq!(any.url(), format!("http://127.0.0.1:{port}/mcp"));
    let serving = any.spawn();
    assert_eq!(ask(SocketAddr::from(([127, 0, 0, 1], port)), &now()).await.status(), 200);
    serving.shutdown().await.unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let public = HttpService::builder(server()).public_url("https://clock.example/mcp").build().unwrap();
    assert_eq!(public.serve(listener).url(), "https://clock.example/mcp");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    assert_eq!(HttpService::new(server()).serve(listener).url(), format!("http://{address}/"));
}
