//! A small server on standard input and output, for the tests that need a process of its own.

mod sample;

use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    sample::server()?.serve(toolwire_transport::stdio()?).await?;
    Ok(())
}
