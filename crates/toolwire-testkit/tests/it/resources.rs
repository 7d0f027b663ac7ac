//! Resources and resource templates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwire_protocol::{
    Version,
    wire::{Annotations, CacheHint, CacheScope, ReadResourceResult, ResourceContents, Role},
};
use toolwire_server::{Json, NotFound, Server, Uri, resource, template};
use toolwire_testkit::{Matrix, Setup, each};

use crate::{assert_since, names};

#[derive(Deserialize, JsonSchema)]
struct Page {
    number: u32,
    chapter: Chapter,
}

#[derive(Deserialize, Serialize, JsonSchema, Debug)]
#[serde(rename_all = "lowercase")]
enum Chapter {
    Start,
    End,
}

async fn page(Uri(page): Uri<Page>) -> Option<String> {
    (page.number < 300).then(|| format!("page {} of {:?}", page.number, page.chapter))
}

fn server() -> Server {
    let annotations = Annotations::new().audience(vec![Role::User]).priority(0.5);
    Server::builder("resources", "1.0")
        .resource(
            resource("note://text", || async { "a note" })
                .name("note")
                .title("A note")
                .mime_type("text/markdown")
                .size(6)
                .annotations(annotations),
        )
        .resource(resource("note://bytes", || async { vec![0_u8, 255, 1] }).name("bytes"))
        .resource(resource("note://json", || async { Json(json!({ "a": 1 })) }).name("json"))
        .resource(resource("note://gone", || async { Err::<String, _>(NotFound) }).name("gone"))
        .resource(resource("note://broken", || async { Err::<String, _>("the disk is full") }).name("broken"))
        .template(template("book://{chapter}/{number}", page).name("page").mime_type("text/plain"))
        .build()
        .unwrap()
}

#[tokio::test]
async fn are_listed() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let reply = wire.request("resources/list", Value::Null).await;
        let resources = &reply.result()["resources"];
        assert_eq!(names(resources, "name"), ["note", "bytes", "json", "gone", "broken"]);
        let note = &resources[0];
        assert_eq!((&note["uri"], &note["size"]), (&json!("note://text"), &json!(6)));
        assert_eq!(note["annotations"], json!({ "audience": ["user"], "priority": 0.5 }));
        assert_since(setup.version, Version::V2025_06_18, note, "title");
        let reply = wire.request("resources/templates/list", Value::Null).await;
        let templates = &reply.result()["resourceTemplates"];
        assert_eq!(names(templates, "uriTemplate"), ["book://{chapter}/{number}"]);
    })
    .await;
}

#[tokio::test]
async fn are_read_as_text_bytes_and_json() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        for (uri, contents) in [
            ("note://text", json!({ "text": "a note", "mimeType": "text/markdown" })),
            ("note://bytes", json!({ "blob": "AP8B", "mimeType": "application/octet-stream" })),
            ("note://json", json!({ "text": "{\"a\":1}", "mimeType": "application/json" })),
        ] {
            let reply = wire.request("resources/read", json!({ "uri": uri })).await;
            let mut expected = contents;
            expected["uri"] = json!(uri);
            assert_eq!(reply.result()["contents"], json!([expected]));
        }
    })
    .await;
}

#[tokio::test]
async fn of_a_template_have_typed_variables() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let reply = wire.request("resources/read", json!({ "uri": "book://start/7" })).await;
        let expected = json!([
            { "uri": "book://start/7", "text": "page 7 of Start", "mimeType": "text/plain" }
        ]);
        assert_eq!(reply.result()["contents"], expected);
    })
    .await;
}

#[tokio::test]
async fn are_found_by_their_own_uri_before_the_best_template() {
    let server = Server::builder("resources", "1.0")
        .template(template("f:///{+path}", || async { "any" }))
        .template(template("f:///docs/{name}", || async { "doc" }))
        .template(template("f:///docs/{name}.md", || async { "markdown" }))
        .resource(resource("f:///docs/a.md", || async { "itself" }))
        .build()
        .unwrap();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        for (uri, text) in [
            ("f:///docs/a.md", "itself"),
            ("f:///docs/b.md", "markdown"),
            ("f:///docs/b", "doc"),
            ("f:///docs/deep/b", "any"),
        ] {
            let reply = wire.request("resources/read", json!({ "uri": uri })).await;
            assert_eq!(reply.result()["contents"][0]["text"], text, "{uri}");
        }
    })
    .await;
}

#[tokio::test]
async fn that_do_not_exist_have_a_code_per_era() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let code = if setup.version.is_modern() { -32602 } else { -32002 };
        for uri in
            ["note://other", "note://gone", "book://start/300", "book://start/seven", "book://middle/1"]
        {
            let reply = wire.request("resources/read", json!({ "uri": uri })).await;
            assert_eq!(reply.code(), code, "{uri}: {}", reply.message());
            assert_eq!(reply.error()["data"], json!({ "uri": uri }));
        }
    })
    .await;
}

#[tokio::test]
async fn that_cannot_be_read_or_named_are_errors_of_their_own() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        assert_eq!(wire.request("resources/read", json!({ "uri": "note://broken" })).await.code(), -32603);
        for params in [json!({}), json!({ "uri": 7 })] {
            assert_eq!(wire.request("resources/read", params).await.code(), -32602);
        }
    })
    .await;
}

fn cached_server() -> Server {
    let hint = CacheHint { ttl_ms: 5000, scope: CacheScope::Public };
    let fresh = move || async move {
        ReadResourceResult::new(vec![ResourceContents::text("a://b", "c")]).cached(hint)
    };
    Server::builder("resources", "1.0").resource(resource("a://b", fresh)).list_cache(hint).build().unwrap()
}

#[tokio::test]
async fn carry_caching_hints_only_in_the_modern_era() {
    let requests = [("resources/read", json!({ "uri": "a://b" })), ("resources/list", json!({}))];
    Matrix::new()
        .run(async |setup: Setup| {
            let mut wire = setup.wire(&cached_server()).await;
            for (method, params) in requests.clone() {
                let reply = wire.request(method, params).await;
                let result = reply.result();
                let modern = setup.version.is_modern();
                assert_eq!(result.get("ttlMs"), modern.then_some(&json!(5000)), "{method}");
                assert_eq!(result.get("cacheScope"), modern.then_some(&json!("public")), "{method}");
                assert_eq!(result.get("resultType"), modern.then_some(&json!("complete")), "{method}");
            }
        })
        .await;
}
