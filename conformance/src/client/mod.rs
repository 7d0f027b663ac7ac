//! The client that the suite watches: what an application would do in each of its scenarios.

mod login;
mod scenarios;

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use toolwire::{
    Client,
    client::{ClientBuilder, ElicitReply},
    serde::Deserialize,
    wire::{Content, CreateMessageResult, Role, Root},
};
use toolwire_http::client::Http;

/// How long a scenario may take. The suite waits for 30 seconds, and forever for what does not end by itself.
pub const DEADLINE: Duration = Duration::from_secs(25);

/// The scenario that a client is in, as the suite tells it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// The revision it is played at; older releases of the suite do not say it.
    pub revision: Option<String>,
    /// What the suite says besides.
    pub context: ScenarioContext,
}

impl Scenario {
    /// A scenario by its name, without anything that would have to be known for it.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// What the suite tells a client about the scenario it is in.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(crate = "toolwire::serde", default)]
#[non_exhaustive]
pub struct ScenarioContext {
    /// The calls to make.
    #[serde(rename = "toolCalls")]
    pub tool_calls: Vec<ToolCall>,
    /// The client that an issuer knows already.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<String>,
    /// The issuer that knows it.
    pub issuer: Option<String>,
    /// The key that it signs with, in PEM.
    pub private_key_pem: Option<String>,
    /// The algorithm that it signs with.
    pub signing_algorithm: Option<String>,
    /// What the platform says the program is.
    pub valid_jwt: Option<String>,
    /// The identity provider of the company.
    pub idp_issuer: Option<String>,
    /// The client that it knows.
    pub idp_client_id: Option<String>,
    /// What it gave out at the login.
    pub idp_id_token: Option<String>,
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

/// Connects to a URL and plays a scenario.
///
/// # Errors
/// When anything goes wrong that the scenario does not expect, or when there is no such scenario.
pub async fn play(scenario: Scenario, url: &str) -> Result<()> {
    let part = scenarios::part(&scenario.name)?;
    let (mut client, mut server) = (builder(), Http::builder(url));
    if part.logs_in() {
        let oauth = login::oauth(&scenario, url).await?;
        for (name, settings) in oauth.extensions() {
            client = client.extension(name, settings);
        }
        server = server.auth(oauth);
    }
    let client = client.connect(server.build()?).await?;
    let played = part.play(&client, scenario.context).await;
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
