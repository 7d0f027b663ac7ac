//! Tasks over HTTP and WebSocket, in both eras: statuses, headers and streams.

use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use toolwire_http::server::{Body, HttpService, Principal};
use toolwire_server::{BoxError, Context, Server, TaskPolicy, tool};

use crate::{PATIENCE, bare::enveloped, legacy_kit::*};

const TASKS: &str = "io.modelcontextprotocol/tasks";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const RELATED: &str = "io.modelcontextprotocol/related-task";

#[derive(Deserialize, JsonSchema)]
struct Depth {
    depth: u32,
}

async fn asks(cx: Context) -> Result<String, BoxError> {
    let depth = cx.elicit::<Depth>("How deep?").key("depth").accepted().await?;
    Ok(format!("{} deep", depth.depth))
}

fn server() -> Server {
    let waits = || async { std::future::pending::<&str>().await };
    Server::builder("tasks", "1.0")
        .tool(tool("asks", asks).task(TaskPolicy::optional()))
        .tool(tool("waits", waits).task(TaskPolicy::optional()))
        .tool(tool("must", || async { "must" }).task(TaskPolicy::required()))
        .build()
        .unwrap()
}

fn service() -> HttpService {
    crate::unaddressed(server())
}

async fn connect(service: &HttpService, principal: Option<&str>) -> (Peer, Value) {
    let mut peer = Peer::stranger(service);
    peer.principal = principal.map(Principal::new);
    let mut hello = initialize(NEWEST);
    hello["params"]["capabilities"] = json!({ "elicitation": {} });
    let response = peer.post(&hello).await;
    peer.session = Some(response.headers()["mcp-session-id"].to_str().unwrap().to_owned());
    let capabilities = json_body(response).await["result"]["capabilities"].clone();
    peer.version = Some(NEWEST);
    peer.initialized().await;
    (peer, capabilities)
}

#[expect(clippy::needless_pass_by_value, reason = "so that parameters can be written where they are used")]
fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

async fn start(peer: &Peer, tool: &str) -> Value {
    let call = request(1, "tools/call", json!({ "name": tool, "arguments": {}, "task": {} }));
    json_body(peer.post(&call).await).await["result"]["task"].clone()
}

fn id(task: &Value) -> Value {
    json!({ "taskId": task["taskId"] })
}

/// Looks at a legacy task until it has this status.
async fn until(peer: &Peer, task: &Value, status: &str) {
    let look = request(2, "tasks/get", id(task));
    crate::until(&format!("the task is not {status}"), async || {
        json_body(peer.post(&look).await).await["result"]["status"] == status
    })
    .await;
}

fn depth(question: &Value, depth: u32) -> Value {
    let result = json!({ "action": "accept", "content": { "depth": depth } });
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })
}

/// A modern exchange whose headers mirror its body, but for what is given.
async fn modern(service: &HttpService, method: &str, params: Value, name: Option<&str>) -> Response<Body> {
    let mut params = params;
    let own = params["taskId"].as_str().or_else(|| params["name"].as_str()).map(str::to_owned);
    let undeclared = params.as_object_mut().unwrap().remove("undeclared").is_some();
    let name = name.map(str::to_owned).or(own).unwrap_or_default();
    let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    if !name.is_empty() {
        headers.push(("mcp-name", &name));
    }
    let mut message = enveloped(method, params);
    if !undeclared {
        message["params"]["_meta"][CAPABILITIES] = json!({ "elicitation": {}, "extensions": { TASKS: {} } });
    }
    Peer::stranger(service).send("POST", &headers, message.to_string()).await
}

async fn get(service: &HttpService, task: &Value) -> Value {
    json_body(modern(service, "tasks/get", id(task), None).await).await["result"].clone()
}

#[tokio::test]
async fn a_legacy_task_is_asked_on_the_stream_of_its_result_and_answered_by_post() {
    let service = service();
    let (peer, _) = connect(&service, None).await;
    let task = start(&peer, "asks").await;
    until(&peer, &task, "input_required").await;
    let mut stream = Events::of(peer.post(&request(3, "tasks/result", id(&task))).await);
    let question = stream.message().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["_meta"][RELATED], id(&task));
    assert_eq!(peer.post(&depth(&question, 3)).await.status(), StatusCode::ACCEPTED);
    assert_eq!(gists(&stream.rest().await), ["3 deep"]);
    // An answer is stored when it is acknowledged, so that the next look finds none open.
    let again = json_body(peer.post(&request(4, "tasks/result", id(&task))).await).await;
    assert_eq!(again["result"]["content"][0]["text"], "3 deep");
}

#[tokio::test]
async fn an_answer_may_come_by_another_session_of_the_same_owner_but_of_nobody_else() {
    let service = service();
    let (ada, capabilities) = connect(&service, Some("ada")).await;
    assert_eq!(capabilities["tasks"]["list"], json!({}), "she can be told apart");
    let task = start(&ada, "asks").await;
    until(&ada, &task, "input_required").await;
    let mut stream = Events::of(ada.post(&request(3, "tasks/result", id(&task))).await);
    let question = stream.message().await.unwrap();
    let (eve, _) = connect(&service, Some("eve")).await;
    assert_eq!(eve.post(&depth(&question, 9)).await.status(), StatusCode::ACCEPTED);
    let (again, _) = connect(&service, Some("ada")).await;
    assert_eq!(again.post(&depth(&question, 4)).await.status(), StatusCode::ACCEPTED);
    let rest = stream.rest().await;
    assert!(rest.iter().any(|event| event.to_string().contains("4 deep")), "{rest:?}");
    let list = json_body(eve.post(&request(5, "tasks/list", json!({}))).await).await;
    assert_eq!(list["result"]["tasks"], json!([]));
}

#[tokio::test]
async fn strangers_have_their_tasks_by_id_and_no_list() {
    let service = service();
    let (one, capabilities) = connect(&service, None).await;
    assert!(capabilities["tasks"].get("list").is_none() && capabilities["tasks"].get("cancel").is_some());
    let task = start(&one, "waits").await;
    let (other, _) = connect(&service, None).await;
    let found = json_body(other.post(&request(2, "tasks/get", id(&task))).await).await;
    assert_eq!(found["result"]["status"], "working", "who knows the id has the task");
    let list = json_body(other.post(&request(3, "tasks/list", json!({}))).await).await;
    assert_eq!(list["error"]["code"], -32601);
    let (ada, _) = connect(&service, Some("ada")).await;
    let foreign = json_body(ada.post(&request(2, "tasks/get", id(&task))).await).await;
    assert_eq!(foreign["error"]["code"], -32602);
}

#[tokio::test]
async fn the_status_of_a_legacy_task_is_told_on_the_standalone_stream_of_its_session() {
    let server = server();
    let service = crate::unaddressed(server.clone());
    let (peer, _) = connect(&service, None).await;
    let (other, _) = connect(&service, None).await;
    let (mut stream, mut silent) = (Events::of(peer.get(None).await), Events::of(other.get(None).await));
    let task = start(&peer, "waits").await;
    peer.post(&request(2, "tasks/cancel", id(&task))).await;
    let cancelled = async {
        loop {
            let told = stream.message().await.unwrap();
            assert_eq!(told["method"], "notifications/tasks/status");
            assert_eq!(told["params"]["taskId"], task["taskId"]);
            if told["params"]["status"] == "cancelled" {
                break;
            }
        }
    };
    timeout(PATIENCE, cancelled).await.expect("the stream did not tell that the task was cancelled");
    server.shutdown();
    let ended = async {
        while let Some(message) = silent.message().await {
            assert_ne!(message["method"], "notifications/tasks/status");
        }
    };
    timeout(PATIENCE, ended).await.expect("the stream of the other session did not end");
}

#[tokio::test]
async fn modern_statuses_and_headers() {
    let service = service();
    let call = json!({ "name": "waits", "arguments": {} });
    let created = modern(&service, "tools/call", call, None).await;
    assert_eq!(created.status(), StatusCode::OK);
    let task = json_body(created).await["result"].clone();
    assert_eq!(task["resultType"], "task");

    let undeclared = json!({ "taskId": task["taskId"], "undeclared": true });
    for (method, params, name, status, code) in [
        ("tasks/get", id(&task), None, 200, 0),
        ("tasks/get", id(&task), Some("other"), 400, -32020),
        ("tasks/cancel", id(&task), Some("other"), 400, -32020),
        ("tasks/get", json!({ "taskId": "unknown" }), None, 200, -32602),
        ("tasks/get", undeclared.clone(), None, 400, -32021),
        ("tasks/cancel", undeclared, None, 400, -32021),
        ("tools/call", json!({ "name": "must", "arguments": {}, "undeclared": true }), None, 400, -32021),
        ("tasks/result", id(&task), None, 404, -32601),
        ("tasks/list", json!({}), None, 404, -32601),
    ] {
        let response = modern(&service, method, params, name).await;
        let what = format!("{method} with {name:?}");
        assert_eq!(response.status().as_u16(), status, "{what}");
        let body = json_body(response).await;
        assert_eq!(body["error"]["code"].as_i64().unwrap_or_default(), code, "{what}: {body}");
    }
}

#[tokio::test]
async fn a_modern_task_is_answered_by_update_and_heard_of_by_listening() {
    let service = service();
    let call = json!({ "name": "asks", "arguments": {} });
    let task = json_body(modern(&service, "tools/call", call, None).await).await["result"].clone();
    let listen = json!({ "notifications": { "taskIds": [task["taskId"]] } });
    let mut events = Events::of(modern(&service, "subscriptions/listen", listen, None).await);
    let agreed = events.message().await.unwrap();
    assert_eq!(agreed["params"]["notifications"]["taskIds"], json!([task["taskId"]]));
    crate::until("the task asks nothing", async || get(&service, &task).await["status"] == "input_required")
        .await;
    let mut update = id(&task);
    update["inputResponses"] = json!({ "depth": { "action": "accept", "content": { "depth": 5 } } });
    let acknowledged = json_body(modern(&service, "tasks/update", update, None).await).await;
    assert_eq!(acknowledged["result"]["resultType"], "complete");
    let completed = async {
        loop {
            let told = events.message().await.unwrap();
            assert_eq!(told["method"], "notifications/tasks");
            if told["params"]["status"] == "completed" {
                break told;
            }
        }
    };
    let done =
        timeout(PATIENCE, completed).await.expect("the stream did not tell that the task was completed");
    assert_eq!(done["params"]["result"]["content"][0]["text"], "5 deep");
}

#[cfg(feature = "ws")]
mod websocket {
    use futures_util::{SinkExt as _, StreamExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_tungstenite::{
        WebSocketStream, client_async,
        tungstenite::{Message, client::IntoClientRequest as _},
    };

    use super::*;

    async fn say(socket: &mut WebSocketStream<TcpStream>, message: &Value) {
        socket.send(Message::text(message.to_string())).await.unwrap();
    }

    /// The next message that is a response to `id`, or has this method.
    async fn hear(socket: &mut WebSocketStream<TcpStream>, id: u64, method: &str) -> Value {
        let heard = async {
            loop {
                let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
                let message: Value = serde_json::from_str(&text).unwrap();
                if message["method"] == method || (message.get("method").is_none() && message["id"] == id) {
                    break message;
                }
            }
        };
        let heard = timeout(PATIENCE, heard).await;
        heard.unwrap_or_else(|_| panic!("neither a response to {id} nor the method {method:?} came"))
    }

    #[tokio::test]
    async fn a_legacy_task_with_a_question_and_no_list_for_a_stranger() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = server();
        let service = HttpService::builder(server.clone()).websocket(true).build().unwrap();
        let serving = tokio::spawn(service.serve(listener).into_future());
        let url = format!("ws://{address}/mcp").into_client_request().unwrap();
        let mut socket = client_async(url, TcpStream::connect(address).await.unwrap()).await.unwrap().0;
        let mut hello = initialize(NEWEST);
        hello["params"]["capabilities"] = json!({ "elicitation": {} });
        say(&mut socket, &hello).await;
        let capabilities = hear(&mut socket, 0, "").await["result"]["capabilities"].clone();
        assert!(capabilities["tasks"].is_object() && capabilities["tasks"].get("list").is_none());
        say(&mut socket, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        let call = json!({ "name": "asks", "arguments": {}, "task": {} });
        say(&mut socket, &request(1, "tools/call", call)).await;
        let task = hear(&mut socket, 1, "").await["result"]["task"].clone();
        say(&mut socket, &request(2, "tasks/result", id(&task))).await;
        let question = hear(&mut socket, 2, "elicitation/create").await;
        say(&mut socket, &depth(&question, 6)).await;
        let result = hear(&mut socket, 2, "").await;
        assert_eq!(result["result"]["content"][0]["text"], "6 deep");
        say(&mut socket, &request(3, "tasks/list", json!({}))).await;
        assert_eq!(hear(&mut socket, 3, "").await["error"]["code"], -32601);
        server.shutdown();
        drop(socket);
        timeout(PATIENCE, serving).await.expect("the server did not end").unwrap().unwrap();
    }
}
