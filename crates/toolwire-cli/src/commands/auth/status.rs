//! `toolwire auth status`: which logins are stored. Not one character of a token is shown.

use std::path::Path;

use clap::Args;
use owo_colors::OwoColorize;
use serde_json::{Value, json};
use toolwire::auth::client::store::{StoreError, StoreErrorKind, Summary};

use crate::{
    auth::{self, Settings},
    commands::login::tell,
    failure::{Code, Failure, Result},
    redact,
    terminal::{Table, Terminal, printable_line},
    trust::Gate,
};

/// Show which logins are stored
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  toolwire auth status\n  toolwire auth status github --json")]
pub(crate) struct Options {
    /// The server: a configured name or a URL; all of them without it
    server: Option<String>,
}

/// A login with its file, or why it is not used.
type Login = (String, Result<Summary, StoreError>);

/// Runs the command.
pub(crate) fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let logins = match &options.server {
        Some(server) => vec![one(server, terminal)?],
        None => all()?,
    };
    if terminal.json {
        let logins: Vec<Value> = logins.iter().map(to_json).collect();
        return terminal.print_json(&json!({ "logins": logins }));
    }
    if logins.is_empty() {
        terminal.note("no logins are stored; log in with: toolwire login SERVER");
        return Ok(());
    }
    let mut table = Table::headed(["SERVER", "ISSUER", "SCOPES", "EXPIRES", "RENEWABLE", "STORED"]);
    for (file, login) in &logins {
        if let Ok(login) = login {
            table.row([
                printable_line(&redact::address_of(&login.server)).cyan().to_string(),
                printable_line(&login.issuer),
                tell::scopes(login),
                tell::expiry(login),
                if login.renewable { "yes".to_owned() } else { "no".to_owned() },
                printable_line(file),
            ]);
        }
    }
    if logins.iter().any(|(_, login)| login.is_ok()) {
        terminal.print(table)?;
    }
    for (_, login) in &logins {
        if let Err(error) = login {
            terminal.warn(format!("a stored login is not used: {}", printable_line(&error.to_string())));
        }
    }
    Ok(())
}

fn all() -> Result<Vec<Login>> {
    let store = auth::store_of_user()?;
    let files = store
        .credentials()
        .map_err(|error| auth::unstored(error.kind(), &error.to_string(), store.folder()))?;
    Ok(files
        .into_iter()
        .filter_map(|(path, record)| login(&path, record.and_then(|record| record.summary())))
        .collect())
}

fn login(path: &Path, summary: Result<Option<Summary>, StoreError>) -> Option<Login> {
    Some((path.display().to_string(), summary.transpose()?))
}

fn one(server: &str, terminal: Terminal) -> Result<Login> {
    let site = auth::site(server, Gate { terminal, open: false })?;
    let store = auth::store_of_user()?;
    let path = store.path(&site.key(&Settings::load(&store, &site)?)?);
    let file = path.display().to_string();
    match all()?.into_iter().find(|(stored, _)| *stored == file) {
        Some((_, Err(error))) if error.kind() == StoreErrorKind::Exposed => {
            Err(auth::unstored(error.kind(), &error.to_string(), &path))
        }
        Some(login) => Ok(login),
        None => Err(Failure::new(Code::AuthNeeded, format!("no login is stored for {}", site.shown()))
            .hint(format!("toolwire login {}", site.typed))),
    }
}

fn to_json((file, login): &Login) -> Value {
    match login {
        Ok(login) => {
            let mut told = tell::json(login);
            told["stored"] = json!(file);
            told
        }
        Err(error) => json!({ "stored": file, "refused": error.to_string() }),
    }
}
