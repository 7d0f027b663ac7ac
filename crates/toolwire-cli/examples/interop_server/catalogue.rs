//! What every server of the interop tests offers, on every transport.

use serde::{Deserialize, Serialize};
use toolwire::{
    Args, Group, Json, Log, Progress, ToolError, Uri, prompt, resource,
    schemars::{self, JsonSchema},
    template, tool,
};

/// What completion offers for a name.
const NAMES: [&str; 5] = ["Ada", "Alan", "Barbara", "Grace", "Linus"];

/// The smallest PNG there is: one transparent pixel.
const LOGO: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\xdacd\
    `\xf8_\x0f\0\x02\x87\x01\x80\xebG\xba\x92\0\0\0\0IEND\xaeB`\x82";

pub(crate) fn routes() -> Group {
    let greeting = resource("demo://greeting", || async { "Hello from Toolwire" });
    let logo = resource("demo://logo", || async { LOGO.to_vec() });
    Group::new()
        .tool(tool("add", add).description("Adds two integers"))
        .tool(tool("echo", echo).description("Returns the text it is given"))
        .tool(tool("fail", fail).description("Always fails"))
        .tool(tool("count", count).description("Counts and tells how far it is"))
        .resource(greeting.name("greeting").mime_type("text/plain"))
        .resource(logo.name("logo").mime_type("image/png"))
        .template(
            template("demo://users/{name}", hello)
                .name("user")
                .mime_type("text/plain")
                .complete("name", NAMES),
        )
        .prompt(prompt("greet", greet).description("Asks for a greeting").complete("name", NAMES))
}

#[derive(Deserialize, JsonSchema)]
struct Addends {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

async fn add(Args(Addends { a, b }): Args<Addends>) -> Result<Json<Sum>, ToolError> {
    let sum = a.checked_add(b).ok_or_else(|| ToolError::message("the sum is too large"))?;
    Ok(Json(Sum { sum }))
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

async fn echo(Args(echo): Args<Echo>) -> String {
    echo.text
}

async fn fail() -> Result<String, ToolError> {
    Err(ToolError::message("this tool always fails"))
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    to: u8,
}

async fn count(Args(Count { to }): Args<Count>, progress: Progress, log: Log) -> String {
    let log = log.named("count");
    for step in 1..=to {
        progress.report(f64::from(step), f64::from(to));
        log.info(format!("counted to {step}"));
        // Other requests have their turn between two steps.
        tokio::task::yield_now().await;
    }
    format!("counted to {to}")
}

#[derive(Deserialize, JsonSchema)]
struct Person {
    name: String,
}

async fn hello(Uri(person): Uri<Person>) -> String {
    format!("Hello, {}!", person.name)
}

async fn greet(Args(person): Args<Person>) -> String {
    format!("Please greet {} warmly.", person.name)
}
