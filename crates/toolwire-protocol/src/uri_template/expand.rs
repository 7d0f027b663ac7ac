use super::{
    ExpansionTooLong, Expression, MAX_EXPANDED_BYTES, Modifier, Operator, Part, Value, VarSpec, Variables,
    parse::starts_with_triplet,
};

/// Replaces every expression by its variables' values.
pub(super) fn expand(parts: &[Part], variables: &Variables) -> Result<String, ExpansionTooLong> {
    let mut out = Out { text: String::new() };
    for part in parts {
        match part {
            Part::Literal(text) => out.push(text)?,
            Part::Expression(expression) => expand_expression(expression, variables, &mut out)?,
        }
    }
    Ok(out.text)
}

/// A URI that is being written, no longer than it may be.
struct Out {
    text: String,
}

impl Out {
    fn push(&mut self, text: &str) -> Result<(), ExpansionTooLong> {
        self.make_room(text)?;
        self.text.push_str(text);
        Ok(())
    }

    fn push_encoded(&mut self, text: &str, reserved: bool) -> Result<(), ExpansionTooLong> {
        // What does not fit as it is does not fit encoded either, and would be encoded for nothing.
        self.make_room(text)?;
        push_encoded(text, reserved, &mut self.text);
        self.make_room("")
    }

    fn make_room(&self, text: &str) -> Result<(), ExpansionTooLong> {
        if self.text.len().saturating_add(text.len()) > MAX_EXPANDED_BYTES {
            Err(ExpansionTooLong)
        } else {
            Ok(())
        }
    }
}

fn expand_expression(
    expression: &Expression,
    variables: &Variables,
    out: &mut Out,
) -> Result<(), ExpansionTooLong> {
    let operator = expression.operator;
    let defined = |spec: &VarSpec| variables.get(&spec.name).filter(|value| is_defined(value));
    let values = expression.specs.iter().filter_map(|spec| Some((spec, defined(spec)?)));
    for (index, (spec, value)) in values.enumerate() {
        out.push(if index == 0 { operator.first() } else { operator.separator() })?;
        expand_value(operator, spec, value, out)?;
    }
    Ok(())
}

fn is_defined(value: &Value) -> bool {
    match value {
        Value::Text(_) => true,
        Value::List(items) => !items.is_empty(),
        Value::Pairs(pairs) => !pairs.is_empty(),
    }
}

fn expand_value(
    operator: Operator,
    spec: &VarSpec,
    value: &Value,
    out: &mut Out,
) -> Result<(), ExpansionTooLong> {
    if spec.modifier == Modifier::Explode {
        return expand_exploded(operator, &spec.name, value, out);
    }
    if operator.is_named() {
        out.push(&spec.name)?;
        // Only a single empty text is empty: several items have commas between them.
        let is_empty = match value {
            Value::Text(text) => text.is_empty(),
            Value::List(items) => matches!(items.as_slice(), [only] if only.is_empty()),
            Value::Pairs(_) => false,
        };
        out.push(operator.sign(is_empty))?;
    }
    let reserved = operator.allows_reserved();
    match value {
        Value::Text(text) => {
            let end = match spec.modifier {
                Modifier::Prefix(length) => text.char_indices().nth(length).map(|(end, _)| end),
                Modifier::None | Modifier::Explode => None,
            };
            out.push_encoded(end.and_then(|end| text.get(..end)).unwrap_or(text), reserved)
        }
        Value::List(items) => separated(items, ",", out, |item, out| out.push_encoded(item, reserved)),
        Value::Pairs(pairs) => separated(pairs, ",", out, |(name, value), out| {
            out.push_encoded(name, reserved)?;
            out.push(",")?;
            out.push_encoded(value, reserved)
        }),
    }
}

/// Expands each item on its own, with its name where the operator wants names.
fn expand_exploded(
    operator: Operator,
    variable: &str,
    value: &Value,
    out: &mut Out,
) -> Result<(), ExpansionTooLong> {
    let reserved = operator.allows_reserved();
    let item = |text: &String, out: &mut Out| {
        if operator.is_named() {
            out.push(variable)?;
            out.push(operator.sign(text.is_empty()))?;
        }
        out.push_encoded(text, reserved)
    };
    match value {
        Value::Text(text) => item(text, out),
        Value::List(items) => separated(items, operator.separator(), out, item),
        Value::Pairs(pairs) => separated(pairs, operator.separator(), out, |(name, value), out| {
            out.push_encoded(name, reserved)?;
            // Only operators that name their variables drop the sign before an empty value.
            out.push(if operator.is_named() { operator.sign(value.is_empty()) } else { "=" })?;
            out.push_encoded(value, reserved)
        }),
    }
}

fn separated<T>(
    items: &[T],
    separator: &str,
    out: &mut Out,
    write: impl Fn(&T, &mut Out) -> Result<(), ExpansionTooLong>,
) -> Result<(), ExpansionTooLong> {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(separator)?;
        }
        write(item, out)?;
    }
    Ok(())
}

impl Operator {
    /// What stands before the first value.
    pub(super) const fn first(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved => "",
            Self::Fragment => "#",
            Self::Label => ".",
            Self::Path => "/",
            Self::PathParameter => ";",
            Self::Query => "?",
            Self::QueryContinuation => "&",
        }
    }

    /// What stands between two values.
    pub(super) const fn separator(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ",",
            Self::Label => ".",
            Self::Path => "/",
            Self::PathParameter => ";",
            Self::Query | Self::QueryContinuation => "&",
        }
    }

    const fn is_named(self) -> bool {
        matches!(self, Self::PathParameter | Self::Query | Self::QueryContinuation)
    }

    const fn allows_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }

    /// What stands between a name and its value; a path parameter without a value has no equals sign either.
    fn sign(self, is_empty: bool) -> &'static str {
        if is_empty && self == Self::PathParameter { "" } else { "=" }
    }
}

/// Appends `text` with percent-encoding for all but unreserved characters and, if `reserved` allows them,
/// reserved characters and octets that are percent-encoded already.
pub(super) fn push_encoded(text: &str, reserved: bool, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for (offset, character) in text.char_indices() {
        let is_unreserved = character.is_ascii_alphanumeric() || "-._~".contains(character);
        let is_reserved = ":/?#[]@!$&'()*+,;=".contains(character);
        if is_unreserved || reserved && (is_reserved || starts_with_triplet(text, offset)) {
            out.push(character);
            continue;
        }
        for byte in character.encode_utf8(&mut [0; 4]).bytes() {
            let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().map_or('0', char::from);
            out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}
