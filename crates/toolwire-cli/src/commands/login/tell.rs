//! What a login came to.

use owo_colors::OwoColorize;
use serde_json::{Value, json};
use toolwire::auth::client::{scopes::OFFLINE_ACCESS, store::Summary};

use crate::{
    auth::Site,
    failure::Result,
    redact,
    terminal::{Moment, Terminal, printable_line},
};

/// Tells what was given.
pub(super) fn done(site: &Site, summary: &Summary, terminal: Terminal) -> Result<()> {
    // Consent is never asked for by itself, because that locks some people out.
    let forgotten = summary.requested.contains(OFFLINE_ACCESS) && !summary.renewable;
    let hint = forgotten.then(|| {
        format!("it cannot be renewed; if you want that, try: toolwire login {} --consent", site.typed)
    });
    if terminal.json {
        let mut told = json(summary);
        if let Some(hint) = hint {
            told["hint"] = hint.into();
        }
        return terminal.print_json(&told);
    }
    terminal.print(format!(
        "{} logged in to {}",
        "✓".green(),
        printable_line(&redact::address_of(&summary.server))
    ))?;
    terminal.print(format!("  issuer:    {}", printable_line(&summary.issuer)))?;
    terminal.print(format!("  scopes:    {}", scopes(summary)))?;
    terminal.print(format!("  expires:   {}", expiry(summary)))?;
    terminal.print(format!("  renewable: {}", if summary.renewable { "yes" } else { "no" }))?;
    if let Some(hint) = hint {
        terminal.warn(hint);
    }
    Ok(())
}

/// A login for scripts.
pub(crate) fn json(summary: &Summary) -> Value {
    json!({
        "server": redact::address_of(&summary.server),
        "issuer": summary.issuer,
        "resource": summary.resource,
        "client": summary.client,
        "scopes": summary.granted.iter().collect::<Vec<_>>(),
        "expires": summary.expires.map(|expires| Moment::from(expires).to_second()),
        "expired": summary.expires.is_some_and(|expires| expires <= std::time::SystemTime::now()),
        "renewable": summary.renewable,
        "boundToKey": summary.bound_to_key,
    })
}

/// Its scopes, for people.
pub(crate) fn scopes(summary: &Summary) -> String {
    if summary.granted.is_empty() {
        "none named".to_owned()
    } else {
        printable_line(&summary.granted.to_string())
    }
}

/// When it ends, for people.
pub(crate) fn expiry(summary: &Summary) -> String {
    match summary.expires {
        None => "not said".to_owned(),
        Some(expires) if expires <= std::time::SystemTime::now() => {
            format!("{}, which is over", Moment::from(expires).to_second())
        }
        Some(expires) => Moment::from(expires).to_second(),
    }
}
