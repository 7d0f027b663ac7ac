//! What a tool publishes about its input and output holds for what it takes and gives, in every revision.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwire_protocol::{Version, schema::Schema};
use toolwire_server::{Args, Json, Server, tool};
use toolwire_testkit::each;

#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct Tree {
    name: String,
    children: Vec<Self>,
}

#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum Shape {
    Circle { radius: f64 },
    Group { shapes: Vec<Self>, by_name: BTreeMap<String, Point> },
    Nothing,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
struct Point {
    x: i32,
    y: Option<u8>,
}

#[derive(Deserialize, JsonSchema)]
struct Drawing {
    shape: Shape,
    tree: Option<Tree>,
    #[serde(default)]
    points: Vec<Point>,
}

fn tree() -> Tree {
    let leaf = Tree { name: "leaf".to_owned(), children: Vec::new() };
    Tree { name: "root".to_owned(), children: vec![leaf.clone(), leaf] }
}

fn shape() -> Shape {
    let by_name = [("a".to_owned(), Point { x: -1, y: None })].into();
    Shape::Group { shapes: vec![Shape::Circle { radius: 0.5 }, Shape::Nothing], by_name }
}

fn server() -> Server {
    Server::builder("schemas", "1.0")
        .tool(tool("tree", || async { Json(tree()) }))
        .tool(tool("forest", || async { Json(vec![tree(), tree()]) }))
        .tool(tool("shape", || async { Json(shape()) }))
        .tool(tool("maybe", || async { Json(Some(Point { x: 1, y: Some(2) })) }))
        .tool(tool("never", || async { Json(None::<Tree>) }))
        .tool(tool("map", || async { Json(BTreeMap::from([("k", vec![1_u64])])) }))
        .tool(tool("pair", || async { Json((1, "two")) }))
        .tool(tool("text", || async { Json("plain") }))
        .tool(tool("truth", || async { Json(true) }))
        .tool(tool("draw", |Args(drawing): Args<Drawing>| async move {
            let Drawing { shape, tree, points } = drawing;
            Json(json!({ "shape": shape, "tree": tree, "points": points.len() }))
        }))
        .build()
        .unwrap()
}

#[tokio::test]
async fn of_outputs_fit_what_comes() {
    let server = server();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        let list = wire.request("tools/list", Value::Null).await;
        for tool in list.result()["tools"].as_array().unwrap().iter().filter(|tool| tool["name"] != "draw") {
            let reply = wire.request("tools/call", json!({ "name": tool["name"] })).await;
            let content = reply.result().get("structuredContent");
            if setup.version < Version::V2025_06_18 {
                assert!(content.is_none() && tool.get("outputSchema").is_none(), "{tool}");
                continue;
            }
            let schema = Schema::compile(&tool["outputSchema"]).unwrap();
            assert!(schema.skipped().is_empty(), "{:?}", schema.skipped());
            if let Err(violations) = schema.validate(content.unwrap()) {
                panic!("{}: {violations}\n{}\n{}", tool["name"], tool["outputSchema"], reply.message());
            }
        }
    })
    .await;
}

#[tokio::test]
async fn of_inputs_tell_good_arguments_from_bad_ones() {
    let server = server();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        let list = wire.request("tools/list", Value::Null).await;
        let draw = list.result()["tools"].as_array().unwrap().last().unwrap();
        let schema = Schema::compile(&draw["inputSchema"]).unwrap();
        for (arguments, fits) in [
            (json!({ "shape": { "kind": "nothing" } }), true),
            (
                json!({ "shape": { "kind": "circle", "radius": 1 }, "tree": tree(), "points": [{ "x": 1 }] }),
                true,
            ),
            (json!({ "shape": { "kind": "square" } }), false),
            (json!({ "shape": { "kind": "circle" } }), false),
            (json!({ "shape": shape(), "points": [{ "x": 1, "y": 300 }] }), false),
            (json!({ "shape": shape(), "tree": { "name": "x", "children": [{}] } }), false),
            (json!({ "tree": tree() }), false),
        ] {
            assert_eq!(schema.is_valid(&arguments), fits, "{arguments}");
            let reply = wire.request("tools/call", json!({ "name": "draw", "arguments": arguments })).await;
            assert_eq!(reply.result()["isError"] != true, fits, "{}", reply.message());
        }
        // Null stands for what is not given, whatever the schema says: models send it.
        for arguments in
            [json!({ "shape": { "kind": "nothing" }, "tree": null }), json!({ "shape": shape() })]
        {
            assert!(!schema.is_valid(&arguments), "{arguments}");
            let reply = wire.request("tools/call", json!({ "name": "draw", "arguments": arguments })).await;
            assert_ne!(reply.result()["isError"], true, "{}", reply.message());
        }
    })
    .await;
}
