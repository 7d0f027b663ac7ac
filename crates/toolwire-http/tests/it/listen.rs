//! `subscriptions/listen`: acknowledged first, tagged, and ended with a result.

use serde_json::json;

use toolwire_server::{Limits, tool};

use crate::{
    bare::{Connection, Request, ask},
    fixture::Fixture,
    until,
};

const ID: &str = "io.modelcontextprotocol/subscriptionId";

fn listen() -> Request {
    Request::modern("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }))
}

#[tokio::test]
async fn a_listener_hears_of_changes_until_the_end() {
    let fixture = Fixture::start().await;
    for id in [json!("l-1"), json!(1)] {
        let mut connection = Connection::open(fixture.address).await;
        connection.send(&listen().id(id.clone())).await;
        let head = connection.head().await;
        assert_eq!((head.status, head.get("content-type")), (200, Some("text/event-stream")));
        let acknowledged = connection.message().await.unwrap();
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(acknowledged["params"]["_meta"][ID], id);
        assert_eq!(acknowledged["params"]["notifications"], json!({ "toolsListChanged": true }));
        fixture.server.add_tool(tool("fresh", || async { "" })).unwrap();
        let changed = connection.message().await.unwrap();
        assert_eq!(changed["method"], "notifications/tools/list_changed");
        assert_eq!(changed["params"]["_meta"][ID], id);
        assert!(fixture.server.remove_tool("fresh"));
        connection.message().await.unwrap();
    }
    let mut connection = Connection::open(fixture.address).await;
    connection.send(&listen()).await;
    connection.head().await;
    connection.message().await.unwrap();
    fixture.server.shutdown();
    let result = connection.message().await.unwrap();
    assert_eq!((&result["id"], &result["result"]["_meta"][ID]), (&json!(1), &json!(1)));
    assert_eq!(connection.message().await, None);
}

#[tokio::test]
async fn a_fault_is_answered_as_json() {
    let fixture = Fixture::start().await;
    let wrong = Request::modern("subscriptions/listen", json!({ "notifications": 3 }));
    let response = ask(fixture.address, &wrong).await;
    assert_eq!((response.status(), response.code()), (200, -32602));
    let response = ask(fixture.address, &listen().header("Accept", "application/json")).await;
    assert_eq!((response.status(), response.code()), (406, -32600));
}

#[tokio::test]
async fn only_so_many_listeners() {
    let limits = Limits { listeners: 2, ..Limits::default() };
    let fixture = Fixture::with_limits(limits, |http| http).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut connection = Connection::open(fixture.address).await;
        connection.send(&listen()).await;
        connection.head().await;
        connection.message().await.unwrap();
        open.push(connection);
    }
    let response = ask(fixture.address, &listen()).await;
    assert_eq!((response.status(), response.code()), (429, -32603));
    // Other requests are served all the same, and one listener that leaves makes room for another.
    assert_eq!(ask(fixture.address, &Request::modern("tools/list", json!({}))).await.status(), 200);
    drop(open.pop());
    until("the place of the listener that left was not given back", async || {
        let mut connection = Connection::open(fixture.address).await;
        connection.send(&listen()).await;
        connection.head().await.status == 200
    })
    .await;
}
