//! One JSON line per check.

use std::io::Write;

use anyhow::{Error, Result};
use serde_json::{Value, json};

/// Counts checks and prints them.
#[derive(Debug, Default)]
pub(crate) struct Report {
    held: usize,
    failed: usize,
}

impl Report {
    /// Makes a check and prints how it went.
    pub(crate) async fn check(&mut self, name: &str, check: impl Future<Output = Result<()>>) {
        match check.await {
            Ok(()) => {
                self.held += 1;
                print(&json!({ "check": name, "ok": true }));
            }
            Err(error) => self.failed(name, &error),
        }
    }

    /// Prints a check that did not hold.
    pub(crate) fn failed(&mut self, name: &str, error: &Error) {
        self.failed += 1;
        print(&json!({ "check": name, "ok": false, "error": format!("{error:#}") }));
    }

    /// Whether there were checks, and all of them held.
    pub(crate) const fn all_held(&self) -> bool {
        self.held > 0 && self.failed == 0
    }
}

fn print(line: &Value) {
    // Whoever does not read the report will judge by the exit code.
    let _ = writeln!(std::io::stdout(), "{line}");
}
