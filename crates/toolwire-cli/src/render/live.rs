//! The moving line on standard error: how a call goes, and what the server logs meanwhile.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use owo_colors::OwoColorize;
use serde_json::json;
use toolwire::wire::{LoggingLevel, LoggingMessageNotificationParams, ProgressNotificationParams};

use crate::{
    redact,
    terminal::{self, Terminal, printable},
};

/// How many lines wait while somebody is being asked; the rest is counted.
const MAX_HELD_LINES: usize = 1000;
/// How fine the bar is.
const STEPS: u64 = 1000;
/// How often the bar moves by itself.
const TICK: Duration = Duration::from_millis(100);

/// The moving line. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    terminal: Terminal,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    bar: Option<ProgressBar>,
    /// What the line says; nothing once it has ended.
    doing: Option<String>,
    /// How many are asking somebody right now.
    asking: usize,
    held: Vec<String>,
    dropped: usize,
}

impl Live {
    /// A line that says what is going on, where lines may move.
    pub(crate) fn new(terminal: Terminal, what: &str) -> Self {
        let live = Self { terminal, state: Arc::default() };
        if terminal.is_live() {
            live.state().begin(what);
        }
        live
    }

    /// Says what is going on now.
    pub(crate) fn doing(&self, what: &str) {
        let mut state = self.state();
        if state.doing.is_some() {
            state.doing = Some(what.to_owned());
        }
        if let Some(bar) = &state.bar {
            bar.set_message(what.to_owned());
        }
    }

    /// Shows a step of a call.
    pub(crate) fn step(&self, step: &ProgressNotificationParams) {
        let state = self.state();
        let Some(bar) = &state.bar else { return };
        if let Some(message) = &step.message {
            bar.set_message(first_line(&redact::outgoing(message)));
        }
        let done = step.progress.as_f64();
        let total = step.total.map(toolwire::wire::Number::as_f64).filter(|total| *total > 0.0);
        if let Some(total) = total {
            bar.set_style(style("{spinner:.cyan} {bar:30.cyan/dim} {prefix:>4} {wide_msg}"));
            let share = (done / total).clamp(0.0, 1.0);
            bar.set_length(STEPS);
            bar.set_position(share_of(share));
            bar.set_prefix(format!("{:.0}%", share * 100.0));
        } else {
            bar.set_style(style("{spinner:.cyan} {prefix} {wide_msg}"));
            bar.set_prefix(step.progress.to_string());
        }
    }

    /// Shows a log message of the server.
    pub(crate) fn log(&self, message: &LoggingMessageNotificationParams) {
        if self.terminal.json {
            self.say(&terminal::json(&json!({ "log": message }).to_string()));
        } else {
            self.say(&log_line(message));
        }
    }

    /// Prints a line without disturbing the moving one or somebody who is being asked.
    pub(crate) fn say(&self, line: &str) {
        let mut state = self.state();
        if state.asking > 0 {
            if state.held.len() < MAX_HELD_LINES {
                state.held.push(line.to_owned());
            } else {
                state.dropped += 1;
            }
            return;
        }
        match &state.bar {
            Some(bar) => bar.suspend(|| self.terminal.note(line)),
            None => self.terminal.note(line),
        }
    }

    /// Keeps the screen quiet while somebody is being asked, until the guard is dropped.
    pub(crate) fn quiet(&self) -> Quiet {
        let mut state = self.state();
        state.asking += 1;
        if let Some(bar) = state.bar.take() {
            bar.finish_and_clear();
        }
        drop(state);
        Quiet(self.clone())
    }

    /// Takes the moving line away.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.doing = None;
        if let Some(bar) = state.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn begin(&mut self, what: &str) {
        let bar = ProgressBar::new_spinner();
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(TICK);
        self.bar = Some(bar);
        self.doing = Some(what.to_owned());
    }
}

/// While it lives, nothing but the question is on the screen.
#[derive(Debug)]
pub(crate) struct Quiet(Live);

impl Drop for Quiet {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.asking = state.asking.saturating_sub(1);
        if state.asking > 0 {
            return;
        }
        for line in std::mem::take(&mut state.held) {
            self.0.terminal.note(line);
        }
        match std::mem::take(&mut state.dropped) {
            0 => {}
            dropped => self.0.terminal.warn(format!("{dropped} more log messages came meanwhile")),
        }
        if let Some(what) = state.doing.take() {
            state.begin(&what);
        }
    }
}

/// A log message on one line, unless it has more of its own.
pub(crate) fn log_line(message: &LoggingMessageNotificationParams) -> String {
    let level = format!("{:?}", message.level).to_lowercase();
    let level = match message.level {
        LoggingLevel::Debug | LoggingLevel::Info => level.dimmed().to_string(),
        LoggingLevel::Notice => level.cyan().to_string(),
        LoggingLevel::Warning => level.yellow().to_string(),
        _ => level.red().to_string(),
    };
    let text = message.data.decode::<String>().unwrap_or_else(|_| message.data.text().to_owned());
    let logger = message.logger.as_ref().map(|logger| format!(" {}:", printable(logger))).unwrap_or_default();
    format!("{level}{logger} {}", printable(&text))
}

fn first_line(text: &str) -> String {
    printable(text.lines().next().unwrap_or_default())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is between 0 and 1")]
fn share_of(share: f64) -> u64 {
    (share * 1000.0) as u64
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wait_while_somebody_is_asked_and_not_without_end() {
        let live = Live::new(Terminal { json: true, verbose: 0 }, "x");
        let quiet = live.quiet();
        for _ in 0..MAX_HELD_LINES + 5 {
            live.say("line");
        }
        let mut state = live.state();
        assert_eq!((state.held.len(), state.dropped), (MAX_HELD_LINES, 5));
        // What was held is for the screen, not for the output of the tests.
        state.held.clear();
        state.dropped = 0;
        drop(state);
        drop(quiet);
        assert_eq!(live.state().asking, 0);
    }

    #[test]
    fn templates_are_right() {
        for template in [
            "{spinner:.cyan} {bar:30.cyan/dim} {prefix:>4} {wide_msg}",
            "{spinner:.cyan} {prefix} {wide_msg}",
        ] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }
}
