//! A server that asks, as one of several replicas: its arguments are the secrets of its keys.

use schemars::JsonSchema;
use serde::Deserialize;
use toolwire_server::{BoxError, Context, Server, StateKeys, tool};

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn greet(cx: Context) -> Result<String, BoxError> {
    let first = cx.elicit::<Name>("Your first name?").key("first").accepted().await?;
    let last = cx.elicit::<Name>("Your last name?").key("last").accepted().await?;
    Ok(format!("Hello, {} {}!", first.name, last.name))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let server = Server::builder("asking", "1.0")
        .tool(tool("greet", greet))
        .state_keys(StateKeys::new(std::env::args().skip(1))?)
        .build()?;
    server.serve(toolwire_transport::stdio()?).await?;
    Ok(())
}
