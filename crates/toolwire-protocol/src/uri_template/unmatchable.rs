//! Templates whose URIs cannot be told apart again.

use std::{error::Error, fmt};

use super::{Expression, Operator, Part, UriTemplate};

/// A template has something after its parameters that would be read as a part of the last one.
///
/// With `{&page}{rest}`, the values 1 and 23 make `&page=123`, and nobody can tell where the one ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unmatchable {
    /// The names of the parameters, with their operator: `{?page,size}` without its braces and modifiers.
    expression: String,
    /// Where they end.
    end: &'static str,
}

impl fmt::Display for Unmatchable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expression, end } = self;
        write!(f, "what follows {{{expression}}} would be read as a part of its values, which reach to {end}")
    }
}

impl Error for Unmatchable {}

impl UriTemplate {
    /// Whether a URI of the template says which values it was made of. A server that is asked for the URI has to know.
    ///
    /// Parameters reach to the end of the query, or of the path segment, because they may come in any order. So after
    /// `{?x}` and `{&x}` there can be nothing but further `{&x}` and a fragment, and after `{;x}` only what begins with
    /// `/`, `?` or `#`.
    ///
    /// # Errors
    /// When something else comes after them.
    pub fn check_matchable(&self) -> Result<(), Unmatchable> {
        for (index, part) in self.parts.iter().enumerate() {
            let Part::Expression(expression) = part else { continue };
            let (stops, end): (&[char], _) = match expression.operator {
                Operator::PathParameter => (&['/', '?', '#'], "the end of the path segment"),
                Operator::Query | Operator::QueryContinuation => (&['#'], "the end of the query"),
                _ => continue,
            };
            let rest = self.parts.get(index + 1..).unwrap_or_default();
            if !can_follow(expression.operator, stops, rest) {
                return Err(Unmatchable { expression: shown(expression), end });
            }
        }
        Ok(())
    }
}

/// Whether the parts begin with one of the `stops`, whichever of their expressions are absent.
fn can_follow(after: Operator, stops: &[char], parts: &[Part]) -> bool {
    for part in parts {
        match part {
            Part::Literal(text) if text.is_empty() => {}
            Part::Literal(text) => return text.starts_with(stops),
            // They are one list of parameters.
            Part::Expression(next)
                if next.operator == Operator::QueryContinuation && after != Operator::PathParameter => {}
            Part::Expression(next) => {
                let lead = next.operator.first();
                if lead.is_empty() || !lead.starts_with(stops) {
                    return false;
                }
            }
        }
    }
    true
}

fn shown(expression: &Expression) -> String {
    let names: Vec<_> = expression.specs.iter().map(|spec| spec.name.as_str()).collect();
    format!("{}{}", expression.operator.first(), names.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ends_the_parameters_can_follow_them() {
        for good in [
            "a{?x}",
            "a{?x}{&y}{&z}",
            "a{?x}{#y}",
            "a{?x}#top",
            "a{?x}{&y}#{z}",
            "a?b=1{&x}{#y}",
            "{;x}/{y}",
            "{;x}{/y}{?z}{#f}",
            "{;x}?y={z}",
            "{+x}{?y}",
            "{x}{y}",
            "{x0}{&x1}",
        ] {
            assert_eq!(UriTemplate::parse(good).unwrap().check_matchable(), Ok(()), "{good}");
        }
        for bad in [
            "{x0}{&x1}{x2}",
            "a{?x}b",
            "a{?x}&y=1",
            "a{?x}{/y}",
            "a{?x}{?y}",
            "a{?x}{#y}z",
            "a{;x}{y}",
            "a{;x}{;y}",
            "a{;x}{&y}",
            "a{;x}b",
            "a{;x}{/y}b",
        ] {
            assert!(UriTemplate::parse(bad).unwrap().check_matchable().is_err(), "{bad}");
        }
        assert_eq!(
            UriTemplate::parse("{x0}{&x1}{x2}").unwrap().check_matchable().unwrap_err().to_string(),
            "what follows {&x1} would be read as a part of its values, which reach to the end of the query"
        );
    }

    #[test]
    fn what_is_refused_would_have_been_misread() {
        let template = UriTemplate::parse("{x0}{&x1}{x2}").unwrap();
        let variables = crate::uri_template::Variables::from([("x0", "a"), ("x1", "b"), ("x2", "c")]);
        let uri = template.expand(&variables).unwrap();
        assert_ne!(template.match_uri(&uri), Some(variables));
    }
}
