use super::{
    super::{Modifier, Operator, Value, VarSpec},
    unit::{Unit, decode},
};

/// Parameters with names: `?a=1&b=2`, `&a=1` or `;a=1;b`.
///
/// They reach to the end of the query, or of the path segment, and may come in any order.
#[derive(Clone, Debug)]
pub(super) struct Parameters {
    specs: Vec<VarSpec>,
    /// The character before the first parameter.
    first: u8,
    /// The character between two parameters.
    separator: u8,
    /// The characters that end the list.
    stops: &'static [u8],
}

/// A name and a value.
type Pair = (String, String);

impl Parameters {
    pub(super) fn new(operator: Operator, specs: &[VarSpec]) -> Self {
        let (first, separator, stops): (_, _, &[u8]) = match operator {
            Operator::PathParameter => (b';', b';', b"/?#"),
            Operator::QueryContinuation => (b'&', b'&', b"#"),
            _ => (b'?', b'&', b"#"),
        };
        Self { specs: specs.to_vec(), first, separator, stops }
    }

    pub(super) const fn is_query(&self) -> bool {
        self.separator == b'&'
    }

    pub(super) fn extend(&mut self, specs: &[VarSpec]) {
        self.specs.extend_from_slice(specs);
    }

    /// Where this step can start, given where the next one can.
    ///
    /// One pass from the end, in which each parameter is looked at once.
    pub(super) fn row(&self, units: &[Unit], next: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut row: Vec<bool> = (0..=units.len()).map(&next).collect();
        let query = first_question_mark(units);
        let mut end = units.len();
        let mut parameter_end = end;
        let mut seen = vec![false; self.specs.len()];
        let mut good = true;
        for (position, unit) in units.iter().enumerate().rev() {
            if !unit.encoded && self.stops.contains(&unit.octet) {
                end = position;
                parameter_end = end;
                seen.fill(false);
                good = true;
            }
            let is_first = self.is_first(*unit, position, query);
            if is_first || unit.is(self.separator) {
                good = good && self.is_known(units.get(position + 1..parameter_end), &mut seen);
                parameter_end = position;
            }
            if let Some(slot) = row.get_mut(position).filter(|_| is_first && good && next(end)) {
                *slot = true;
            }
        }
        row
    }

    /// Reads the parameters that start at `position`: where they end, and the values of the variables.
    pub(super) fn read(&self, units: &[Unit], position: usize) -> Option<(usize, Vec<(&VarSpec, Value)>)> {
        let unit = units.get(position)?;
        if !self.is_first(*unit, position, first_question_mark(units)) {
            return None;
        }
        let rest = units.get(position + 1..)?;
        let is_stop = |unit: &Unit| !unit.encoded && self.stops.contains(&unit.octet);
        let length = rest.iter().position(is_stop).unwrap_or(rest.len());
        let pairs = rest.get(..length)?.split(|unit| unit.is(self.separator)).map(pair);
        let values = self.values(pairs.collect::<Option<_>>()?)?;
        Some((position + 1 + length, values))
    }

    /// Whether the first parameter can come after this unit. A query starts at the first question mark.
    fn is_first(&self, unit: Unit, position: usize, query: Option<usize>) -> bool {
        unit.is(self.first) && (self.first != b'?' || query == Some(position))
    }

    /// Whether a parameter belongs to a variable that has room for it.
    fn is_known(&self, parameter: Option<&[Unit]>, seen: &mut [bool]) -> bool {
        let Some((name, value)) = parameter.and_then(pair) else { return false };
        match self.specs.iter().zip(seen).find(|(spec, _)| spec.name == name) {
            Some((spec, seen)) => {
                let is_new = !std::mem::replace(seen, true);
                spec.modifier == Modifier::Explode || is_new && fits(spec, &value)
            }
            None => self.exploded().is_some(),
        }
    }

    /// The variable that takes parameters with names of their own.
    fn exploded(&self) -> Option<&VarSpec> {
        self.specs.iter().find(|spec| spec.modifier == Modifier::Explode)
    }

    /// Hands the parameters out to the variables.
    fn values(&self, pairs: Vec<Pair>) -> Option<Vec<(&VarSpec, Value)>> {
        let mut taken: Vec<(&VarSpec, Vec<Pair>)> =
            self.specs.iter().map(|spec| (spec, Vec::new())).collect();
        for pair in pairs {
            let of_name = taken.iter().position(|(spec, _)| spec.name == pair.0);
            let index =
                of_name.or_else(|| taken.iter().position(|(spec, _)| spec.modifier == Modifier::Explode))?;
            taken.get_mut(index)?.1.push(pair);
        }
        let value = |spec: &VarSpec, pairs: Vec<Pair>| match (spec.modifier, pairs.as_slice()) {
            (Modifier::Explode, _) => Some(exploded(&spec.name, pairs)),
            (_, [(_, value)]) if fits(spec, value) => Some(Value::Text(value.clone())),
            _ => None,
        };
        let given = taken.into_iter().filter(|(_, pairs)| !pairs.is_empty());
        given.map(|(spec, pairs)| Some((spec, value(spec, pairs)?))).collect()
    }
}

/// Whether a value is no longer than its variable lets it be.
fn fits(spec: &VarSpec, value: &str) -> bool {
    match spec.modifier {
        Modifier::Prefix(most) => value.chars().count() <= most,
        Modifier::None | Modifier::Explode => true,
    }
}

/// The value of an exploded variable: a list if all parameters have its name.
fn exploded(name: &str, pairs: Vec<Pair>) -> Value {
    if pairs.iter().all(|(other, _)| other == name) {
        Value::List(pairs.into_iter().map(|(_, value)| value).collect())
    } else {
        Value::Pairs(pairs)
    }
}

/// Divides a parameter at its first equals sign; without one it has an empty value.
fn pair(parameter: &[Unit]) -> Option<Pair> {
    let equals = parameter.iter().position(|unit| unit.is(b'='));
    let name = decode(parameter.get(..equals.unwrap_or(parameter.len()))?)?;
    let value = equals.and_then(|equals| parameter.get(equals + 1..)).unwrap_or_default();
    Some((name, decode(value)?))
}

/// Where the query starts, if there is one before the fragment.
fn first_question_mark(units: &[Unit]) -> Option<usize> {
    let position = units.iter().position(|unit| unit.is(b'?') || unit.is(b'#'))?;
    units.get(position).filter(|unit| unit.is(b'?')).map(|_| position)
}
