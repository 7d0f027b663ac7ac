//! Serves the catalogue of `interop/README.md` over HTTP, for the SDKs of other makers and for browsers.
//!
//! ```text
//! interop_server [stateless] [ORIGIN]...
//! ```
//!
//! Streamable HTTP in both eras is at `/mcp`, HTTP+SSE of 2024-11-05 at `/sse`. Pages of the origins named on the
//! command line may call it; without any, nothing is changed from the defaults. With `stateless`, legacy clients get
//! no sessions. The one line on standard output is the URL of `/mcp`, once requests are taken. It goes on until it is
//! stopped.

#[path = "interop_server/catalogue.rs"]
mod catalogue;
#[path = "interop_server/lively.rs"]
mod lively;

use std::{io::Write, net::Ipv4Addr};

use anyhow::Result;
use tokio::net::TcpListener;
use toolwire::{
    Server,
    http::server::{Cors, HttpService, Legacy},
};

#[tokio::main]
async fn main() -> Result<()> {
    let mut origins: Vec<String> = std::env::args().skip(1).collect();
    let words = origins.len();
    origins.retain(|word| word != "stateless");
    let server = Server::builder("interop_server", env!("CARGO_PKG_VERSION"))
        .state(lively::Counters::default())
        .routes(catalogue::routes())
        .routes(lively::routes())
        .build()?;
    let mut service = HttpService::builder(server).path("/mcp").sse2024("/sse", "/messages");
    if origins.len() < words {
        service = service.legacy(Legacy::Stateless);
    }
    if !origins.is_empty() {
        service = service.allow_origins(origins).cors(Cors::AllowedOrigins);
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    writeln!(std::io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    service.build()?.serve(listener).await?;
    Ok(())
}
