//! A moving line for each server that is being visited, if somebody watches.

use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use owo_colors::OwoColorize;

use super::{
    row::Row,
    show::cell,
    visit::{Outcome, Visited},
};
use crate::terminal::Terminal;

/// How often the lines move.
const TICK: Duration = Duration::from_millis(100);

/// The lines of all servers; none if nobody watches.
#[derive(Clone, Debug)]
pub(super) struct Live(Option<MultiProgress>);

/// The line of one server.
#[derive(Debug)]
pub(super) struct Line(Option<ProgressBar>);

impl Live {
    pub(super) fn new(terminal: Terminal) -> Self {
        // What servers say would be written across the lines.
        Self((terminal.is_live() && terminal.verbose == 0).then(MultiProgress::new))
    }

    /// A line that moves from now on.
    pub(super) fn line(&self, row: &Row) -> Line {
        Line(self.0.as_ref().map(|lines| {
            let line = lines.add(ProgressBar::new_spinner());
            // The template is a constant that is fine; if it were not, the default is.
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                line.set_style(style.tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "));
            }
            let address = row.address.as_ref().map(|address| cell(&address.to_string())).unwrap_or_default();
            line.set_message(format!("{}  {}", cell(&row.name), address.dimmed()));
            line.enable_steady_tick(TICK);
            line
        }))
    }

    /// Removes all lines: the table says it better.
    pub(super) fn clear(&self) {
        if let Some(lines) = &self.0 {
            let _ = lines.clear();
            // What is still moving must not come back.
            lines.set_draw_target(ProgressDrawTarget::hidden());
        }
    }
}

impl Line {
    /// Says how it went, for as long as others are still being visited.
    pub(super) fn done(self, visited: &Visited) {
        let Some(line) = self.0 else { return };
        let name = cell(&visited.row.name);
        let text = match &visited.outcome {
            Outcome::Works(reached) => format!("{} {name}  {} tools", "✓".green(), reached.tools),
            Outcome::Failed(_) | Outcome::Broken(_) => format!("{} {name}", "✗".red()),
            Outcome::Off | Outcome::NotTried | Outcome::NotTrusted(_) => format!("– {name}"),
        };
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            line.set_style(style);
        }
        line.finish_with_message(text);
    }
}
