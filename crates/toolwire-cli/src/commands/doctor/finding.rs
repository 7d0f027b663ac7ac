//! What was found: a problem, the evidence for it, and what to do.

use serde_json::{Value, json};

use super::problem::{Problem, Severity};
use crate::redact;

/// How many pieces of evidence one finding shows; more only repeat it.
const MAX_EVIDENCE: usize = 8;

/// How long one piece of evidence may be, in characters.
const MAX_EVIDENCE_CHARS: usize = 300;

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) problem: Problem,
    /// How bad it is here; a problem can be less bad than it usually is.
    pub(crate) severity: Severity,
    /// One sentence.
    pub(crate) summary: String,
    /// What it was found by, one line each.
    pub(crate) evidence: Vec<String>,
    /// What to do: words or things to type, one line each.
    pub(crate) fix: Vec<String>,
}

impl Finding {
    /// A finding that is as bad as the problem is.
    pub(crate) fn new(problem: Problem, summary: impl Into<String>) -> Self {
        Self {
            problem,
            severity: problem.severity(),
            summary: redact::sentence(&summary.into()),
            evidence: Vec::new(),
            fix: Vec::new(),
        }
    }

    /// Sets how bad it is in this case.
    pub(crate) const fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Adds what it was found by. What is too much is counted instead.
    pub(crate) fn evidence(mut self, lines: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut lines: Vec<String> = lines.into_iter().map(Into::into).collect();
        let more = lines.len().saturating_sub(MAX_EVIDENCE);
        lines.truncate(MAX_EVIDENCE);
        let shown = lines.iter().map(|line| shortened(&redact::sentence(line), MAX_EVIDENCE_CHARS));
        self.evidence.extend(shown);
        if more > 0 {
            self.evidence.push(format!("… and {more} more"));
        }
        self
    }

    /// Adds what to do.
    pub(crate) fn fix(mut self, line: impl Into<String>) -> Self {
        self.fix.push(redact::sentence(&line.into()));
        self
    }

    /// The finding for scripts.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "code": self.problem.name(),
            "severity": self.severity.name(),
            "summary": self.summary,
            "evidence": self.evidence,
            "fix": self.fix,
        })
    }
}

/// The beginning of a text, on one line.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    // Before it is cut: a part of a secret is not known as one.
    let text = redact::outgoing(text);
    let text: String = text.trim_end().chars().map(|c| if c == '\n' { ' ' } else { c }).collect();
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_bounded() {
        let lines = (0..100).map(|number| format!("{number} {}", "ä".repeat(1000)));
        let finding = Finding::new(Problem::Other, "x").evidence(lines);
        assert_eq!(finding.evidence.len(), MAX_EVIDENCE + 1);
        assert_eq!(finding.evidence.last().unwrap(), "… and 92 more");
        assert!(finding.evidence.iter().all(|line| line.chars().count() <= MAX_EVIDENCE_CHARS));
        assert_eq!(shortened("a\nb\n", 10), "a b");
    }
}
