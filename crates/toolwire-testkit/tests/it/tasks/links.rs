//! Tasks over unix sockets.

use serde_json::json;
use toolwire_testkit::AnyDuplex;
use toolwire_transport::UnixSocket;

use super::*;

/// A task from its call to its result, with a question on the way.
async fn a_whole_task(wire: &mut Wire) {
    let task = start(wire, "asks", json!({})).await;
    until(wire, &task, "input_required").await;
    if wire.version() == CORE {
        let result = wire.start("tasks/result", id(&task)).await;
        let question = next_of(wire, "elicitation/create").await;
        answer(wire, &question, depth(3)).await;
        assert_eq!(crate::text(wire.reply(result).await.result()), "3 deep");
        let list = wire.request("tasks/list", json!({})).await;
        assert_eq!(list.result()["tasks"][0]["taskId"], task["taskId"]);
    } else {
        let mut update = id(&task);
        update["inputResponses"] = json!({ "depth": depth(3) });
        wire.request("tasks/update", update).await.result();
        assert_eq!(crate::text(&until(wire, &task, "completed").await["result"]), "3 deep");
    }
}

#[tokio::test]
async fn over_a_unix_socket_tasks_belong_to_the_user_at_the_other_end() {
    for version in [CORE, EXTENSION] {
        let path = std::env::temp_dir().join(format!("toolwire-tasks-{}-{version}.sock", std::process::id()));
        let socket = UnixSocket::new(path);
        let (server, listener) = (server(), socket.listen().await.unwrap());
        let serving = tokio::spawn({
            let server = server.clone();
            async move { server.serve_listener(listener).await }
        });
        let connect = async || {
            let connection = AnyDuplex::new(socket.connect().await.unwrap());
            Wire::builder(version).capabilities(capabilities(version)).over(connection).await
        };
        let mut wire = connect().await;
        a_whole_task(&mut wire).await;
        // The same user by another connection.
        let task = start(&mut wire, "waits", json!({})).await;
        let mut other = connect().await;
        assert_eq!(other.request("tasks/get", id(&task)).await.result()["status"], "working");
        server.shutdown();
        serving.await.unwrap();
    }
}
