//! The service in somebody else's router.

use serde_json::json;
use tokio::net::TcpListener;
use toolwire_http::server::HttpService;
use toolwire_server::{Server, tool};

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
