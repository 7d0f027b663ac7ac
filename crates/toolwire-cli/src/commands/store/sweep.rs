//! `toolwire store sweep`: the tasks that have expired, removed.

use serde_json::json;

use super::place::{Migrations, Place};
use crate::{failure::Result, terminal::Terminal};

/// How many tasks are removed at a time. Stores go by limits of their own if this is above them.
const AT_A_TIME: usize = 500;

/// Runs the command.
pub(super) async fn run(place: &Place, terminal: Terminal) -> Result<()> {
    place.expect_file()?;
    let store = place.open_with(Migrations::Off).await?;
    let mut removed = 0_usize;
    loop {
        match store.tasks().sweep(AT_A_TIME).await {
            Ok(0) => break,
            Ok(more) => removed = removed.saturating_add(more),
            Err(error) => {
                return Err(place.failed(&error).and(format_args!("; {} before that", counted(removed))));
            }
        }
    }
    if terminal.json {
        return terminal.print_json(&json!({ "url": place.shown(), "removed": removed }));
    }
    terminal.print(format!("{}: {}", place.shown(), counted(removed)))
}

fn counted(removed: usize) -> String {
    match removed {
        0 => "no expired task was removed".to_owned(),
        1 => "1 expired task was removed".to_owned(),
        _ => format!("{removed} expired tasks were removed"),
    }
}
