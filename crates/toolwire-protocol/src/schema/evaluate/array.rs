//! The keywords of arrays.

use std::collections::HashMap;

use serde_json::Value;

use super::{At, Path, Report, Run, Seen};
use crate::schema::{
    node::{ArrayRules, Contains, NodeId, Range},
    value::{self, count},
    violation::Kind,
    words,
};

impl<'s> Run<'s> {
    pub(super) fn array<'i>(
        &mut self,
        rules: &'s ArrayRules,
        at: At<'_, 'i>,
        seen: &mut Seen<'i>,
        report: &mut Report,
    ) -> bool {
        let Value::Array(items) = at.value else { return true };
        let mut valid = self.array_length(rules.length, items.len(), at, report);
        if rules.unique && (valid || report.is_open()) {
            valid &= self.unique(items, at, report);
        }
        if valid || report.is_open() {
            valid &= self.items(rules, items, at, seen, report);
        }
        if let Some(contains) = &rules.contains
            && (valid || report.is_open())
        {
            valid &= self.contains(contains, items, at, seen, report);
        }
        valid
    }

    fn array_length(&mut self, range: Range, length: usize, at: At<'_, '_>, report: &mut Report) -> bool {
        let length = count(length);
        range.holds(length)
            || self.fail(report, || {
                let expected = format!("an array of {}", words::range(range, "item"));
                at.mismatch(Kind::Other, expected, words::counted(length, "item"))
            })
    }

    fn unique(&mut self, items: &[Value], at: At<'_, '_>, report: &mut Report) -> bool {
        // Each item is hashed, and compared with those of the same hash.
        if !self.charge(value::weight(at.value).saturating_mul(2)) {
            return false;
        }
        let mut seen = HashMap::with_capacity(items.len());
        let twins = items.iter().enumerate().find_map(|(second, item)| {
            seen.insert(value::ByValue(item), second).map(|first| (first, second, item))
        });
        let Some((first, second, twin)) = twins else { return true };
        self.fail(report, || {
            let found = format!("{} at both {first} and {second}", words::shown(twin));
            at.mismatch(Kind::Other, "items that all differ".to_owned(), found)
        })
    }

    fn items<'i>(
        &mut self,
        rules: &ArrayRules,
        items: &'i [Value],
        at: At<'_, 'i>,
        seen: &mut Seen<'i>,
        report: &mut Report,
    ) -> bool {
        if let Some(rest) = rules.rest
            && self.program.node(rest).is_never()
            && items.len() > rules.prefix.len()
        {
            let range = Range { min: None, max: Some(count(rules.prefix.len())) };
            return self.array_length(range, items.len(), at, report);
        }
        let mut valid = true;
        let schemas = rules.prefix.iter().copied().map(Some).chain(std::iter::repeat(rules.rest));
        for ((index, item), schema) in items.iter().enumerate().zip(schemas) {
            let Some(schema) = schema else { break };
            valid &= self.item(schema, item, index, at, report);
            if !valid && !report.is_open() {
                return false;
            }
        }
        seen.items_before(rules.prefix.len());
        if rules.rest.is_some() {
            seen.every_item();
        }
        valid
    }

    fn item(
        &mut self,
        schema: NodeId,
        item: &Value,
        index: usize,
        at: At<'_, '_>,
        report: &mut Report,
    ) -> bool {
        let below = At { value: item, path: Path::Index(&at.path, index) };
        self.node(schema, below, &mut Seen::default(), report)
    }

    fn contains<'i>(
        &mut self,
        contains: &Contains,
        items: &'i [Value],
        at: At<'_, 'i>,
        seen: &mut Seen<'i>,
        report: &mut Report,
    ) -> bool {
        let (mut matching, mut certain) = (0, 0);
        for (index, item) in items.iter().enumerate() {
            let guesses = self.guesses;
            if self.item(contains.item, item, index, at, &mut Report::quiet()) {
                matching += 1;
                certain += u64::from(self.guesses == guesses);
                if self.program.tracks {
                    seen.item(index);
                }
            }
            if self.gave_up {
                return false;
            }
        }
        if matching >= contains.min && contains.max.is_none_or(|max| certain <= max) {
            return true;
        }
        let program = self.program;
        self.fail(report, || {
            let range = Range { min: Some(contains.min), max: contains.max };
            let what = words::summary(program.node(contains.item));
            let what = what.map(|what| format!(" ({what})")).unwrap_or_default();
            let expected = format!("an array with {}{what}", words::range(range, "matching item"));
            at.mismatch(Kind::Other, expected, words::counted(matching, "matching item"))
        })
    }

    pub(super) fn unevaluated_items<'i>(
        &mut self,
        child: NodeId,
        at: At<'_, 'i>,
        seen: &mut Seen<'i>,
        report: &mut Report,
    ) -> bool {
        let Value::Array(items) = at.value else { return true };
        let mut valid = true;
        for (index, item) in items.iter().enumerate() {
            if !self.charge(1) {
                return false;
            }
            if seen.has_item(index) {
                continue;
            }
            valid &= self.item(child, item, index, at, report);
            if !valid && !report.is_open() {
                return false;
            }
        }
        seen.every_item();
        valid
    }
}
