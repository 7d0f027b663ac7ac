use super::{Expression, Modifier, Operator, Part, Value, VarSpec, Variables, parse::starts_with_triplet};

/// Replaces every expression by its variables' values.
pub(super) fn expand(parts: &[Part], variables: &Variables) -> String {
    let mut out = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => out.push_str(text),
            Part::Expression(expression) => expand_expression(expression, variables, &mut out),
        }
    }
    out
}

fn expand_expression(expression: &Expression, variables: &Variables, out: &mut String) {
    let operator = expression.operator;
    let defined = |spec: &VarSpec| variables.get(&spec.name).filter(|value| is_defined(value)).cloned();
    let values = expression.specs.iter().filter_map(|spec| Some((spec, defined(spec)?)));
    for (index, (spec, value)) in values.enumerate() {
        out.push_str(if index == 0 { operator.first() } else { operator.separator() });
        expand_value(operator, spec, &value, out);
    }
}

fn is_defined(value: &Value) -> bool {
    match value {
        Value::Text(_) => true,
        Value::List(items) => !items.is_empty(),
        Value::Pairs(pairs) => !pairs.is_empty(),
    }
}

fn expand_value(operator: Operator, spec: &VarSpec, value: &Value, out: &mut String) {
    let reserved = operator.allows_reserved();
    let items: Vec<String> = match (value, spec.modifier) {
        (Value::Text(text), Modifier::Prefix(length)) => {
            vec![encode(&text.chars().take(length).collect::<String>(), reserved)]
        }
        (Value::Text(text), _) => vec![encode(text, reserved)],
        (Value::List(items), _) => items.iter().map(|item| encode(item, reserved)).collect(),
        (Value::Pairs(pairs), Modifier::Explode) => {
            let pair = |(name, value): &(String, String)| {
                let (name, value) = (encode(name, reserved), encode(value, reserved));
                // Only operators that name their variables drop the sign before an empty value.
                if operator.is_named() { operator.pair(&name, &value) } else { format!("{name}={value}") }
            };
            out.push_str(&pairs.iter().map(pair).collect::<Vec<_>>().join(operator.separator()));
            return;
        }
        (Value::Pairs(pairs), _) => {
            pairs.iter().flat_map(|(name, value)| [encode(name, reserved), encode(value, reserved)]).collect()
        }
    };
    let exploded = spec.modifier == Modifier::Explode;
    let text = match (operator.is_named(), exploded) {
        (true, true) => {
            let named: Vec<_> = items.iter().map(|item| operator.pair(&spec.name, item)).collect();
            named.join(operator.separator())
        }
        (true, false) => operator.pair(&spec.name, &items.join(",")),
        (false, true) => items.join(operator.separator()),
        (false, false) => items.join(","),
    };
    out.push_str(&text);
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

    /// A name with its value; a path parameter without a value has no equals sign either.
    fn pair(self, name: &str, value: &str) -> String {
        let sign = if value.is_empty() && self == Self::PathParameter { "" } else { "=" };
        format!("{name}{sign}{value}")
    }
}

fn encode(text: &str, reserved: bool) -> String {
    let mut out = String::with_capacity(text.len());
    push_encoded(text, reserved, &mut out);
    out
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
