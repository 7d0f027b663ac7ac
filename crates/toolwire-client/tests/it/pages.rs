//! Going through lists.

use serde_json::{Value, json};
use toolwire_client::{ClientLimits, ErrorKind};
use toolwire_protocol::Version;

use crate::script::{Script, builder, connect, modern};

fn page(names: &[&str], next: Option<&str>) -> Value {
    let tools: Vec<_> =
        names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
    let mut page = json!({"tools": tools, "ttlMs": 60_000, "cacheScope": "private"});
    if let Some(next) = next {
        page["nextCursor"] = next.into();
    }
    page
}

async fn serve(script: &mut Script, cursor: Option<&str>, page: Value) {
    let request = script.expect("tools/list").await;
    assert_eq!(request["params"].get("cursor").and_then(Value::as_str), cursor);
    script.reply(&request, page).await;
}

#[tokio::test]
async fn all_pages_are_fetched_and_the_empty_cursor_is_one() {
    for version in Version::ALL {
        let (client, mut script) = connect(builder(), version).await;
        let (tools, ()) = tokio::join!(client.all_tools(), async {
            serve(&mut script, None, page(&["a", "b"], Some(""))).await;
            serve(&mut script, Some(""), page(&[], Some("x"))).await;
            serve(&mut script, Some("x"), page(&["c"], None)).await;
        });
        let names: Vec<_> = tools.unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }
}

#[tokio::test]
async fn a_page_is_fetched_when_it_is_needed() {
    let (client, mut script) = modern().await;
    let mut tools = client.tools();
    let (first, ()) = tokio::join!(tools.next(), serve(&mut script, None, page(&["a", "b"], Some("2"))));
    assert_eq!(first.unwrap().unwrap().name, "a");
    assert_eq!(tools.next().await.unwrap().unwrap().name, "b");
    script.expect_silence().await;
    let (third, ()) = tokio::join!(tools.next(), serve(&mut script, Some("2"), page(&["c"], None)));
    assert_eq!(third.unwrap().unwrap().name, "c");
    assert!(tools.next().await.is_none());

    // Now every page is stored.
    assert_eq!(client.all_tools().await.unwrap().len(), 3);
    script.expect_silence().await;
    let (one, ()) =
        tokio::join!(client.list_tools().cursor("2").fresh(), serve(&mut script, Some("2"), page(&[], None)));
    assert!(one.unwrap().tools.is_empty());
}

#[tokio::test]
async fn pages_that_go_round_in_a_circle_are_an_error() {
    let (client, mut script) = modern().await;
    let (tools, ()) = tokio::join!(client.all_tools(), async {
        serve(&mut script, None, page(&["a"], Some("1"))).await;
        serve(&mut script, Some("1"), page(&["b"], Some("2"))).await;
        serve(&mut script, Some("2"), page(&["c"], Some("1"))).await;
    });
    let error = tools.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooManyPages);
    assert!(error.to_string().contains("\"1\""), "{error}");
}

#[tokio::test]
async fn pages_without_an_end_are_an_error() {
    let (client, mut script) = modern().await;
    let mut pages = client.resources();
    let (error, ()) = tokio::join!(pages.next(), async {
        for number in 0..ClientLimits::default().list_pages {
            let request = script.expect("resources/list").await;
            script.reply(&request, json!({"resources": [], "nextCursor": number.to_string()})).await;
        }
    });
    let error = error.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.limit()), (ErrorKind::TooManyPages, Some("list_pages")));
    assert!(pages.next().await.is_none(), "it ends after an error");
    script.expect_silence().await;
}

#[tokio::test]
async fn a_cursor_that_is_no_longer_known_drops_the_stored_pages() {
    let (client, mut script) = modern().await;
    let (tools, ()) = tokio::join!(client.all_tools(), async {
        serve(&mut script, None, page(&["a"], Some("old"))).await;
        let request = script.expect("tools/list").await;
        script.fail(&request, -32602, "unknown cursor").await;
    });
    assert_eq!(tools.unwrap_err().kind(), ErrorKind::Rpc);
    let (tools, ()) = tokio::join!(client.all_tools(), serve(&mut script, None, page(&["b"], None)));
    assert_eq!(tools.unwrap().len(), 1);
}

#[tokio::test]
async fn every_list_has_its_pages() {
    let (client, mut script) = modern().await;
    let lists = async {
        assert_eq!(client.all_resources().await.unwrap().len(), 1);
        assert_eq!(client.all_resource_templates().await.unwrap().len(), 1);
        assert_eq!(client.all_prompts().await.unwrap().len(), 1);
    };
    tokio::join!(lists, async {
        for (method, result) in [
            ("resources/list", json!({"resources": [{"uri": "file:///a", "name": "a"}]})),
            (
                "resources/templates/list",
                json!({"resourceTemplates": [{"uriTemplate": "file:///{x}", "name": "x"}]}),
            ),
            ("prompts/list", json!({"prompts": [{"name": "p"}]})),
        ] {
            let request = script.expect(method).await;
            script.reply(&request, result).await;
        }
    });
}
