//! What has changed, for people and for scripts.

use owo_colors::OwoColorize;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::essential;
use crate::{
    commands::trace::summary,
    failure::{Code, Failure, Result},
    render::room,
    terminal::{Terminal, fit, printable},
    trace::Exchange,
};

/// How many lines around a change are shown.
const CONTEXT: usize = 2;

/// How an answer compares to the recorded one.
pub(super) struct Verdict {
    was: Value,
    now: Value,
    /// A secret was taken out of the trace, so the request is not the one that was sent then.
    redacted: bool,
}

impl Verdict {
    pub(super) const fn of(was: Value, now: Value, redacted: bool) -> Self {
        Self { was, now, redacted }
    }

    fn is_same(&self) -> bool {
        self.was == self.now
    }

    fn diff(&self) -> String {
        let text = |value| serde_json::to_string_pretty(value).unwrap_or_default();
        let (was, now) = (text(&self.was), text(&self.now));
        let diff = TextDiff::from_lines(&was, &now);
        let mut shown = Vec::new();
        for (number, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
            if number > 0 {
                shown.push("  …".to_owned());
            }
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let sign = match change.tag() {
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                    ChangeTag::Equal => ' ',
                };
                shown.push(format!("{sign} {}", printable(change.value().trim_end_matches('\n'))));
            }
        }
        shown.join("\n")
    }
}

/// Tells as it goes, and sums up.
pub(super) struct Report {
    terminal: Terminal,
    pub(super) same: usize,
    pub(super) different: usize,
    skipped: usize,
    calls: Vec<Value>,
}

impl Report {
    pub(super) const fn new(terminal: Terminal) -> Self {
        Self { terminal, same: 0, different: 0, skipped: 0, calls: Vec::new() }
    }

    /// A request that was not sent again.
    pub(super) fn skipped(&mut self, exchange: &Exchange, why: &str) -> Result<()> {
        self.skipped += 1;
        if self.terminal.json {
            self.calls.push(
                json!({ "method": exchange.method, "params": essential(&exchange.params), "skipped": why }),
            );
            return Ok(());
        }
        let text = fit(&summary::request(&exchange.method, &exchange.params), room(2));
        self.terminal.print(format_args!(
            "{} {text}
    {}",
            "-".dimmed(),
            format_args!("not sent: {why}").dimmed()
        ))
    }

    /// A request that was sent again.
    pub(super) fn compared(&mut self, exchange: &Exchange, verdict: &Verdict) -> Result<()> {
        let same = verdict.is_same();
        *(if same { &mut self.same } else { &mut self.different }) += 1;
        if self.terminal.json {
            let mut call =
                json!({ "method": exchange.method, "params": essential(&exchange.params), "same": same });
            if !same {
                call["was"] = verdict.was.clone();
                call["now"] = verdict.now.clone();
            }
            self.calls.push(call);
            return Ok(());
        }
        let text = fit(&summary::request(&exchange.method, &exchange.params), room(2));
        if same {
            return self.terminal.print(format_args!("{} {text}", "=".green().bold()));
        }
        self.terminal.print(format_args!("{} {}", "≠".red().bold(), text.bold()))?;
        if verdict.redacted {
            self.terminal.print(format_args!("    {}", "a secret in the request was redacted".yellow()))?;
        }
        for line in verdict.diff().lines() {
            match line.chars().next() {
                Some('-') => self.terminal.print(format_args!("    {}", line.red()))?,
                Some('+') => self.terminal.print(format_args!("    {}", line.green()))?,
                _ => self.terminal.print(format_args!("    {}", line.dimmed()))?,
            }
        }
        Ok(())
    }

    /// Sums up; answers that differ are a failure.
    pub(super) fn finish(self) -> Result<()> {
        let Self { terminal, same, different, skipped, calls } = self;
        if terminal.json {
            let sum = json!({ "same": same, "different": different, "skipped": skipped, "calls": calls });
            terminal.print_json(&sum)?;
        } else {
            let all = same + different;
            let text = match (all, different) {
                (0, _) => "There is nothing in the trace that could be sent again.".to_owned(),
                (1, 0) => "The answer is the same.".to_owned(),
                (_, 0) => format!("All {all} answers are the same."),
                _ => format!(
                    "{different} of {all} answers {}.",
                    if different == 1 { "differs" } else { "differ" }
                ),
            };
            terminal.print(format_args!("\n{text}"))?;
        }
        if different > 0 { Err(Failure::told(Code::Unhealthy)) } else { Ok(()) }
    }
}
