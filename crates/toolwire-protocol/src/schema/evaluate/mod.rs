//! Applying a [`Program`] to a value.
//!
//! A failed verdict is always certain. An accepting one may rest on something that could not be checked,
//! which [`Run`] counts, so that `not` and its kin never reject for what we do not know.

mod array;
mod logic;
mod object;
mod report;
mod scalar;
mod seen;

use serde_json::Value;

pub(super) use self::report::Report;
use self::{report::Path, seen::Seen};
use super::{
    MAX_EVALUATION_DEPTH, MAX_STEPS,
    node::{NodeId, Program, Rule},
    violation::{Kind, Violation},
    words,
};

/// What building one violation costs, in steps: it takes some microseconds.
const VIOLATION_STEPS: u64 = 100;

/// One application of a program to one value.
#[derive(Debug)]
pub(super) struct Run<'s> {
    program: &'s Program,
    steps: u64,
    depth: usize,
    /// The schema resources entered so far, for `$dynamicRef`.
    scope: Vec<usize>,
    /// How often something was accepted without being checked.
    guesses: u64,
    gave_up: bool,
}

/// Where in the value a rule is applied.
#[derive(Debug, Clone, Copy)]
struct At<'p, 'i> {
    value: &'i Value,
    path: Path<'p>,
}

impl At<'_, '_> {
    fn mismatch(&self, kind: Kind, expected: String, found: String) -> Violation {
        Violation::mismatch(kind, self.path.to_string(), expected, found)
    }
}

impl<'s> Run<'s> {
    pub(super) fn new(program: &'s Program) -> Self {
        Self { program, steps: MAX_STEPS, depth: 0, scope: Vec::new(), guesses: 0, gave_up: false }
    }

    /// Applies the whole schema; running out of steps is a failure.
    pub(super) fn root(&mut self, instance: &Value, report: &mut Report) -> bool {
        let at = At { value: instance, path: Path::Root };
        let valid = self.node(Program::ROOT, at, &mut Seen::default(), report);
        valid && !self.gave_up
    }

    pub(super) fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Takes `steps` from the budget; false when it is used up.
    fn charge(&mut self, steps: u64) -> bool {
        self.gave_up |= self.steps < steps;
        self.steps = self.steps.saturating_sub(steps);
        !self.gave_up
    }

    /// Takes what finding `name` among so many members costs from the budget; false when it is used up.
    fn charge_lookup(&mut self, name: &str, members: usize) -> bool {
        self.charge(super::value::lookup_weight(name, members))
    }

    /// Reports a violation when somebody wants it; always false, the verdict of a rule that failed.
    fn fail(&mut self, report: &mut Report, violation: impl FnOnce() -> Violation) -> bool {
        if report.is_open() && self.charge(VIOLATION_STEPS) {
            report.add(violation());
        }
        false
    }

    /// Applies one subschema and adds to `seen` what it evaluated, when it holds.
    fn node<'i>(&mut self, id: NodeId, at: At<'_, 'i>, seen: &mut Seen<'i>, report: &mut Report) -> bool {
        if self.depth >= MAX_EVALUATION_DEPTH {
            self.gave_up = true;
        }
        if !self.charge(1) {
            return false;
        }
        let scope = self.scope.len();
        self.depth += 1;
        let valid = self.rules(id, at, seen, report);
        self.depth -= 1;
        self.scope.truncate(scope);
        valid
    }

    fn rules<'i>(
        &mut self,
        mut id: NodeId,
        at: At<'_, 'i>,
        seen: &mut Seen<'i>,
        report: &mut Report,
    ) -> bool {
        let program = self.program;
        let mut node = program.node(id);
        self.enter(node.resource);
        // A subschema that only refers to another one becomes it, without going deeper.
        while let [Rule::Ref(target)] = node.rules.as_slice() {
            if !self.charge(1) {
                return false;
            }
            id = *target;
            node = program.node(id);
            self.enter(node.resource);
        }
        let mut own = Seen::default();
        let mut valid = true;
        for rule in &node.rules {
            // After a failure nobody knows what the failed part would have evaluated.
            if rule.comes_last() && !valid {
                break;
            }
            valid &= self.rule(rule, at, &mut own, report);
            if self.gave_up || (!valid && !report.is_open()) {
                return false;
            }
        }
        if valid && program.tracks {
            self.charge(own.size());
            seen.merge(own);
        }
        valid
    }

    fn enter(&mut self, resource: usize) {
        if self.scope.last() != Some(&resource) {
            self.scope.push(resource);
        }
    }

    fn rule<'i>(&mut self, rule: &'s Rule, at: At<'_, 'i>, seen: &mut Seen<'i>, report: &mut Report) -> bool {
        match rule {
            Rule::Never => self.fail(report, || {
                at.mismatch(Kind::Value, "no value at all".to_owned(), words::named(at.value))
            }),
            Rule::Unknown => {
                self.guesses += 1;
                seen.everything();
                true
            }
            Rule::Type(types) => types.accepts(at.value) || self.wrong_type(*types, at, report),
            Rule::Const(constant) => self.one_of(std::slice::from_ref(constant), at, report),
            Rule::Enum(values) => self.one_of(values, at, report),
            Rule::Number(bound, limit) => self.number(*bound, limit, at, report),
            Rule::Text(rules) => self.text(rules, at, report),
            Rule::Array(rules) => self.array(rules, at, seen, report),
            Rule::Object(rules) => self.object(rules, at, seen, report),
            Rule::Ref(target) => self.node(*target, at, seen, report),
            Rule::DynamicRef { target, anchor } => {
                let target = self.dynamic_target(*target, anchor);
                self.node(target, at, seen, report)
            }
            Rule::AllOf(branches) => self.all_of(branches, at, seen, report),
            Rule::AnyOf(branches) => self.any_of(branches, at, seen, report),
            Rule::OneOf(branches) => self.one_of_schemas(branches, at, seen, report),
            Rule::Not(child) => self.not(*child, at, report),
            Rule::If { test, then, otherwise } => {
                self.condition(*test, (*then, *otherwise), at, seen, report)
            }
            Rule::DependentSchemas(schemas) => self.dependent_schemas(schemas, at, seen, report),
            Rule::UnevaluatedItems(child) => self.unevaluated_items(*child, at, seen, report),
            Rule::UnevaluatedProperties(child) => self.unevaluated_properties(*child, at, seen, report),
        }
    }

    /// The outermost resource entered that has the anchor decides.
    fn dynamic_target(&mut self, target: NodeId, anchor: &str) -> NodeId {
        let program = self.program;
        for place in 0..self.scope.len() {
            let resource = self.scope.get(place).and_then(|resource| program.dynamic_anchors.get(*resource));
            let Some(anchors) = resource else { continue };
            if !self.charge_lookup(anchor, anchors.len()) {
                break;
            }
            if let Some(found) = anchors.get(anchor) {
                return *found;
            }
        }
        target
    }
}
