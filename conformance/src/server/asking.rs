//! Tools that ask a model or the user, in whichever way the client can be asked.

use toolwire::{
    Answer, Context, Group, Result, routes,
    schemars::{self, JsonSchema},
    serde::Deserialize,
    tool,
    wire::{Content, CreateMessageRequestParams, CreateMessageResult, Role, SamplingMessage},
};

pub(super) fn routes() -> Group {
    routes![test_sampling, test_elicitation, test_missing_capability, test_streaming_elicitation]
}

/// A question to a model.
pub(super) fn question(text: impl Into<String>, max_tokens: u64) -> CreateMessageRequestParams {
    let message = SamplingMessage::new(Role::User, Content::text(text));
    CreateMessageRequestParams::new(vec![message], max_tokens)
}

/// What a model has said.
pub(super) fn said(answer: &CreateMessageResult) -> String {
    answer.content.iter().filter_map(Content::as_text).collect()
}

/// Asks the client's model.
#[tool]
async fn test_sampling(
    /// What to ask.
    prompt: String,
    cx: Context,
) -> Result<String> {
    let answer = cx.sample(question(prompt, 100)).await?;
    Ok(format!("LLM response: {}", said(&answer)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "toolwire::serde")]
struct Account {
    /// The name to be known by.
    username: String,
    /// Where to write to.
    email: String,
}

/// Asks the user for a name and an address.
#[tool]
async fn test_elicitation(
    /// What to tell the user.
    message: String,
    cx: Context,
) -> Result<String> {
    Ok(match cx.elicit::<Account>(message).await? {
        Answer::Accept(Account { username, email }) => format!("User response: {username}, {email}"),
        Answer::Decline => "User response: declined".to_owned(),
        Answer::Cancel => "User response: cancelled".to_owned(),
    })
}

/// Needs a client that has a model.
#[tool]
async fn test_missing_capability(cx: Context) -> Result<String> {
    Ok(said(&cx.sample(question("Is there anybody?", 10)).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "toolwire::serde")]
struct Agreement {
    /// Whether to go on.
    agreed: bool,
}

/// Asks the user whether to go on.
#[tool]
async fn test_streaming_elicitation(cx: Context) -> Result<String> {
    let Agreement { agreed } = cx.elicit("Shall we go on?").accepted().await?;
    Ok(format!("Agreed: {agreed}"))
}
