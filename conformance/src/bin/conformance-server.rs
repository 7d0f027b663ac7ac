//! Serves the fixtures of the conformance suite.

use std::net::Ipv4Addr;

use clap::Parser;
use tokio::net::TcpListener;
use toolwire_conformance::server::server;
use toolwire_http::server::HttpService;

/// The server that the conformance suite calls.
#[derive(Debug, Parser)]
struct Options {
    /// Serve http://127.0.0.1:PORT/mcp; with 0 the system chooses the port.
    #[arg(long, default_value_t = 3000)]
    port: u16,
    /// Serve on standard input and output instead.
    #[arg(long)]
    stdio: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let server = server()?;
    if options.stdio {
        server.serve(toolwire::stdio()?).await?;
        return Ok(());
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
    announce(&listener)?;
    HttpService::builder(server).path("/mcp").build()?.serve(listener).await?;
    Ok(())
}

/// Tells whoever started us where we are: one line, once requests are taken.
#[expect(clippy::print_stdout, reason = "the line on standard output is what the caller waits for")]
fn announce(listener: &TcpListener) -> std::io::Result<()> {
    println!("http://{}/mcp", listener.local_addr()?);
    Ok(())
}
