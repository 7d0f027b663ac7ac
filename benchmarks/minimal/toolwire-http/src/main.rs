//! The smallest server over HTTP, to see what building one costs.

use toolwire::{http::server::serve_http, prelude::*};

/// Send the text back
#[tool]
async fn echo(text: String) -> String {
    text
}

#[tokio::main]
async fn main() -> Result<()> {
    let port = std::env::args().nth(1).ok_or("which port?")?.parse()?;
    let server = Server::builder("minimal", "0.0.0").routes(routes![echo]).build()?;
    serve_http(server, ("127.0.0.1", port)).await?;
    Ok(())
}
