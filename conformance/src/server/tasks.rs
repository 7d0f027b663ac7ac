//! Tools whose calls become tasks, under names the suite knows (SEP-2663).

use std::time::Duration;

use toolwire::{
    Ask, Context, Group, Question, Result, ToolError, routes,
    schemars::{self, JsonSchema},
    serde::Deserialize,
    tool,
};

pub(super) fn routes() -> Group {
    routes![
        greet,
        slow_compute,
        failing_job,
        protocol_error_job,
        confirm_delete,
        multi_input,
        test_tool_with_task
    ]
}

/// Greets, and has no tasks.
#[tool]
async fn greet(name: Option<String>) -> String {
    format!("Hello, {}!", name.as_deref().unwrap_or("world"))
}

/// Works for some seconds.
#[tool(task)]
async fn slow_compute(seconds: f64, label: Option<String>) -> Result<String> {
    let time = Duration::try_from_secs_f64(seconds).map_err(|error| ToolError::message(error.to_string()))?;
    tokio::time::sleep(time).await;
    Ok(format!("{} took {seconds} s", label.as_deref().unwrap_or("it")))
}

/// Works for a second and then says that it did not work.
#[tool(task_required)]
async fn failing_job() -> Result<String> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Err(ToolError::message("this job always fails").into())
}

/// Panics, which is an error of the protocol.
#[tool(task)]
#[expect(clippy::panic, reason = "the suite wants to see what becomes of it")]
async fn protocol_error_job() -> String {
    tokio::task::yield_now().await;
    panic!("the job has panicked, as the suite wants it to")
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "toolwire::serde")]
struct Confirmation {
    confirm: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "toolwire::serde")]
struct UserName {
    name: String,
}

/// Deletes a file if the user agrees.
#[tool(task)]
async fn confirm_delete(cx: Context, filename: String) -> Result<String> {
    let question = format!("Delete {filename}?");
    let Confirmation { confirm } = cx.elicit(question).key("confirm").accepted().await?;
    Ok(format!("{filename} was {}", if confirm { "deleted" } else { "kept" }))
}

/// Asks two things at once.
#[tool(task)]
async fn multi_input(cx: Context) -> Result<String> {
    let name = cx.elicit::<UserName>("What is your name?").key("name").accepted();
    let confirmation = cx.elicit::<Confirmation>("Are you sure?").key("confirm").accepted();
    let (UserName { name }, Confirmation { confirm }) = tokio::try_join!(name, confirmation)?;
    Ok(format!("{name} is {}", if confirm { "sure" } else { "not sure" }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "toolwire::serde")]
struct NoArguments {}

impl Question for UserName {
    type Args = NoArguments;

    fn message(_: &NoArguments) -> String {
        "What is your name?".to_owned()
    }
}

/// Asks for a name first, and then works on.
#[tool(task_required)]
async fn test_tool_with_task(#[extract] Ask(user): Ask<UserName>) -> String {
    tokio::time::sleep(Duration::from_millis(500)).await;
    format!("Hello, {}!", user.name)
}
