//! The scenarios, by the names that the suite gives them.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use toolwire::{Client, client::CallOutcome};

use super::{ScenarioContext, ToolCall};
use crate::skills;

/// What a client does once it is connected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part {
    /// Lists the tools, if there are any, and does nothing with them.
    ListTools,
    /// Adds two numbers.
    Add,
    /// Calls one tool without arguments.
    Call(&'static str),
    /// Calls tools that ask before they answer, and one that does not.
    AnswerQuestions,
    /// Uses tools, resources and prompts.
    UseEverything,
    /// Makes the calls that the context names.
    MakeCalls,
    /// Calls every tool there is.
    CallAllTools,
    /// Sends the schema of a tool back.
    ReturnSchema,
    /// Lists the skills and reads none of them.
    ListSkills,
    /// Loads every skill.
    LoadSkills,
    /// Calls a tool of a server that wants a login.
    LogIn,
}

pub(super) fn part(scenario: &str) -> Result<Part> {
    Ok(match scenario {
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" => Part::ListTools,
        "tools_call" => Part::Add,
        "elicitation-sep1034-client-defaults" => Part::Call("test_client_elicitation_defaults"),
        "sse-retry" => Part::Call("test_reconnection"),
        "sep-2322-client-request-state" => Part::AnswerQuestions,
        "http-standard-headers" => Part::UseEverything,
        "http-custom-headers" => Part::MakeCalls,
        "http-invalid-tool-headers" => Part::CallAllTools,
        "json-schema-2020-12-preservation" => Part::ReturnSchema,
        "sep-2640-client-no-prefetch" => Part::ListSkills,
        "sep-2640-client-verify-digest"
        | "sep-2640-client-verify-size"
        | "sep-2640-client-verify-frontmatter" => Part::LoadSkills,
        other if other.starts_with("auth/") => Part::LogIn,
        other => bail!("there is no scenario {other:?}"),
    })
}

impl Part {
    /// Whether the server wants to know who calls it.
    pub(super) const fn logs_in(self) -> bool {
        matches!(self, Self::LogIn)
    }

    pub(super) async fn play(self, client: &Client, context: ScenarioContext) -> Result<()> {
        match self {
            Self::ListTools => {
                if client.capabilities().tools.is_some() {
                    client.all_tools().await?;
                }
            }
            Self::Add => {
                client.all_tools().await?;
                works(client.call("add_numbers", json!({ "a": 5, "b": 3 })).await?)?;
            }
            Self::Call(tool) => {
                client.all_tools().await?;
                works(client.call(tool, json!({})).await?)?;
            }
            Self::LogIn => {
                client.all_tools().await?;
                works(client.call("test-tool", json!({})).await?)?;
            }
            Self::AnswerQuestions => answer_questions(client).await?,
            Self::UseEverything => use_everything(client).await?,
            Self::MakeCalls => {
                client.all_tools().await?;
                for ToolCall { name, arguments } in context.tool_calls {
                    works(client.call(name, arguments).await?)?;
                }
            }
            Self::CallAllTools => {
                for tool in client.all_tools().await? {
                    works(client.call(tool.name, json!({ "region": "us-west1" })).await?)?;
                }
            }
            Self::ReturnSchema => return_schema(client).await?,
            Self::ListSkills => drop(skills::client::list(client).await?),
            Self::LoadSkills => {
                for skill in skills::client::list(client).await? {
                    skills::client::load(client, &skill).await?;
                }
            }
        }
        Ok(())
    }
}

fn works(outcome: CallOutcome) -> Result<CallOutcome> {
    ensure!(!outcome.is_error(), "the tool failed: {}", outcome.text());
    Ok(outcome)
}

async fn answer_questions(client: &Client) -> Result<()> {
    client.all_tools().await?;
    let call = async |tool: &str| works(client.call(tool, json!({})).await?);
    // Side by side, so that one call is made while the other waits for its answer.
    tokio::try_join!(call("test_mrtr_echo_state"), call("test_mrtr_unrelated"))?;
    call("test_mrtr_no_state").await?;
    call("test_mrtr_no_result_type").await?;
    Ok(())
}

async fn use_everything(client: &Client) -> Result<()> {
    for tool in client.all_tools().await? {
        works(client.call(tool.name, json!({})).await?)?;
    }
    for resource in client.all_resources().await? {
        client.read(resource.uri).await?;
    }
    for prompt in client.all_prompts().await? {
        client.get_prompt(prompt.name, json!({})).await?;
    }
    Ok(())
}

async fn return_schema(client: &Client) -> Result<()> {
    let tools = client.all_tools().await?;
    let tool = tools.into_iter().find(|tool| tool.name == "json_schema_2020_12_tool");
    let schema = tool.context("there is no tool with the schema to return")?.input_schema;
    works(client.call("json_schema_echo", json!({ "schema": schema })).await?)?;
    Ok(())
}
