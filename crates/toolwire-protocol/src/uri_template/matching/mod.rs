//! Matching: the template becomes a list of steps, and a table says which steps can end a match from where.

mod parameters;
mod unit;

use std::cmp::Reverse;

use parameters::Parameters;
use unit::{Unit, decode, numbers, units};

use super::{Expression, MAX_URI_BYTES, Modifier, Operator, Part, Value, VarSpec, Variables};

/// The steps that match a URI against a template.
#[derive(Clone, Debug)]
pub(super) struct Program {
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    /// These units, and no others.
    Literal(Vec<u16>),
    /// The value of a variable.
    Run(Run),
    /// The steps from here to the given one may be left out.
    Optional(usize),
    /// Parameters with their names.
    Parameters(Parameters),
}

#[derive(Clone, Debug)]
struct Run {
    spec: VarSpec,
    /// Plain characters that end the value.
    stops: Vec<u8>,
    /// What divides the items of an exploded value.
    items: u8,
    /// Whether the value may be empty.
    may_be_empty: bool,
}

/// Which step can start where: a row for each step, and one for the end of the program.
struct Table {
    rows: Vec<Vec<bool>>,
}

impl Table {
    fn is_good(&self, step: usize, position: usize) -> bool {
        self.rows.get(step).and_then(|row| row.get(position)).copied().unwrap_or_default()
    }
}

impl Program {
    /// `None` if a literal is not part of a URI, which the parser has made sure of.
    pub(super) fn compile(parts: &[Part]) -> Option<Self> {
        let mut steps = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            match part {
                Part::Literal(text) => steps.push(Step::Literal(numbers(&units(text)?))),
                Part::Expression(expression) => {
                    let announced = announced(parts.get(index + 1..).unwrap_or_default());
                    compile_expression(expression, &announced, &mut steps)?;
                }
            }
        }
        Some(Self { steps })
    }

    pub(super) fn run(&self, uri: &str) -> Option<Variables> {
        let units = if uri.len() > MAX_URI_BYTES { None } else { units(uri) }?;
        let numbers = numbers(&units);
        // Most URIs differ from most templates in how they start, and the table is large.
        if let Some(Step::Literal(first)) = self.steps.first()
            && !numbers.starts_with(first)
        {
            return None;
        }
        let table = self.table(&units, &numbers);
        let mut captures = Vec::new();
        let (mut step, mut position) = (0, 0);
        if !table.is_good(0, 0) {
            return None;
        }
        while let Some(current) = self.steps.get(step) {
            step += 1;
            match current {
                Step::Literal(literal) => position += literal.len(),
                Step::Run(run) => {
                    let end = run.longest(&units, position, |end| table.is_good(step, end))?;
                    captures.push((&run.spec, run.value(units.get(position..end)?)?));
                    position = end;
                }
                Step::Optional(_) if table.is_good(step, position) => {}
                Step::Optional(target) => step = *target,
                Step::Parameters(parameters) => {
                    let read = parameters.read(&units, position);
                    if let Some((end, values)) = read.filter(|(end, _)| table.is_good(step, *end)) {
                        captures.extend(values);
                        position = end;
                    } else if !table.is_good(step, position) {
                        return None;
                    }
                }
            }
        }
        if position == units.len() { merge(captures) } else { None }
    }

    /// Fills the table from the last step to the first: work and size are (steps + 1) × (units + 1).
    /// Literals are compared as plain `numbers`, many at once: they take (bytes of literals) × (units) at worst.
    fn table(&self, units: &[Unit], numbers: &[u16]) -> Table {
        let mut end = vec![false; units.len()];
        end.push(true);
        let mut table = Table { rows: vec![Vec::new(); self.steps.len()] };
        table.rows.push(end);
        for (index, step) in self.steps.iter().enumerate().rev() {
            let next = |position: usize| table.is_good(index + 1, position);
            let all = 0..=units.len();
            let row = match step {
                Step::Literal(literal) => all
                    .map(|at| {
                        next(at + literal.len())
                            && numbers.get(at..).is_some_and(|rest| rest.starts_with(literal))
                    })
                    .collect(),
                Step::Run(run) => run.row(units, next),
                Step::Optional(target) => all.map(|at| next(at) || table.is_good(*target, at)).collect(),
                Step::Parameters(parameters) => parameters.row(units, next),
            };
            if let Some(slot) = table.rows.get_mut(index) {
                *slot = row;
            }
        }
        table
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }
}

impl Run {
    fn takes(&self, unit: Unit) -> bool {
        unit.encoded || !self.stops.contains(&unit.octet)
    }

    /// Where this step can start, given where the next one can.
    fn row(&self, units: &[Unit], next: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut row = vec![false; units.len() + 1];
        // The number of characters from the current position to the nearest place where the value can end.
        let mut nearest: Option<usize> = None;
        for (position, slot) in row.iter_mut().enumerate().rev() {
            let unit = units.get(position).copied();
            let beyond = nearest.filter(|_| unit.is_some_and(|unit| self.takes(unit)));
            let step = unit.map_or(0, |unit| usize::from(unit.starts_character()));
            let longer = beyond.map(|characters| characters + step);
            let here = unit.is_none_or(Unit::starts_character) && next(position);
            nearest = if here { Some(0) } else { longer };
            let found = if self.may_be_empty { nearest } else { longer };
            *slot = found.is_some_and(|characters| characters <= self.most());
        }
        row
    }

    /// The farthest end of a value that starts at `start` and ends where `is_end` says it may.
    fn longest(&self, units: &[Unit], start: usize, is_end: impl Fn(usize) -> bool) -> Option<usize> {
        let mut best = (self.may_be_empty && is_end(start)).then_some(start);
        let mut characters = 0;
        for (position, unit) in units.iter().enumerate().skip(start) {
            characters += usize::from(unit.starts_character());
            if !self.takes(*unit) || characters > self.most() {
                break;
            }
            let starts_character = units.get(position + 1).is_none_or(|next| next.starts_character());
            if starts_character && is_end(position + 1) {
                best = Some(position + 1);
            }
        }
        best
    }

    /// The largest number of characters in the value.
    const fn most(&self) -> usize {
        match self.spec.modifier {
            Modifier::Prefix(most) => most,
            Modifier::None | Modifier::Explode => usize::MAX,
        }
    }

    fn value(&self, units: &[Unit]) -> Option<Value> {
        if self.spec.modifier != Modifier::Explode {
            return decode(units).map(Value::Text);
        }
        units.split(|unit| unit.is(self.items)).map(decode).collect::<Option<_>>().map(Value::List)
    }
}

/// Brings captures together; `None` if a variable would have two values.
fn merge(captures: Vec<(&VarSpec, Value)>) -> Option<Variables> {
    let mut variables = Variables::new();
    let (mut prefixes, values): (Vec<_>, Vec<_>) =
        captures.into_iter().partition(|(spec, _)| matches!(spec.modifier, Modifier::Prefix(_)));
    prefixes.sort_by_key(|(spec, _)| match spec.modifier {
        Modifier::Prefix(most) => Reverse(most),
        Modifier::None | Modifier::Explode => Reverse(0),
    });
    for (spec, value) in values {
        if variables.get(&spec.name).is_some_and(|known| *known != value) {
            return None;
        }
        variables.insert(&spec.name, value);
    }
    for (spec, prefix) in prefixes {
        // A prefix says less than the whole value but must agree with it.
        let agrees = match (variables.get(&spec.name), &prefix) {
            (None, _) => true,
            (Some(Value::Text(known)), Value::Text(prefix)) => known.starts_with(prefix),
            _ => false,
        };
        if !agrees {
            return None;
        }
        if variables.get(&spec.name).is_none() {
            variables.insert(&spec.name, prefix);
        }
    }
    Some(variables)
}

/// The characters that announce what comes after a value, and that the value therefore does not contain.
///
/// A query or a fragment is announced wherever it is in the template, the rest only if it comes next.
fn announced(rest: &[Part]) -> Vec<u8> {
    let operator = |part: &Part| match part {
        Part::Literal(_) => None,
        Part::Expression(expression) => Some(expression.operator),
    };
    let next = rest.first().and_then(operator).filter(|operator| {
        matches!(operator, Operator::Label | Operator::PathParameter | Operator::QueryContinuation)
    });
    let later = rest.iter().filter_map(operator);
    let later = later.filter(|operator| matches!(operator, Operator::Query | Operator::Fragment));
    next.into_iter().chain(later).flat_map(|operator| operator.first().bytes()).collect()
}

fn compile_expression(expression: &Expression, announced: &[u8], steps: &mut Vec<Step>) -> Option<()> {
    let operator = expression.operator;
    match operator {
        Operator::PathParameter | Operator::Query => {
            steps.push(Step::Parameters(Parameters::new(operator, &expression.specs)));
        }
        Operator::QueryContinuation => match steps.last_mut() {
            Some(Step::Parameters(query)) if query.is_query() => query.extend(&expression.specs),
            _ => steps.push(Step::Parameters(Parameters::new(operator, &expression.specs))),
        },
        Operator::Simple | Operator::Reserved | Operator::Fragment | Operator::Label | Operator::Path => {
            compile_runs(expression, announced, steps)?;
        }
    }
    Some(())
}

/// Compiles an expression whose values stand without their names.
///
/// Each value after the first one may be missing, and so may the first if a character announces it. What is
/// missing takes everything after it along.
fn compile_runs(expression: &Expression, announced: &[u8], steps: &mut Vec<Step>) -> Option<()> {
    let operator = expression.operator;
    let mut optional = Vec::new();
    for (index, spec) in expression.specs.iter().enumerate() {
        let lead = if index == 0 { operator.first() } else { operator.separator() };
        if !lead.is_empty() {
            optional.push(steps.len());
            // The target is not known before the whole expression is compiled.
            steps.push(Step::Optional(0));
            steps.push(Step::Literal(numbers(&units(lead)?)));
        }
        steps.push(Step::Run(Run::new(expression, spec, announced)));
    }
    let end = steps.len();
    for index in optional {
        if let Some(Step::Optional(target)) = steps.get_mut(index) {
            *target = end;
        }
    }
    Some(())
}

impl Run {
    fn new(expression: &Expression, spec: &VarSpec, announced: &[u8]) -> Self {
        let operator = expression.operator;
        let items = operator.separator().bytes().next().unwrap_or(b',');
        let exploded = spec.modifier == Modifier::Explode;
        let mut stops = announced.to_vec();
        stops.extend_from_slice(match operator {
            Operator::Reserved | Operator::Fragment => b"",
            Operator::Path if exploded => b"?#",
            _ => b"/?#",
        });
        if expression.specs.len() > 1 && !exploded {
            stops.push(items);
        }
        Self { spec: spec.clone(), stops, items, may_be_empty: !operator.first().is_empty() }
    }
}
