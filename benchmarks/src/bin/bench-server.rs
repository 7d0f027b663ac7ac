//! The server that is measured.
//!
//! ```text
//! bench-server stdio
//! bench-server http PORT
//! ```

use tokio::net::TcpListener;
use toolwire::{
    Result,
    http::server::{HttpLimits, HttpService},
    stdio,
};
use toolwire_benchmarks::{DUMMIES, server};

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["stdio"] => server(DUMMIES)?.serve(stdio()?).await?,
        ["http", port] => {
            let listener = TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
            // All that is measured comes from one address.
            let limits = HttpLimits { connections_per_address: usize::MAX, ..HttpLimits::default() };
            let service = HttpService::builder(server(DUMMIES)?).path("/mcp").limits(limits).build()?;
            service.serve(listener).await?;
        }
        _ => return Err("usage: bench-server stdio | http PORT".into()),
    }
    Ok(())
}
