//! The client that the suite watches: what an application would do in each of its scenarios.

mod scenarios;

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use toolwire::{
    Client,
    client::{ClientBuilder, Connector, ElicitReply},
    serde::Deserialize,
    wire::{Content, CreateMessageResult, Role, Root},
};

/// How long a scenario may take. The suite waits for 30 seconds, and forever for what does not end by itself.
pub const DEADLINE: Duration = Duration::from_secs(25);

/// What the suite tells a client about the scenario it is in.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(crate = "toolwire::serde", default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ScenarioContext {
    /// The calls to make.
    pub tool_calls: Vec<ToolCall>,
}

/// A call to make.
#[derive(Clone, Debug, Deserialize)]
#[serde(crate = "toolwire::serde")]
#[non_exhaustive]
pub struct ToolCall {
    /// The name of the tool.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Value,
}

/// Connects and plays a scenario.
///
/// # Errors
/// When anything goes wrong that the scenario does not expect, or when there is no such scenario.
pub async fn play<Kind, C>(scenario: &str, context: ScenarioContext, connector: C) -> Result<()>
where
    C: Connector<Kind>,
{
    let part = scenarios::part(scenario)?;
    let client = builder().connect(connector).await?;
    let played = part.play(&client, context).await;
    client.close().await?;
    played
}

/// A client that can answer every kind of question.
fn builder() -> ClientBuilder {
    Client::builder("toolwire-conformance-client", env!("CARGO_PKG_VERSION"))
        .on_elicit(|question| async move {
            // The person agrees to everything and leaves the rest of the form as it is.
            let asked = question.schema().is_some_and(|form| form.properties.contains_key("confirmed"));
            if asked {
                ElicitReply::accept(json!({ "confirmed": true }))
            } else {
                ElicitReply::accept_defaults()
            }
        })
        .on_sample(|_| async {
            Ok(CreateMessageResult::new(Role::Assistant, Content::text("Paris"), "a-model-for-tests"))
        })
        .roots([Root::new("file:///conformance")])
}
