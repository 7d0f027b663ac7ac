//! The service in somebody else's router.

use std::{net::SocketAddr, sync::Arc};

use axum::extract::ConnectInfo;
use http::request::Parts;
use serde_json::json;
use tokio::net::TcpListener;
use toolwire_http::server::{HttpService, PeerAddr};
use toolwire_server::{Extension, Server, tool};

use crate::bare::{Request, ask};

#[tokio::test]
async fn it_mounts_in_an_axum_router() {
    let server = Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build().unwrap();
    let mcp = HttpService::builder(server);
    #[cfg(feature = "ws")]
    let mcp = mcp.websocket(true);
    let mcp = mcp.build().unwrap();
    let app = axum::Router::<()>::new().route_service("/mcp", mcp.clone()).nest_service("/nested", mcp);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(axum::serve(listener, app).into_future());
    for path in ["/mcp", "/nested/mcp"] {
        let response = ask(address, &Request::call("now", json!({})).path(path)).await;
        assert_eq!(response.json()["result"]["content"][0]["text"], "noon", "{path}");
    }
    #[cfg(feature = "ws")]
    {
        let url = format!("ws://{address}/nested/mcp");
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let (_, response) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        assert_eq!(response.status(), 101);
    }
    assert_eq!(ask(address, &Request::new("GET").path("/elsewhere")).await.status(), 404);
    serving.abort();
}

#[tokio::test]
async fn a_router_tells_where_requests_come_from_or_they_are_refused() {
    let from = tool("from", |Extension(parts): Extension<Arc<Parts>>| async move {
        parts.extensions.get::<PeerAddr>().unwrap().0.ip().to_string()
    });
    let server = Server::builder("from", "1.0").tool(from).build().unwrap();
    let mcp = HttpService::builder(server)
        .peer_addr(|request| request.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0))
        .build()
        .unwrap();
    let app = axum::Router::<()>::new().route_service("/mcp", mcp);
    let knows = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let knows_not = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addresses = [&knows, &knows_not].map(|listener| listener.local_addr().unwrap());
    let connected = app.clone().into_make_service_with_connect_info::<SocketAddr>();
    let serving = [
        tokio::spawn(axum::serve(knows, connected).into_future()),
        tokio::spawn(axum::serve(knows_not, app).into_future()),
    ];
    let call = Request::call("from", json!({}));
    let answer = ask(addresses[0], &call).await.json();
    assert_eq!(answer["result"]["content"][0]["text"], "127.0.0.1");
    let refused = ask(addresses[1], &call).await;
    assert_eq!((refused.status(), refused.code()), (500, -32603));
    for serving in serving {
        serving.abort();
    }
}
