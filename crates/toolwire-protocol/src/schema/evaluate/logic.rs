//! The keywords that combine subschemas at the same place of the value.

use serde_json::Value;

use super::{At, Report, Run, Seen};
use crate::schema::{
    node::NodeId,
    violation::{Kind, Violation},
    words,
};

/// How many alternatives a message describes.
const MAX_ALTERNATIVES: usize = 5;

/// Why the branches of an `anyOf` or `oneOf` failed.
///
/// When a value clearly was meant for one of the branches, only what is wrong with that one helps.
#[derive(Debug, Default)]
struct Attempts {
    /// The violations of the first branch that is not ruled out.
    likely: Vec<Violation>,
    likely_count: usize,
    expectations: Vec<String>,
}

impl Attempts {
    fn add(&mut self, path: &str, violations: Vec<Violation>) {
        if let Some(first) = violations.first()
            && self.expectations.len() <= MAX_ALTERNATIVES
        {
            let below = first.path.strip_prefix(path).unwrap_or(&first.path);
            let expected = match below {
                "" => first.expected.clone(),
                below => format!("{} at {below}", first.expected),
            };
            if !self.expectations.contains(&expected) {
                self.expectations.push(expected);
            }
        }
        if !violations.iter().any(|violation| rules_out(path, violation)) {
            self.likely_count += 1;
            if self.likely_count == 1 {
                self.likely = violations;
            }
        }
    }

    fn expected(&self) -> String {
        let shown: Vec<&str> = self.expectations.iter().map(String::as_str).take(MAX_ALTERNATIVES).collect();
        let more = if self.expectations.len() > MAX_ALTERNATIVES { ", or another alternative" } else { "" };
        match shown.as_slice() {
            [] => "a value that fits one of the alternatives".to_owned(),
            shown => format!("{}{more}", shown.join(", or ")),
        }
    }
}

/// Whether the violation says that this branch was not meant at all: another type, or another tag.
fn rules_out(path: &str, violation: &Violation) -> bool {
    let below = violation.path.strip_prefix(path).unwrap_or_default();
    match violation.kind {
        Kind::Type => below.is_empty(),
        Kind::Value => below.matches('/').count() <= 1,
        Kind::Other => false,
    }
}

impl Run<'_> {
    pub(super) fn all_of<'i>(
        &mut self,
        branches: &[NodeId],
        at: At<'_, 'i>,
        seen: &mut Seen<'i>,
        report: &mut Report,
    ) -> bool {
        let mut valid = true;
        for branch in branches {
            valid &= self.node(*branch, at, seen, report);
            if !valid && !report.is_open() {
                return false;
            }
        }
        valid
    }

    pub(super) fn any_of<'i>(
        &mut self,
        branches: &[NodeId],
        at: At<'_, 'i>,
        seen: &mut Seen<'i>,
        report: &mut Report,
    ) -> bool {
        let mut attempts = Attempts::default();
        let mut valid = false;
        for branch in branches {
            valid |= self.attempt(*branch, at, seen, report, &mut attempts);
            // Every branch that holds adds to what was evaluated, so only then all must be tried.
            if self.gave_up || (valid && !self.program.tracks) {
                break;
            }
        }
        valid || self.fail_attempts(attempts, at, report)
    }

    pub(super) fn one_of_schemas<'i>(
        &mut self,
        branches: &[NodeId],
        at: At<'_, 'i>,
        seen: &mut Seen<'i>,
        report: &mut Report,
    ) -> bool {
        let mut attempts = Attempts::default();
        let (mut matching, mut certain) = (0_usize, 0_usize);
        for branch in branches {
            let guesses = self.guesses;
            if self.attempt(*branch, at, seen, report, &mut attempts) {
                matching += 1;
                certain += usize::from(self.guesses == guesses);
            }
            if self.gave_up || certain > 1 {
                break;
            }
        }
        match (matching, certain) {
            (0, _) => self.fail_attempts(attempts, at, report),
            (_, 0 | 1) => true,
            _ => self.fail(report, || {
                let expected = "a value that fits exactly one of the alternatives".to_owned();
                let found = format!("{}, which fits several", words::named(at.value));
                at.mismatch(Kind::Other, expected, found)
            }),
        }
    }

    /// Tries one branch and remembers why it failed.
    fn attempt<'i>(
        &mut self,
        branch: NodeId,
        at: At<'_, 'i>,
        seen: &mut Seen<'i>,
        report: &Report,
        attempts: &mut Attempts,
    ) -> bool {
        let mut own = if report.is_open() { Report::collecting() } else { Report::quiet() };
        let valid = self.node(branch, at, seen, &mut own);
        if !valid && report.is_open() {
            attempts.add(&at.path.to_string(), own.into_violations());
        }
        valid
    }

    fn fail_attempts(&mut self, attempts: Attempts, at: At<'_, '_>, report: &mut Report) -> bool {
        if attempts.likely_count == 1 && !attempts.likely.is_empty() {
            for violation in attempts.likely {
                report.add(violation);
            }
            return false;
        }
        self.fail(report, || at.mismatch(Kind::Type, attempts.expected(), words::named(at.value)))
    }

    pub(super) fn not(&mut self, child: NodeId, at: At<'_, '_>, report: &mut Report) -> bool {
        let guesses = self.guesses;
        if !self.node(child, at, &mut Seen::default(), &mut Report::quiet()) || self.guesses != guesses {
            return !self.gave_up;
        }
        let program = self.program;
        self.fail(report, || {
            let what = words::summary(program.node(child));
            let what = what.unwrap_or_else(|| "what the schema under \"not\" describes".to_owned());
            at.mismatch(Kind::Other, format!("anything but {what}"), words::named(at.value))
        })
    }

    pub(super) fn condition<'i>(
        &mut self,
        test: NodeId,
        (then, otherwise): (Option<NodeId>, Option<NodeId>),
        at: At<'_, 'i>,
        seen: &mut Seen<'i>,
        report: &mut Report,
    ) -> bool {
        let guesses = self.guesses;
        let holds = self.node(test, at, seen, &mut Report::quiet());
        if self.gave_up {
            return false;
        }
        if holds && self.guesses != guesses {
            // Which of the two applies is not known, nor what it would evaluate.
            seen.everything();
            return true;
        }
        let branch = if holds { then } else { otherwise };
        branch.is_none_or(|branch| self.node(branch, at, seen, report))
    }

    pub(super) fn dependent_schemas<'i>(
        &mut self,
        schemas: &[(String, NodeId)],
        at: At<'_, 'i>,
        seen: &mut Seen<'i>,
        report: &mut Report,
    ) -> bool {
        let Value::Object(members) = at.value else { return true };
        let mut valid = true;
        for (name, schema) in schemas {
            if !self.charge_lookup(name, members.len()) {
                return false;
            }
            if members.contains_key(name) {
                valid &= self.node(*schema, at, seen, report);
            }
            if !valid && !report.is_open() {
                return false;
            }
        }
        valid
    }
}
