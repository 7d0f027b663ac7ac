//! Adding and removing while serving.

use serde_json::{Value, json};
use toolwire_server::{Server, prompt, resource, template, tool};
use toolwire_testkit::each;

use crate::{bare, names, text};

#[tokio::test]
async fn what_is_added_can_be_used_and_what_is_removed_cannot() {
    each(async |setup| {
        let server = Server::builder("runtime", "1.0")
            .tool(tool("old", || async { "old" }))
            .prompt(prompt("old", || async { "old" }))
            .resource(resource("old://a", || async { "old" }))
            .build()
            .unwrap();
        let mut wire = setup.wire(&server).await;
        server.add_tool(tool("new", || async { "new" })).unwrap();
        server.add_prompt(prompt("new", || async { "new" })).unwrap();
        server.add_resource(resource("new://a", || async { "new" })).unwrap();
        server.add_template(template("new://t/{x}", || async { "new" })).unwrap();
        assert!(
            server.remove_tool("old") && server.remove_prompt("old") && server.remove_resource("old://a")
        );

        let reply = wire.request("tools/list", Value::Null).await;
        assert_eq!(names(&reply.result()["tools"], "name"), ["new"]);
        assert_eq!(text(wire.request("tools/call", json!({ "name": "new" })).await.result()), "new");
        assert_eq!(wire.request("tools/call", json!({ "name": "old" })).await.code(), -32602);
        wire.request("prompts/get", json!({ "name": "new" })).await.result();
        assert_eq!(wire.request("prompts/get", json!({ "name": "old" })).await.code(), -32602);
        wire.request("resources/read", json!({ "uri": "new://t/1" })).await.result();
        assert!(wire.request("resources/read", json!({ "uri": "old://a" })).await.is_error());
        assert!(server.remove_template("new://t/{x}"));
        assert!(wire.request("resources/read", json!({ "uri": "new://t/1" })).await.is_error());
    })
    .await;
}

#[tokio::test]
async fn servers_do_not_share_what_they_offer() {
    each(async |setup| {
        let (one, two) = (bare(), bare());
        one.add_tool(tool("a", || async { "" })).unwrap();
        let mut wire = setup.wire(&two).await;
        assert_eq!(wire.request("tools/list", Value::Null).await.code(), -32601);
        let mut wire = setup.wire(&one).await;
        wire.request("tools/list", Value::Null).await.result();
    })
    .await;
}

#[tokio::test]
async fn a_running_call_survives_the_removal_of_its_tool() {
    each(async |setup| {
        let server = bare();
        let itself = server.clone();
        let suicidal = move || {
            let server = itself.clone();
            async move {
                server.remove_tool("suicidal");
                tokio::task::yield_now().await;
                "last words"
            }
        };
        server.add_tool(tool("suicidal", suicidal)).unwrap();
        let mut wire = setup.wire(&server).await;
        let id = wire.start("tools/call", json!({ "name": "suicidal" })).await;
        assert_eq!(text(wire.reply(id).await.result()), "last words");
    })
    .await;
}
