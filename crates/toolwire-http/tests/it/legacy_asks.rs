//! Questions to the client: they go out on the stream of the request, and their answers come in by POST.

use http::StatusCode;
use serde_json::{Value, json};
use toolwire_http::server::HttpService;
use toolwire_server::{Context, Server, ToolError, tool};

use crate::legacy_kit::*;

async fn count_roots(cx: Context) -> Result<String, ToolError> {
    let roots = cx.roots().await?;
    Ok(format!("{} roots", roots.len()))
}

fn service() -> HttpService {
    crate::unaddressed(Server::builder("test", "1.0").tool(tool("count_roots", count_roots)).build().unwrap())
}

async fn connect(service: &HttpService, capabilities: Value) -> Peer {
    let mut peer = Peer::stranger(service);
    let mut hello = initialize(NEWEST);
    hello["params"]["capabilities"] = capabilities;
    let response = peer.post(&hello).await;
    peer.session = Some(response.headers()["mcp-session-id"].to_str().unwrap().to_owned());
    peer.initialized().await;
    peer
}

fn answer(question: &Value) -> Value {
    let roots = json!([{"uri": "file:///a"}, {"uri": "file:///b"}]);
    json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": roots}})
}

#[tokio::test]
async fn a_question_is_asked_on_the_stream_and_answered_by_post() {
    let service = service();
    let peer = connect(&service, json!({"roots": {}})).await;
    let mut stream = Events::of(peer.call(1, "count_roots").await);
    let question = stream.message().await.unwrap();
    assert_eq!(question["method"], "roots/list");
    // An answer in another session answers nothing. It is another answer, or nobody could tell.
    let other = connect(&service, json!({"roots": {}})).await;
    let mut foreign = answer(&question);
    foreign["result"]["roots"] = json!([]);
    assert_eq!(other.post(&foreign).await.status(), StatusCode::ACCEPTED);
    assert_eq!(peer.post(&answer(&question)).await.status(), StatusCode::ACCEPTED);
    assert_eq!(gists(&stream.rest().await), ["2 roots"]);
}

#[tokio::test]
async fn a_question_that_was_missed_is_there_when_the_client_comes_back() {
    let peer = connect(&service(), json!({"roots": {}})).await;
    let mut stream = Events::of(peer.call(1, "count_roots").await);
    let id = stream.next().await.unwrap().id.unwrap();
    drop(stream);
    let mut resumed = Events::of(peer.get(Some(&id)).await);
    let question = resumed.message().await.unwrap();
    assert_eq!(peer.post(&answer(&question)).await.status(), StatusCode::ACCEPTED);
    assert_eq!(gists(&resumed.rest().await), ["2 roots"]);
}

#[tokio::test]
async fn a_client_that_cannot_answer_is_not_asked() {
    let peer = connect(&service(), json!({})).await;
    let answer = json_body(peer.call(1, "count_roots").await).await;
    assert_eq!(answer["result"]["isError"], true);
}
