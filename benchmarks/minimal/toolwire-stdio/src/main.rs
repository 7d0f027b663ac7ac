//! The smallest server on standard input and output, to see what building one costs.

use toolwire::prelude::*;

/// Send the text back
#[tool]
async fn echo(text: String) -> String {
    text
}

#[tokio::main]
async fn main() -> Result<()> {
    Server::builder("minimal", "0.0.0").routes(routes![echo]).build()?.serve(stdio()?).await?;
    Ok(())
}
