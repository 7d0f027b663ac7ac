//! What to try after the tour.

use std::{env, io::Write};

use serde_json::json;

use super::page::Page;
use crate::{demo_server, failure::Result};

/// Shows how to give the server to a host.
pub(super) fn show<W: Write>(page: &mut Page<W>) -> Result<()> {
    page.gap()?;
    page.title("Your turn")?;
    page.paragraph("Let your own MCP host call this server; its configuration wants:")?;
    page.gap()?;
    for line in host_config().lines() {
        page.code(line)?;
    }
    page.gap()?;
    page.paragraph("Then ask it to count to ten, or to leave you a note.")?;
    page.flush()?;
    Ok(())
}

/// The entry for a host's configuration, with this program wherever it is.
fn host_config() -> String {
    // Without a path of our own, the name is the best there is.
    let program = env::current_exe().map_or_else(|_| "toolwire".into(), |path| path.display().to_string());
    let command = json!(program);
    let entry = format!("\"command\": {command},\n      \"args\": [\"demo\", \"--stdio\"]");
    format!("{{\n  \"mcpServers\": {{\n    \"{}\": {{\n      {entry}\n    }}\n  }}\n}}", demo_server::NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_is_json_that_starts_this_program() {
        let config: serde_json::Value = serde_json::from_str(&host_config()).unwrap();
        let server = &config["mcpServers"]["toolwire-demo"];
        assert_eq!(server["command"], json!(env::current_exe().unwrap()));
        assert_eq!(server["args"], json!(["demo", "--stdio"]));
    }
}
