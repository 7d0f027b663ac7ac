//! Prompts, resources and templates.
#![deny(warnings, missing_docs)]

use serde::Deserialize;
use toolwire::{Context, Server, Uri, prompt, resource, routes};

/// Asks for a review.
#[prompt(title = "Code review")]
pub async fn review(
    /// What to review.
    code: String,
    limit: Option<u8>,
) -> String {
    format!("{code} {limit:?}")
}

#[prompt(name = "stand-up")]
fn standup() -> &'static str {
    "What did you do?"
}

/// The settings.
#[resource("config://app", mime_type = "application/toml", name = "settings", title = "Settings")]
pub async fn config() -> &'static str {
    "colour = true"
}

#[resource("time://now")]
fn time(_cx: Context) -> String {
    String::new()
}

/// A user.
#[resource("users://{id}{?field,user.name}")]
pub async fn user(
    id: u64,
    field: Option<String>,
    _cx: Context,
    #[arg(rename = "user.name")] user_name: Option<String>,
) -> String {
    format!("{id} {field:?} {user_name:?}")
}

#[derive(Deserialize)]
struct File {
    path: String,
}

#[resource("file:///{+path}")]
async fn file(Uri(file): Uri<File>) -> String {
    file.path
}

fn main() {
    Server::builder("demo", "1.0")
        .routes(routes![review, standup, config, time, user, file])
        .build()
        .unwrap();
}
