//! The keywords of objects.

use serde_json::{Map, Value};

use super::{At, Path, Report, Run, Seen};
use crate::schema::{
    node::{NodeId, ObjectRules},
    value::{self, count},
    violation::{Kind, Violation},
    words,
};

/// What searching the name that was meant costs, in steps.
const SPELLING_STEPS: u64 = 1_000;

impl<'s> Run<'s> {
    pub(super) fn object<'i>(
        &mut self,
        rules: &'s ObjectRules,
        at: At<'_, 'i>,
        seen: &mut Seen<'i>,
        report: &mut Report,
    ) -> bool {
        let Value::Object(members) = at.value else { return true };
        let size = count(members.len());
        let mut valid = rules.size.holds(size)
            || self.fail(report, || {
                let expected = format!("an object of {}", words::range(rules.size, "property"));
                at.mismatch(Kind::Other, expected, words::counted(size, "property"))
            });
        if valid || report.is_open() {
            valid &= self.required(rules, members, at, report);
        }
        for (name, member) in members {
            if !valid && !report.is_open() {
                return false;
            }
            if !self.charge_lookup(name, rules.properties.len()) {
                return false;
            }
            let below = At { value: member, path: Path::Key(&at.path, name) };
            valid &= self.property(rules, name, below, at, seen, report);
            if let Some(names) = rules.names {
                valid &= self.property_name(names, name, at, report);
            }
        }
        valid
    }

    fn required(
        &mut self,
        rules: &ObjectRules,
        members: &Map<String, Value>,
        at: At<'_, '_>,
        report: &mut Report,
    ) -> bool {
        let mut valid = true;
        for name in &rules.required {
            if !self.charge_lookup(name, members.len()) {
                return false;
            }
            if !members.contains_key(name) {
                valid = self.fail(report, || missing(at, name, None));
            }
            if !valid && !report.is_open() {
                return false;
            }
        }
        for (present, needed) in &rules.dependent_required {
            if !self.charge_lookup(present, members.len()) {
                return false;
            }
            if !members.contains_key(present) {
                continue;
            }
            for name in needed {
                if !self.charge_lookup(name, members.len()) {
                    return false;
                }
                if !members.contains_key(name) {
                    valid = self.fail(report, || missing(at, name, Some(present)));
                }
                if !valid && !report.is_open() {
                    return false;
                }
            }
        }
        valid
    }

    /// `properties`, `patternProperties` and `additionalProperties` for one member.
    fn property<'i>(
        &mut self,
        rules: &'s ObjectRules,
        name: &'i str,
        below: At<'_, 'i>,
        at: At<'_, 'i>,
        seen: &mut Seen<'i>,
        report: &mut Report,
    ) -> bool {
        let mut valid = true;
        let mut named = false;
        if let Some(schema) = rules.properties.get(name) {
            named = true;
            valid = self.member(*schema, below, report);
        }
        for (pattern, schema) in &rules.patterns {
            if self.matches(pattern, name) {
                named = true;
                // A pattern that could not be run says nothing about the value.
                if pattern.regex.is_some() {
                    valid &= self.member(*schema, below, report);
                }
            }
        }
        if let Some(additional) = rules.additional.filter(|_| !named) {
            named = true;
            valid = if self.program.node(additional).is_never() {
                self.unexpected(rules, name, at, report)
            } else {
                self.member(additional, below, report)
            };
        }
        if named && self.program.tracks {
            self.charge(seen.lookup_weight(name));
            seen.property(name);
        }
        valid
    }

    fn member(&mut self, schema: NodeId, below: At<'_, '_>, report: &mut Report) -> bool {
        self.node(schema, below, &mut Seen::default(), report)
    }

    fn unexpected(&mut self, rules: &ObjectRules, name: &str, at: At<'_, '_>, report: &mut Report) -> bool {
        if report.is_open() {
            self.charge(SPELLING_STEPS);
        }
        self.fail(report, || {
            let known = || rules.properties.keys().map(String::as_str);
            let meant = words::closest(name, known()).map(words::quoted);
            let (path, allowed) = (at.path.to_string(), words::list(known()));
            Violation::unexpected(path, &words::quoted(name), &allowed, meant.as_deref())
        })
    }

    fn property_name(&mut self, schema: NodeId, name: &str, at: At<'_, '_>, report: &mut Report) -> bool {
        self.charge(value::text_weight(name));
        let value = Value::String(name.to_owned());
        let mut own = if report.is_open() { Report::collecting() } else { Report::quiet() };
        if self.node(schema, At { value: &value, path: at.path }, &mut Seen::default(), &mut own) {
            return true;
        }
        for violation in own.into_violations() {
            let expected = format!("property names that are {}", violation.expected);
            report.add(at.mismatch(Kind::Other, expected, words::quoted(name)));
        }
        false
    }

    pub(super) fn unevaluated_properties<'i>(
        &mut self,
        child: NodeId,
        at: At<'_, 'i>,
        seen: &mut Seen<'i>,
        report: &mut Report,
    ) -> bool {
        let Value::Object(members) = at.value else { return true };
        let closed = self.program.node(child).is_never();
        let mut valid = true;
        for (name, member) in members {
            if !self.charge(seen.lookup_weight(name)) {
                return false;
            }
            if seen.has_property(name) {
                continue;
            }
            let below = At { value: member, path: Path::Key(&at.path, name) };
            valid &= if closed {
                self.fail(report, || {
                    Violation::unexpected(at.path.to_string(), &words::quoted(name), "", None)
                })
            } else {
                self.member(child, below, report)
            };
            if !valid && !report.is_open() {
                return false;
            }
        }
        seen.every_property();
        valid
    }
}

fn missing(at: At<'_, '_>, name: &str, because_of: Option<&str>) -> Violation {
    let because_of = because_of.map(words::quoted);
    Violation::missing(at.path.to_string(), &words::quoted(name), because_of.as_deref())
}
