//! The server, with the attributes.

use schemars::JsonSchema;
use serde::Serialize;
use toolwire::{Context, Json, Server, State, prompt, resource, routes, tool};

#[derive(Serialize, JsonSchema)]
pub(crate) struct Sum {
    pub(crate) sum: i64,
}

/// Adds two numbers.
///
/// The second one is 3 if nobody gives it.
#[tool(title = "Sum", read_only, idempotent, open_world = false)]
pub(crate) async fn add(
    /// The first one.
    a: i64,
    /// The second one,
    /// which goes over two lines.
    #[arg(rename = "bee", default = 3)]
    b: i64,
) -> Json<Sum> {
    Json(Sum { sum: a + b })
}

#[tool(name = "greet.everybody", description = "Says hello.")]
async fn greet(
    State(greeting): State<String>,
    #[arg(default = "you")] who: String,
    #[schemars(length(min = 1))] r#type: Option<String>,
    _cx: Context,
    #[arg(description = "How often.", default)] times: u8,
) -> String {
    format!("{greeting} {who} {type:?} {times}")
}

/// Deletes everything.
#[tool(destructive)]
fn wipe() -> Result<String, toolwire::BoxError> {
    Err("nothing is there".into())
}

/// Asks for a review.
#[prompt(title = "Code review")]
pub(crate) async fn review(
    /// What to review.
    code: String,
    limit: Option<u8>,
) -> String {
    format!("{code}, at most {} remarks", limit.unwrap_or(5))
}

/// The settings.
#[resource("config://app", name = "settings", title = "Settings", mime_type = "application/toml")]
pub(crate) fn config() -> &'static str {
    "colour = true"
}

/// One field of a user.
#[resource("users://{id}/{field}")]
async fn user(field: String, id: u64) -> String {
    format!("{field} of {id}")
}

pub(crate) fn server() -> Server {
    Server::builder("demo", "1.0")
        .state("hello".to_owned())
        .routes(routes![add, greet, wipe, review, config, user])
        .build()
        .expect("a good server")
}
