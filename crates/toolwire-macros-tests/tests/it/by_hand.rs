//! The same server, without the attributes.

use schemars::JsonSchema;
use serde::Deserialize;
use toolwire::{Args, Json, Server, State, Uri, prompt, resource, template, tool};

use crate::with_macros::Sum;

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first one.
    a: i64,
    /// The second one,
    /// which goes over two lines.
    #[serde(default = "three")]
    bee: i64,
}

fn three() -> i64 {
    3
}

async fn add(Args(Add { a, bee }): Args<Add>) -> Json<Sum> {
    Json(Sum { sum: a + bee })
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    #[serde(default = "you")]
    who: String,
    #[schemars(length(min = 1))]
    r#type: Option<String>,
    /// How often.
    #[serde(default)]
    times: u8,
}

fn you() -> String {
    "you".to_owned()
}

async fn greet(State(greeting): State<String>, Args(Greet { who, r#type, times }): Args<Greet>) -> String {
    format!("{greeting} {who} {type:?} {times}")
}

async fn wipe() -> Result<String, toolwire::BoxError> {
    Err("nothing is there".into())
}

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// What to review.
    code: String,
    limit: Option<u8>,
}

async fn review(Args(Review { code, limit }): Args<Review>) -> String {
    format!("{code}, at most {} remarks", limit.unwrap_or(5))
}

#[derive(Deserialize)]
struct User {
    field: String,
    id: u64,
}

async fn user(Uri(User { field, id }): Uri<User>) -> String {
    format!("{field} of {id}")
}

pub(crate) fn server() -> Server {
    let add = tool("add", add)
        .title("Sum")
        .description("Adds two numbers.\n\nThe second one is 3 if nobody gives it.")
        .read_only()
        .idempotent()
        .open_world(false);
    let config = resource("config://app", || async { "colour = true" })
        .name("settings")
        .title("Settings")
        .description("The settings.")
        .mime_type("application/toml");
    Server::builder("demo", "1.0")
        .state("hello".to_owned())
        .tool(add)
        .tool(tool("greet.everybody", greet).description("Says hello."))
        .tool(tool("wipe", wipe).description("Deletes everything.").destructive())
        .prompt(prompt("review", review).title("Code review").description("Asks for a review."))
        .resource(config)
        .template(template("users://{id}/{field}", user).name("user").description("One field of a user."))
        .build()
        .expect("a good server")
}
