//! The server of the example, which the tests also build in their own process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwire_server::{
    Args, BuildError, Json, Limits, Log, Progress, Server, Uri, prompt, resource, template, tool,
};

#[derive(Deserialize, JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Total {
    total: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Review {
    language: String,
    lines: Option<u32>,
}

#[derive(Deserialize)]
struct Page {
    number: u32,
}

async fn count(progress: Progress, log: Log) -> String {
    for step in 1..=3 {
        progress.report(f64::from(step), 3.0);
        log.info(format!("step {step}"));
        tokio::task::yield_now().await;
    }
    "counted".to_owned()
}

async fn review(Args(review): Args<Review>) -> String {
    format!("Review {} lines of {}.", review.lines.unwrap_or(0), review.language)
}

async fn page(Uri(page): Uri<Page>) -> Option<String> {
    (page.number < 300).then(|| format!("page {}", page.number))
}

/// A server with a bit of everything.
pub(crate) fn server() -> Result<Server, BuildError> {
    Server::builder("sample", "1.0")
        .instructions("Try everything.")
        .tool(tool("add", |Args(sum): Args<Sum>| async move { Json(Total { total: sum.a + sum.b }) }))
        .tool(tool("count", count))
        .tool(tool("fail", || async { Err::<String, _>("it did not work") }))
        .tool(tool("hang", std::future::pending::<String>))
        .resource(resource("note://text", || async { "a note" }).name("note"))
        .template(template("book://{number}", page).name("page").complete("number", ["1", "10", "2"]))
        .prompt(prompt("review", review).complete("language", ["rust", "ruby"]))
        .limits(Limits { page_items: 3, ..Limits::default() })
        .build()
}
