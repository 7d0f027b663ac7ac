//! `toolwire store migrate`: the tables of a store, made or brought up to date.

use owo_colors::OwoColorize;
use serde_json::json;

use super::place::{Migrations, Place};
use crate::{failure::Result, terminal::Terminal};

/// Runs the command.
pub(super) async fn run(place: &Place, terminal: Terminal) -> Result<()> {
    // Opening without migrations would leave an empty file behind, should making the tables fail.
    let is_current = place.expect_file().is_ok() && place.open_with(Migrations::Off).await.is_ok();
    if !is_current {
        place.open_with(Migrations::On).await?;
    }
    if terminal.json {
        return terminal.print_json(&json!({ "url": place.shown(), "migrated": !is_current }));
    }
    let text = if is_current { "was up to date already" } else { "is up to date now" };
    terminal.print(format!("{} {} {text}", "✓".green(), place.shown()))
}
