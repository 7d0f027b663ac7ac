//! The workload of the benchmarks: what every measured server offers, whoever made it.
//!
//! Everything here is written as a user would write it, with the public API and its defaults. It deliberately
//! tunes nothing: what is measured is what people get.

pub mod hot;

use toolwire::prelude::*;

/// How many tools there are besides the two that do something.
pub const DUMMIES: usize = 100;

/// Send the text back
#[tool]
async fn echo(
    /// Text to send back
    text: String,
) -> String {
    text
}

#[derive(Debug, Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

/// Add two integers
#[tool]
async fn add(a: i64, b: i64) -> Json<Sum> {
    Json(Sum { sum: a.wrapping_add(b) })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "they are there to make the schema as long as a real one")]
struct Dummy {
    /// Some text
    text: String,
    /// How many times
    count: Option<i64>,
    /// A switch
    flag: Option<bool>,
}

async fn dummy(Args(dummy): Args<Dummy>) -> String {
    dummy.text
}

/// A server with `echo`, `add`, one resource, and this many tools that only make the list long.
///
/// # Errors
/// When the server cannot be built, which would be a mistake here.
pub fn server(dummies: usize) -> Result<Server> {
    // Not "bench-…": the load generator finds its own texts by that beginning.
    let mut server = Server::builder("toolwire-bench", "0.0.0")
        .routes(routes![echo, add])
        .resource(resource("bench://text", || async { "hello resource" }).name("text"));
    for n in 0..dummies {
        let about = "A dummy tool which exists to make the tool list long";
        server = server.tool(tool(format!("dummy_{n:02}"), dummy).description(about));
    }
    Ok(server.build()?)
}
