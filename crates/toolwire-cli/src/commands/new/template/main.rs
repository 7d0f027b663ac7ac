//! Serves on standard input and output, for the client that has started this program.

use toolwire::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    {{crate}}::server()?.serve(stdio()?).await?;
    Ok(())
}
