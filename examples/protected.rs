//! A server on HTTP with two users and two scopes.
//!
//! Alice may read and write the notes, Bob may only read them; nobody else gets in.
//!
//! ```sh
//! cargo run -p toolwire-examples --example protected
//! curl -i http://127.0.0.1:8000/mcp                                          # 401, and where to log in
//! curl -s http://127.0.0.1:8000/.well-known/oauth-protected-resource/mcp     # for everybody
//! toolwire call http://127.0.0.1:8000/mcp read --header 'Authorization: Bearer bob-reads-0123456789'
//! toolwire call http://127.0.0.1:8000/mcp write text=hi --header 'Authorization: Bearer bob-reads-0123456789'   # 403
//! ```
//!
//! The tokens are written down here, which is good for development and closed networks. Elsewhere an issuer gives them out:
//! `Jwt::discovered()` takes the place of `StaticKeys`, and nothing else changes.

use std::sync::{Arc, Mutex, PoisonError};

use toolwire::{
    auth::server::{ResourceServer, StaticKeys},
    http::server::HttpService,
    prelude::*,
};

const RESOURCE: &str = "http://127.0.0.1:8000/mcp";

const KEYS: &str = "
alice notes:read,notes:write alice-writes-0123456789
bob   notes:read             bob-reads-0123456789
";

#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

/// Reads all notes.
#[tool(read_only)]
async fn read(State(notes): State<Notes>) -> String {
    notes.0.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
}

/// Adds a note.
#[tool(scopes("notes:write"))]
async fn write(text: String, who: Principal, State(notes): State<Notes>) -> String {
    let note = format!("{}: {text}", who.subject());
    notes.0.lock().unwrap_or_else(PoisonError::into_inner).push(note.clone());
    note
}

#[tokio::main]
async fn main() -> Result<()> {
    let server =
        Server::builder("notes", "1.0").state(Notes::default()).routes(routes![read, write]).build()?;
    let guard = ResourceServer::new(RESOURCE, "http://127.0.0.1:9000")
        .verify(StaticKeys::parse(KEYS)?)
        .scopes(["notes:read"])
        .name("Notes")
        .build()?;
    let mcp = HttpService::builder(server).guard(guard).build()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8000").await?;
    mcp.serve(listener).await?;
    Ok(())
}
