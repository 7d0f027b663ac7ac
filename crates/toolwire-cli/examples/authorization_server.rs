//! A protected server for `authorization/`, whose tokens come from a real issuer.
//!
//! ```text
//! authorization_server ISSUER signed|bound|opaque [ORIGIN]...
//! ```
//!
//! `signed` takes signed tokens, bound to a key or not; `bound` takes only those that are, with a nonce in each proof;
//! `opaque` asks the issuer about each token, as the client `notes` with the secret in `NOTES_SECRET`. Pages of the
//! origins may call it. The one line on standard output is the URL, once requests are taken. It goes on until it is
//! stopped.

use std::{io::Write, net::Ipv4Addr};

use anyhow::{Result, bail};
use serde::Deserialize;
use tokio::net::TcpListener;
use toolwire::{
    Args, Group, Principal, Server,
    auth::{
        Secret,
        server::{Dpop, Introspection, Jwt, ResourceGuard, ResourceServer},
    },
    http::server::{Cors, HttpService},
    schemars::{self, JsonSchema},
    tool,
};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(issuer), Some(tokens)) = (arguments.next(), arguments.next()) else {
        bail!("usage: authorization_server ISSUER signed|bound|opaque [ORIGIN]...");
    };
    let origins: Vec<String> = arguments.collect();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let resource = format!("http://{}/mcp", listener.local_addr()?);
    let server = Server::builder("notes", "1.0").routes(routes()).build()?;
    let mut service = HttpService::builder(server).guard(guard(&resource, &issuer, &tokens)?).websocket(true);
    if !origins.is_empty() {
        service = service.allow_origins(origins).cors(Cors::AllowedOrigins);
    }
    let service = service.build()?;
    writeln!(std::io::stdout(), "{resource}")?;
    service.serve(listener).await?;
    Ok(())
}

fn guard(resource: &str, issuer: &str, tokens: &str) -> Result<ResourceGuard> {
    let server = ResourceServer::new(resource, issuer).scopes(["notes:read"]).name("Notes");
    let server = match tokens {
        "signed" => server.verify(Jwt::discovered()).dpop(Dpop::accepted()),
        // One process only, so the secret of its nonces need not be known to another.
        "bound" => server.verify(Jwt::discovered()).dpop(Dpop::required().nonces([[7; 32]])?),
        "opaque" => {
            let url = format!("{issuer}/token/introspection");
            server.verify(Introspection::at(url, "notes", Secret::env("NOTES_SECRET")?))
        }
        other => bail!("there are no tokens of the kind {other:?}"),
    };
    Ok(server.build()?)
}

fn routes() -> Group {
    let auditors = Group::new()
        .tool(tool("audit", || async { "nothing was found" }).description("Looks through all notes"))
        .visible_to(|who| who.claim("role") == Some("auditor"));
    Group::new()
        .tool(tool("whoami", whoami).description("Says who is calling"))
        .tool(tool("write", write).description("Adds a note").scopes(["notes:write"]))
        .routes(auditors)
}

async fn whoami(who: Principal) -> String {
    format!("{}: {}", who.subject(), who.scopes())
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

async fn write(who: Principal, Args(note): Args<Note>) -> String {
    format!("{}: {}", who.subject(), note.text)
}
