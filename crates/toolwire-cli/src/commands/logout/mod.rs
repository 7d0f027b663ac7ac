//! `toolwire logout`: revoke a login, and forget it.

use clap::Args;
use owo_colors::OwoColorize;
use serde_json::{Value, json};
use toolwire::{
    auth::client::{LoggedOut, Revoked},
    http::client::fetch::Fetcher,
};

use crate::{
    auth::{self, Keeper, Settings, Site},
    failure::{Code, Failure, Result},
    session,
    target::Address,
    terminal::{Terminal, printable},
    trust::Gate,
};

const AFTER_HELP: &str = "\
The issuer is asked to revoke the tokens. They are forgotten here, whether that works or not.

Examples:
  toolwire logout https://example.com/mcp
  toolwire logout --all";

/// Revoke a login, and forget it
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// The server: a configured name or a URL
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    server: Option<String>,

    /// Log out of all servers
    #[arg(long)]
    all: bool,

    /// Forget the client that was registered at the issuer as well
    #[arg(long)]
    forget_client: bool,
}

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let sites = match &options.server {
        Some(server) => vec![auth::site(server, Gate { terminal, open: false })?],
        None => all(terminal)?,
    };
    let mut told = Vec::new();
    let mut failed = None;
    for site in &sites {
        match session::interruptible(leave(site, options.forget_client)).await {
            Ok(out) => told.push(tell(site, &out, terminal)?),
            Err(failure) if options.all && failure.code() != Code::Interrupted => {
                terminal.warn(failure.message());
                failed = Some(failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    if terminal.json {
        terminal.print_json(&json!({ "loggedOut": told }))?;
    } else if sites.is_empty() {
        terminal.note("no logins are stored");
    }
    failed.map_or(Ok(()), Err)
}

/// Every server with a login that can be read; the others are told.
fn all(terminal: Terminal) -> Result<Vec<Site>> {
    let store = auth::store_of_user()?;
    let files = store
        .credentials()
        .map_err(|error| auth::unstored(error.kind(), &error.to_string(), store.folder()))?;
    let mut sites = Vec::new();
    for (_, record) in files {
        match record.and_then(|record| record.summary()) {
            Ok(Some(summary)) => {
                sites.extend(
                    Address::parse(&summary.server).and_then(|address| Site::of(&summary.server, &address)),
                );
            }
            Ok(None) => {}
            Err(error) => terminal.warn(format!("left as it is: {error}")),
        }
    }
    Ok(sites)
}

async fn leave(site: &Site, forget_client: bool) -> Result<LoggedOut> {
    let store = auth::store_of_user()?;
    let settings = Settings::load(&store, site)?;
    let key = site.key(&settings)?;
    let oauth = settings.oauth().store(Keeper::new(store.clone())).build();
    let oauth = oauth.map_err(|error| auth::failure(&error, site))?;
    let out = oauth.log_out(&site.url, Fetcher::new(), forget_client).await;
    let out = out.map_err(|error| match error.kind {
        toolwire::auth::client::AuthErrorKind::NotStored(kind) => {
            auth::unstored(kind, &error.detail, &store.path(&key))
        }
        _ => auth::failure(&error, site),
    })?;
    Settings::forget(&store, site)?;
    out.ok_or_else(|| {
        Failure::new(Code::AuthNeeded, format!("no login is stored for {}", site.shown()))
            .hint("toolwire auth status shows those that are")
    })
}

fn tell(site: &Site, out: &LoggedOut, terminal: Terminal) -> Result<Value> {
    let (word, why) = match &out.revoked {
        Ok(Revoked::Yes) => ("yes", None),
        Ok(Revoked::Renewal) => ("renewal", None),
        Ok(_) => ("not offered", None),
        Err(error) => ("failed", Some(printable(&error.to_string()))),
    };
    if !terminal.json {
        let what = match word {
            "yes" => "revoked and forgotten",
            "renewal" => "revoked and forgotten; its issuer lets the last access token run out",
            "failed" => "forgotten",
            _ => "forgotten; its issuer revokes no tokens",
        };
        terminal.print(format!("{} logged out of {}: {what}", "✓".green(), site.shown()))?;
        if let Some(why) = &why {
            terminal
                .warn(format!("the tokens could not be revoked, and may be good until they expire: {why}"));
        }
    }
    Ok(json!({ "server": site.shown(), "revoked": word, "why": why }))
}
