//! Handlers that ask, through Toolwire's own client: one source, one test, every revision.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolwire_client::{ClientBuilder, ElicitReply};
use toolwire_protocol::{
    ErrorCode, RpcError, Version,
    wire::{
        Content, CreateMessageRequestParams, CreateMessageResult, OneOrMany, Role, Root, SamplingMessage,
    },
};
use toolwire_server::{Answer, BoxError, CallerCan, Context, Server, StateKeys, prompt, resource, tool};
use toolwire_testkit::{Matrix, each_client};

/// How urgent it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Urgency {
    Low,
    High,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Ticket {
    title: String,
    #[serde(default = "low")]
    urgency: Urgency,
    #[serde(default)]
    public: bool,
}

fn low() -> Urgency {
    Urgency::Low
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    yes: bool,
}

async fn file_ticket(cx: Context) -> Result<String, BoxError> {
    let Answer::Accept(ticket) = cx.elicit::<Ticket>("What is wrong?").key("ticket").await? else {
        return Ok("nothing filed".to_owned());
    };
    let number: u32 = cx.once("number", async { 7 }).await?;
    if !cx.elicit::<Confirm>(format!("File {:?} as number {number}?", ticket.title)).accepted().await?.yes {
        return Ok("nothing filed".to_owned());
    }
    Ok(format!("{number}: {} {:?} {}", ticket.title, ticket.urgency, ticket.public))
}

async fn ask_the_model(cx: Context) -> Result<String, BoxError> {
    let request = CreateMessageRequestParams::new(
        vec![SamplingMessage::user("What is the capital of France?")],
        10_u64,
    );
    let (said, roots) = tokio::try_join!(async { cx.sample(request).key("capital").await }, async {
        cx.roots().key("roots").await
    },)?;
    let text = said.content.iter().find_map(Content::as_text).unwrap_or_default();
    Ok(format!("{text}, {} roots", roots.len()))
}

fn server() -> Server {
    Server::builder("asking", "1.0")
        .tool(tool("file", file_ticket))
        .tool(tool("model", ask_the_model))
        .tool(tool("careful", |cx: Context| async move {
            if cx.caller().can(CallerCan::ElicitForm) { "would ask" } else { "would not" }
        }))
        .prompt(prompt("confirm", |cx: Context| async move {
            let yes = cx.elicit::<Confirm>("Really?").accepted().await?.yes;
            Ok::<_, BoxError>(format!("The user said {yes}."))
        }))
        .resource(resource("asking://roots", |cx: Context| async move {
            let roots = cx.roots().await?;
            Ok::<_, BoxError>(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
        }))
        .replay_check(true)
        .build()
        .unwrap()
}

/// A host with a user who fills in what the schema does not fill in by itself.
fn host(builder: ClientBuilder) -> ClientBuilder {
    builder
        .on_elicit(|asked| async move {
            match asked.schema() {
                Some(form) if form.properties.iter().any(|(name, _)| name == "title") => {
                    ElicitReply::accept(json!({"title": "it rains", "public": true}))
                }
                Some(_) => ElicitReply::accept(json!({"yes": true})),
                None => ElicitReply::decline(),
            }
        })
        .on_sample(|asked| async move {
            let Some(question) =
                asked.messages.first().and_then(|message| message.content.iter().next()?.as_text())
            else {
                return Err(RpcError::invalid_params("nothing asked"));
            };
            assert!(question.contains("France"));
            Ok(CreateMessageResult::new(
                Role::Assistant,
                OneOrMany::One(Content::text("Paris")),
                "some-model",
            ))
        })
        .roots(vec![Root::new("file:///a"), Root::new("file:///b")])
}

fn elicits(version: Version) -> bool {
    version >= Version::V2025_06_18
}

#[tokio::test]
async fn forms_defaults_and_steps() {
    each_client(async |setup| {
        let client = setup.client_with(&server(), host).await;
        let answer = client.call("file", json!({})).await.unwrap();
        if elicits(setup.version) {
            assert_eq!(answer.text(), "7: it rains Low true", "the default of a field is filled in");
        } else {
            assert!(answer.is_error() && answer.text().contains("elicitation"), "{}", answer.text());
        }
        let careful = client.call("careful", json!({})).await.unwrap();
        assert_eq!(careful.text(), if elicits(setup.version) { "would ask" } else { "would not" });
    })
    .await;
}

#[tokio::test]
async fn models_and_roots_in_every_revision() {
    each_client(async |setup| {
        let client = setup.client_with(&server(), host).await;
        assert_eq!(client.call("model", json!({})).await.unwrap().text(), "Paris, 2 roots");
        let read = client.read("asking://roots").await.unwrap();
        let text = serde_json::to_value(&read).unwrap()["contents"][0]["text"].clone();
        assert_eq!(text, "file:///a file:///b");
    })
    .await;
}

#[tokio::test]
async fn prompts() {
    Matrix::clients()
        .since(Version::V2025_06_18)
        .run(async |setup| {
            let client = setup.client_with(&server(), host).await;
            let prompt = client.get_prompt("confirm", json!({})).await.unwrap();
            assert_eq!(prompt.messages[0].content.as_text(), Some("The user said true."));
        })
        .await;
}

#[tokio::test]
async fn a_user_who_declines_or_leaves() {
    Matrix::clients()
        .since(Version::V2025_06_18)
        .run(async |setup| {
            for reply in [ElicitReply::decline, ElicitReply::cancel] {
                let client = setup
                    .client_with(&server(), |builder| builder.on_elicit(move |_| async move { reply() }))
                    .await;
                assert_eq!(client.call("file", json!({})).await.unwrap().text(), "nothing filed");
            }
        })
        .await;
}

#[tokio::test]
async fn a_host_without_handlers_is_not_asked() {
    each_client(async |setup| {
        let client = setup.client(&server()).await;
        let answer = client.call("file", json!({})).await;
        if setup.version.is_modern() {
            let error = answer.unwrap_err();
            assert_eq!(error.rpc().unwrap().code, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY);
        } else {
            assert!(answer.unwrap().is_error());
        }
    })
    .await;
}

#[tokio::test]
async fn calls_ask_at_once_and_keep_their_answers_apart() {
    #[derive(Deserialize, JsonSchema)]
    struct Number {
        number: u32,
    }
    let echo = tool(
        "ask",
        |toolwire_server::Args(Number { number }): toolwire_server::Args<Number>, cx: Context| async move {
            let answer = cx.elicit::<Number>(format!("{number}?")).accepted().await?;
            Ok::<_, BoxError>(format!("{number} {}", answer.number))
        },
    );
    let server = Server::builder("asking", "1.0").tool(echo).build().unwrap();
    Matrix::clients()
        .since(Version::V2025_06_18)
        .run(async |setup| {
            let asked = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&asked);
            let client = setup.client_with(&server, |builder| {
                builder.on_elicit(move |asked| {
                    count.fetch_add(1, Ordering::Relaxed);
                    let number = asked.message().trim_end_matches('?').parse::<u32>().unwrap();
                    async move { ElicitReply::accept(json!({"number": number})) }
                })
            });
            let client = client.await;
            let mut calls = tokio::task::JoinSet::new();
            for number in 0..50 {
                let client = client.clone();
                calls.spawn(async move {
                    let answer = client.call("ask", json!({"number": number})).await.unwrap();
                    assert_eq!(answer.text(), format!("{number} {number}"));
                });
            }
            while let Some(done) = calls.join_next().await {
                done.unwrap();
            }
            assert_eq!(asked.load(Ordering::Relaxed), 50);
        })
        .await;
}

/// Round one at one replica, round two at another: by hand, because a client stays with its server.
#[tokio::test]
async fn another_replica_with_the_same_key_goes_on() {
    let replica = |secret: &str| {
        let keys = StateKeys::new([secret]).unwrap();
        Server::builder("asking", "1.0").tool(tool("file", file_ticket)).state_keys(keys).build().unwrap()
    };
    let ours = "a secret that both replicas know about";
    let params = json!({"name": "file"});
    let wire = |server: &Server| {
        let server = server.clone();
        async move {
            toolwire_testkit::Wire::builder(Version::V2026_07_28)
                .capabilities(json!({"elicitation": {}}))
                .connect(&server)
                .await
        }
    };
    let mut first = wire(&replica(ours)).await;
    let asked = first.request("tools/call", params.clone()).await;
    let state = asked.result()["requestState"].clone();
    let retry = json!({"name": "file", "requestState": state,
        "inputResponses": {"ticket": {"action": "accept", "content": {"title": "x"}}}});
    let mut second = wire(&replica(ours)).await;
    let asked = second.request("tools/call", retry.clone()).await;
    assert_eq!(asked.result()["resultType"], "input_required", "the second question");
    let mut stranger = wire(&replica("a secret that nobody else knows, really")).await;
    assert_eq!(stranger.request("tools/call", retry).await.code(), -32602);
}
