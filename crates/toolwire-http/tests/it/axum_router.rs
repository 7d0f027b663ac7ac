//! The service in somebody else's router.

use std::{net::SocketAddr, sync::Arc};

use axum::extract::ConnectInfo;
use http::request::Parts;
use serde_json::json;
use tokio::net::TcpListener;
use toolwire_http::server::{HttpBuilder, HttpService, PeerAddr};
use toolwire_server::{Extension, Server, tool};
use toolwire_transport::internal::AbortOnDrop;

use crate::bare::{Request, ask};

#[tokio::test]
async fn it_mounts_in_an_axum_router() {
    let server = Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build().unwrap();
    let mcp = HttpService::builder(server)
        .peer_addr(|request| request.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0));
    #[cfg(feature = "ws")]
    let mcp = mcp.websocket(true);
    let mcp = mcp.build().unwrap();
    let app = axum::Router::<()>::new().route_service("/mcp", mcp.clone()).nest_service("/nested", mcp);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
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

/// Serves an endpoint in a router that tells nothing of its clients.
async fn serve_plain(mcp: HttpService) -> (SocketAddr, AbortOnDrop<std::io::Result<()>>) {
    let app = axum::Router::<()>::new().route_service("/mcp", mcp);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (address, AbortOnDrop::new(tokio::spawn(axum::serve(listener, app).into_future())))
}

#[tokio::test]
async fn requests_without_an_address_are_refused_unless_the_endpoint_does_without() {
    let build = |change: fn(HttpBuilder) -> HttpBuilder| {
        let server = Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build().unwrap();
        let mcp = change(HttpService::builder(server));
        #[cfg(feature = "ws")]
        let mcp = mcp.websocket(true);
        #[cfg(feature = "sse2024")]
        let mcp = mcp.sse2024("/mcp/sse", "/mcp/messages");
        mcp.build().unwrap()
    };
    let call = Request::call("now", json!({})).path("/mcp");
    let (address, _serving) = serve_plain(build(|mcp| mcp)).await;
    for request in [&call, &Request::new("GET").path("/mcp"), &Request::new("DELETE").path("/mcp")] {
        let refused = ask(address, request).await;
        assert_eq!((refused.status(), refused.code()), (500, -32603));
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        for remedy in ["HttpBuilder::peer_addr", "HttpBuilder::without_peer_addresses"] {
            assert!(message.contains(remedy), "{message}");
        }
    }
    #[cfg(feature = "ws")]
    {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let refused =
            tokio_tungstenite::client_async(format!("ws://{address}/mcp"), stream).await.unwrap_err();
        let tokio_tungstenite::tungstenite::Error::Http(response) = refused else { panic!("{refused}") };
        assert_eq!(response.status(), 500);
    }
    let decided: [fn(HttpBuilder) -> HttpBuilder; 2] =
        [HttpBuilder::without_peer_addresses, HttpBuilder::behind_proxy];
    for decide in decided {
        let (address, _serving) = serve_plain(build(decide)).await;
        assert_eq!(ask(address, &call).await.json()["result"]["content"][0]["text"], "noon");
    }
}
