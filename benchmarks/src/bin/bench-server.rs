//! The server that is measured.
//!
//! ```text
//! bench-server stdio
//! bench-server http PORT
//! ```

use toolwire::{Result, http::server::serve_http, stdio};
use toolwire_benchmarks::{DUMMIES, server};

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["stdio"] => server(DUMMIES)?.serve(stdio()?).await?,
        ["http", port] => serve_http(server(DUMMIES)?, ("127.0.0.1", port.parse()?)).await?,
        _ => return Err("usage: bench-server stdio | http PORT".into()),
    }
    Ok(())
}
