//! Completion of prompt arguments and template variables.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwire_protocol::Version;
use toolwire_server::{Args, Complete, Server, Uri, prompt, template};
use toolwire_testkit::{Wire, each};

#[derive(Deserialize, JsonSchema)]
struct Words {
    language: String,
    framework: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct City {
    city: String,
}

async fn frameworks(complete: Complete) -> Vec<String> {
    let language = complete.arguments.get("language").map_or("any", |language| language.as_str());
    vec![format!("{language}:{}", complete.value)]
}

fn server() -> Server {
    let words = |Args(words): Args<Words>| async move { format!("{} {:?}", words.language, words.framework) };
    let cities: Vec<String> = (0..250).map(|number| format!("city {number}")).collect();
    let broken = |_: Complete| async { Err::<Vec<String>, _>("no dictionary") };
    Server::builder("completion", "1.0")
        .prompt(
            prompt("words", words)
                .complete("language", ["python", "PyPy", "rust"])
                .complete("framework", frameworks),
        )
        .prompt(prompt("broken", |Args(city): Args<City>| async { city.city }).complete("city", broken))
        .template(
            template("weather://{city}", |Uri(city): Uri<City>| async { city.city }).complete("city", cities),
        )
        .build()
        .unwrap()
}

async fn complete(wire: &mut Wire, reference: Value, argument: &str, value: &str) -> Value {
    let params = json!({ "ref": reference, "argument": { "name": argument, "value": value } });
    wire.request("completion/complete", params).await.result()["completion"].clone()
}

#[tokio::test]
async fn of_a_prompt_argument_from_a_list() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let words = json!({ "type": "ref/prompt", "name": "words" });
        let completion = complete(&mut wire, words.clone(), "language", "PY").await;
        assert_eq!(completion, json!({ "values": ["python", "PyPy"], "total": 2, "hasMore": false }));
        let completion = complete(&mut wire, words, "unknown", "").await;
        assert_eq!(completion["values"], json!([]));
    })
    .await;
}

#[tokio::test]
async fn sees_the_other_arguments_where_the_revision_sends_them() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let mut params = json!({
            "ref": { "type": "ref/prompt", "name": "words" },
            "argument": { "name": "framework", "value": "ax" },
        });
        if setup.version >= Version::V2025_06_18 {
            params["context"] = json!({ "arguments": { "language": "rust" } });
        }
        let reply = wire.request("completion/complete", params).await;
        let expected = if setup.version >= Version::V2025_06_18 { "rust:ax" } else { "any:ax" };
        assert_eq!(reply.result()["completion"]["values"], json!([expected]));
    })
    .await;
}

#[tokio::test]
async fn of_a_template_variable_gives_at_most_a_hundred_values() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let weather = json!({ "type": "ref/resource", "uri": "weather://{city}" });
        let completion = complete(&mut wire, weather.clone(), "city", "").await;
        assert_eq!(completion["values"].as_array().map(Vec::len), Some(100));
        assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(250), &json!(true)));
        let completion = complete(&mut wire, weather, "city", "city 24").await;
        assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(11), &json!(false)));
    })
    .await;
}

#[tokio::test]
async fn of_what_does_not_exist_is_refused() {
    each(async |setup| {
        let mut wire = setup.wire(&server()).await;
        let argument = json!({ "name": "city", "value": "" });
        for (reference, code) in [
            (json!({ "type": "ref/prompt", "name": "verbs" }), -32602),
            (json!({ "type": "ref/resource", "uri": "weather://{town}" }), -32602),
            (json!({ "type": "ref/other", "name": "words" }), -32602),
            (json!({ "type": "ref/prompt", "name": "broken" }), -32603),
        ] {
            let params = json!({ "ref": reference, "argument": argument });
            assert_eq!(wire.request("completion/complete", params).await.code(), code);
        }
        assert_eq!(wire.request("completion/complete", json!({})).await.code(), -32602);
    })
    .await;
}
