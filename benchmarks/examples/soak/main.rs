//! A server and those who call it, well and badly, for `cargo xtask soak`.
//!
//! ```text
//! soak serve GAUGES         serves HTTP in both eras, HTTP+SSE and WebSocket, plain, over TLS and with small limits, a
//!                           service inside axum, and a unix socket, and prints where; writes how many tasks it has
//!                           to the file GAUGES once a second
//! soak stdio                serves the same on standard input and output
//! soak drive DOORS SECONDS  calls the server at the printed endpoints, and servers on stdio of its own, for that long
//! ```

mod chance;
mod doors;
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
        ["drive", doors, seconds] => drive::run(&doors.parse()?, seconds.parse()?).await,
        _ => Err("usage: soak serve GAUGES | stdio | drive DOORS SECONDS".into()),
    }
}
