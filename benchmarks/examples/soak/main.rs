//! A server and those who call it, well and badly, for `cargo xtask soak`.
//!
//! ```text
//! soak serve GAUGES         serves HTTP in both eras, HTTP+SSE and WebSocket, and prints its URL; writes how many
//!                           tasks it has to the file GAUGES once a second
//! soak stdio                serves the same on standard input and output
//! soak drive URL SECONDS    calls the server at URL, and servers on stdio of its own, for that long
//! ```

mod chance;
mod drive;
mod faults;
mod server;

use toolwire::Result;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", gauges] => server::serve(gauges.into()).await,
        ["stdio"] => server::serve_stdio().await,
        ["drive", url, seconds] => drive::run(url, seconds.parse()?).await,
        _ => Err("usage: soak serve GAUGES | stdio | drive URL SECONDS".into()),
    }
}
