use super::{
    Expression, MAX_TEMPLATE_BYTES, MAX_VARIABLES, Modifier, Operator, Part, UriTemplateError,
    UriTemplateFault, VarSpec, expand::push_encoded,
};

/// Divides a template into its parts.
pub(super) fn parse(source: &str) -> Result<Vec<Part>, UriTemplateError> {
    let fault = |position, reason| UriTemplateError { position, reason };
    if source.len() > MAX_TEMPLATE_BYTES {
        return Err(fault(MAX_TEMPLATE_BYTES, UriTemplateFault::TooLong));
    }
    let mut parts = Vec::new();
    let mut variables = 0;
    let mut position = 0;
    while let Some(rest) = source.get(position..).filter(|rest| !rest.is_empty()) {
        if let Some(inner) = rest.strip_prefix('{') {
            let (inner, _) =
                inner.split_once('}').ok_or_else(|| fault(position, UriTemplateFault::Unclosed))?;
            let expression = parse_expression(inner, position + 1)?;
            variables += expression.specs.len();
            if variables > MAX_VARIABLES {
                return Err(fault(position, UriTemplateFault::TooManyVariables));
            }
            parts.push(Part::Expression(expression));
            position += inner.len() + 2;
        } else {
            let literal = rest.split('{').next().unwrap_or_default();
            parts.push(Part::Literal(parse_literal(literal, position)?));
            position += literal.len();
        }
    }
    Ok(parts)
}

fn parse_literal(text: &str, start: usize) -> Result<String, UriTemplateError> {
    for (offset, character) in text.char_indices() {
        let reason = match character {
            '}' => UriTemplateFault::Unopened,
            '%' if !starts_with_triplet(text, offset) => UriTemplateFault::InvalidLiteral,
            '"' | '<' | '>' | '\\' | '^' | '`' | '|' | ' ' => UriTemplateFault::InvalidLiteral,
            control if control.is_control() => UriTemplateFault::InvalidLiteral,
            _ => continue,
        };
        return Err(UriTemplateError { position: start + offset, reason });
    }
    let mut encoded = String::with_capacity(text.len());
    push_encoded(text, true, &mut encoded);
    Ok(encoded)
}

fn parse_expression(inner: &str, start: usize) -> Result<Expression, UriTemplateError> {
    let (operator, list) = match inner.chars().next() {
        Some('+') => (Operator::Reserved, 1),
        Some('#') => (Operator::Fragment, 1),
        Some('.') => (Operator::Label, 1),
        Some('/') => (Operator::Path, 1),
        Some(';') => (Operator::PathParameter, 1),
        Some('?') => (Operator::Query, 1),
        Some('&') => (Operator::QueryContinuation, 1),
        Some('=' | ',' | '!' | '@' | '|') => {
            return Err(UriTemplateError { position: start, reason: UriTemplateFault::ReservedOperator });
        }
        _ => (Operator::Simple, 0),
    };
    let mut position = start + list;
    let mut specs = Vec::new();
    for text in inner.get(list..).unwrap_or_default().split(',') {
        specs.push(parse_spec(text).map_err(|reason| UriTemplateError { position, reason })?);
        position += text.len() + 1;
    }
    Ok(Expression { operator, specs })
}

fn parse_spec(text: &str) -> Result<VarSpec, UriTemplateFault> {
    let (name, modifier) = if let Some(name) = text.strip_suffix('*') {
        (name, Modifier::Explode)
    } else if let Some((name, length)) = text.split_once(':') {
        (name, Modifier::Prefix(parse_prefix(length).ok_or(UriTemplateFault::InvalidModifier)?))
    } else {
        (text, Modifier::None)
    };
    if is_name(name) {
        Ok(VarSpec { name: name.to_owned(), modifier })
    } else {
        Err(UriTemplateFault::InvalidName)
    }
}

fn parse_prefix(length: &str) -> Option<usize> {
    let is_number = length.bytes().all(|byte| byte.is_ascii_digit()) && !length.starts_with('0');
    length.parse().ok().filter(|length| is_number && *length < 10_000)
}

fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let is_allowed = |(offset, character): (usize, char)| {
            character.is_ascii_alphanumeric()
                || character == '_'
                || character == '%' && starts_with_triplet(part, offset)
        };
        !part.is_empty() && part.char_indices().all(is_allowed)
    };
    name.split('.').all(is_part)
}

/// Whether a percent-encoded octet starts at `offset`.
pub(super) fn starts_with_triplet(text: &str, offset: usize) -> bool {
    match text.as_bytes().get(offset..offset + 3) {
        Some([b'%', high, low]) => high.is_ascii_hexdigit() && low.is_ascii_hexdigit(),
        _ => false,
    }
}
