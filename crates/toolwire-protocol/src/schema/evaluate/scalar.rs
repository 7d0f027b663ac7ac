//! `type`, `enum`, `const` and the keywords of numbers and strings.

use serde_json::{Number, Value};

use super::{At, Report, Run};
use crate::schema::{
    node::{Bound, Constant, Pattern, TextRules, Types},
    number,
    value::{self, count},
    violation::Kind,
    words,
};

/// What dividing decimals costs, in steps.
const MULTIPLE_STEPS: u64 = 5;

impl Run<'_> {
    pub(super) fn wrong_type(&mut self, types: Types, at: At<'_, '_>, report: &mut Report) -> bool {
        self.fail(report, || at.mismatch(Kind::Type, words::types(types), words::named(at.value)))
    }

    /// `enum`, and `const` as an enum of one.
    pub(super) fn one_of(&mut self, values: &[Constant], at: At<'_, '_>, report: &mut Report) -> bool {
        for constant in values {
            if !self.charge(constant.weight) {
                return false;
            }
            if value::equal(&constant.value, at.value) {
                return true;
            }
        }
        self.fail(report, || at.mismatch(Kind::Value, words::constants(values), words::shown(at.value)))
    }

    pub(super) fn number(
        &mut self,
        bound: Bound,
        limit: &Number,
        at: At<'_, '_>,
        report: &mut Report,
    ) -> bool {
        let Value::Number(number) = at.value else { return true };
        if bound == Bound::MultipleOf && !self.charge(MULTIPLE_STEPS) {
            return false;
        }
        let order = number::compare(number, limit);
        let holds = match bound {
            Bound::Minimum => order.is_ge(),
            Bound::ExclusiveMinimum => order.is_gt(),
            Bound::Maximum => order.is_le(),
            Bound::ExclusiveMaximum => order.is_lt(),
            Bound::MultipleOf => number::is_multiple(number, limit),
        };
        let expected = || format!("{} {limit}", words::bound(bound));
        holds || self.fail(report, || at.mismatch(Kind::Other, expected(), number.to_string()))
    }

    pub(super) fn text(&mut self, rules: &TextRules, at: At<'_, '_>, report: &mut Report) -> bool {
        let Value::String(text) = at.value else { return true };
        let mut valid = true;
        if !rules.length.is_open() {
            self.charge(value::text_weight(text));
            let length = count(text.chars().count());
            valid = rules.length.holds(length)
                || self.fail(report, || {
                    let expected = format!("a string of {}", words::range(rules.length, "character"));
                    let found = format!("{} ({})", words::quoted(text), words::counted(length, "character"));
                    at.mismatch(Kind::Other, expected, found)
                });
        }
        if let Some(pattern) = &rules.pattern
            && !self.matches(pattern, text)
        {
            valid = self.fail(report, || {
                let expected =
                    format!("a string that matches the pattern {}", words::quoted(&pattern.source));
                at.mismatch(Kind::Other, expected, words::quoted(text))
            });
        }
        if let Some(format) = rules.format
            && !(self.charge(value::text_weight(text)) && format.holds(text))
        {
            valid = self.fail(report, || {
                at.mismatch(Kind::Other, format.described().to_owned(), words::quoted(text))
            });
        }
        valid
    }

    /// Whether the pattern is found anywhere in `text`; one that cannot be run might be.
    pub(super) fn matches(&mut self, pattern: &Pattern, text: &str) -> bool {
        let Some(regex) = &pattern.regex else {
            self.guesses += 1;
            return self.charge(1);
        };
        self.charge((count(text.len()) / 2 + 1).saturating_mul(pattern.weight)) && regex.is_match(text)
    }
}
