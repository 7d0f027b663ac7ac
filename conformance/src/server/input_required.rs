//! Tools and a prompt that ask under names the suite knows (SEP-2322). How the questions travel, and what
//! becomes of answers that are missing, wrong or tampered with, is the SDK's business.

use toolwire::{
    Context, Group, Result, prompt, routes,
    schemars::{self, JsonSchema},
    serde::Deserialize,
    server::CallerCan,
    tool,
};

use super::asking::{question, said};

pub(super) fn routes() -> Group {
    routes![
        test_input_required_result_elicitation,
        test_input_required_result_sampling,
        test_input_required_result_list_roots,
        test_input_required_result_request_state,
        test_input_required_result_multiple_inputs,
        test_input_required_result_multi_round,
        test_input_required_result_tampered_state,
        test_input_required_result_capabilities,
        test_input_required_result_prompt
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "toolwire::serde")]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "toolwire::serde")]
struct Colour {
    color: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "toolwire::serde")]
struct Confirmation {
    ok: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "toolwire::serde")]
struct Background {
    context: String,
}

/// Asks the user for a name.
#[tool]
async fn test_input_required_result_elicitation(cx: Context) -> Result<String> {
    let Name { name } = cx.elicit("What is your name?").key("user_name").accepted().await?;
    Ok(format!("Hello, {name}!"))
}

/// Asks the model for a capital.
#[tool]
async fn test_input_required_result_sampling(cx: Context) -> Result<String> {
    let capital = cx.sample(question("What is the capital of France?", 100)).key("capital_question").await?;
    Ok(said(&capital))
}

/// Asks for the roots.
#[tool]
async fn test_input_required_result_list_roots(cx: Context) -> Result<String> {
    let roots = cx.roots().key("client_roots").await?;
    let uris: Vec<String> = roots.into_iter().map(|root| root.uri).collect();
    Ok(format!("The roots are: {}", uris.join(", ")))
}

/// Asks for a confirmation, with a state that has to come back.
#[tool]
async fn test_input_required_result_request_state(cx: Context) -> Result<String> {
    let Confirmation { ok } = cx.elicit("Is that all right?").key("confirm").accepted().await?;
    Ok(format!("state-ok, confirmed: {ok}"))
}

/// Asks three questions at once.
#[tool]
async fn test_input_required_result_multiple_inputs(cx: Context) -> Result<String> {
    let name = async { cx.elicit::<Name>("What is your name?").key("user_name").accepted().await };
    let greeting = async { cx.sample(question("Greet somebody.", 50)).key("greeting").await };
    let roots = async { cx.roots().key("client_roots").await };
    let (name, greeting, roots) = tokio::try_join!(name, greeting, roots)?;
    Ok(format!("{} {}, you have {} roots.", said(&greeting), name.name, roots.len()))
}

/// Asks two questions, one after the other.
#[tool]
async fn test_input_required_result_multi_round(cx: Context) -> Result<String> {
    let Name { name } = cx.elicit("What is your name?").key("step1").accepted().await?;
    let Colour { color } = cx.elicit("What is your favourite colour?").key("step2").accepted().await?;
    Ok(format!("{name} likes {color}."))
}

/// Asks for a confirmation, with a state that must not be changed.
#[tool]
async fn test_input_required_result_tampered_state(cx: Context) -> Result<String> {
    let Confirmation { ok } = cx.elicit("Is that all right?").key("confirm").accepted().await?;
    Ok(format!("Confirmed: {ok}"))
}

/// Asks only what the client can answer.
#[tool]
async fn test_input_required_result_capabilities(cx: Context) -> Result<String> {
    if cx.caller().can(CallerCan::ElicitForm) {
        let Name { name } = cx.elicit("What is your name?").key("user_name").accepted().await?;
        return Ok(format!("Hello, {name}!"));
    }
    Ok(said(&cx.sample(question("Make up a name.", 50)).key("made_up_name").await?))
}

/// Asks the user for context.
#[prompt]
async fn test_input_required_result_prompt(cx: Context) -> Result<String> {
    let Background { context } = cx.elicit("What is it about?").key("user_context").accepted().await?;
    Ok(format!("Use this context: {context}"))
}
