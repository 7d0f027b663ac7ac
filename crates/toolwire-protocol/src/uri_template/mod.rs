//! URI templates (RFC 6570, all four levels): how a server describes a family of resources.
//!
//! A template is used in both directions. Clients [expand](UriTemplate::expand) it with variables; servers
//! [match](UriTemplate::match_uri) a URI against it to find the variables again. The RFC defines the first
//! direction only, and so do the libraries there are, which is why this is a parser of our own.
//!
//! Matching never tries one choice after another: it fills one table of (steps of the template) × (characters
//! of the URI) and reads the answer off it, so a hostile URI costs no more than any other of its length, and
//! [`MAX_URI_BYTES`] and [`MAX_VARIABLES`] bound that. It does not normalise URIs beyond reading characters
//! that are not ASCII as if they were percent-encoded: `/a/../b` is not `/b`. A captured value may therefore
//! be anything, `..` and (percent-encoded) `/` included. Whoever turns one into a path must check it.

mod expand;
mod matching;
mod parse;
mod unmatchable;
mod variables;

use std::{cmp::Reverse, collections::BTreeSet, fmt, str::FromStr};

pub use unmatchable::Unmatchable;
pub use variables::{Value, Variables};

/// The longest template that is accepted.
pub const MAX_TEMPLATE_BYTES: usize = 2048;
/// The largest number of variables in a template; a variable counts as often as it is written.
pub const MAX_VARIABLES: usize = 64;
/// The longest URI that is matched; a longer one matches nothing.
pub const MAX_URI_BYTES: usize = 8192;
/// The longest URI that a template is expanded to. A template may repeat a variable, so what it makes of a value can be
/// far longer than the value.
pub const MAX_EXPANDED_BYTES: usize = 64 * 1024;

/// The variables of a template as they were found in a URI.
pub type Captures = Variables;

/// A parsed URI template.
///
/// ```
/// use toolwire_protocol::uri_template::{UriTemplate, Variables};
///
/// let template: UriTemplate = "repo://{owner}/{+path}{?rev}".parse().unwrap();
/// let variables = template.match_uri("repo://ada/src/lib%20rs?rev=1").unwrap();
/// assert_eq!(variables.text("owner"), Some("ada"));
/// assert_eq!(variables.text("path"), Some("src/lib rs"));
/// assert_eq!(variables.text("rev"), Some("1"));
///
/// let variables = Variables::from([("owner", "ada"), ("path", "a/b")]);
/// assert_eq!(template.expand(&variables).unwrap(), "repo://ada/a/b");
/// ```
#[derive(Clone)]
pub struct UriTemplate {
    source: Box<str>,
    parts: Vec<Part>,
    program: matching::Program,
}

#[derive(Clone, Debug)]
enum Part {
    /// Text that stands for itself, with percent-encoding where a URI needs it.
    Literal(String),
    Expression(Expression),
}

#[derive(Clone, Debug)]
struct Expression {
    operator: Operator,
    specs: Vec<VarSpec>,
}

#[derive(Clone, Debug)]
struct VarSpec {
    name: String,
    modifier: Modifier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Modifier {
    None,
    /// Only so many characters of the value.
    Prefix(usize),
    /// Each item of the value on its own.
    Explode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Path,
    PathParameter,
    Query,
    QueryContinuation,
}

/// Why a text is not a URI template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriTemplateError {
    /// Where in the text, in bytes.
    pub position: usize,
    /// What is wrong there.
    pub reason: UriTemplateFault,
}

/// The mistakes a template can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UriTemplateFault {
    /// A `{` without its `}`.
    Unclosed,
    /// A `}` without its `{`.
    Unopened,
    /// An operator that RFC 6570 keeps for later.
    ReservedOperator,
    /// A variable name that is empty or has other characters than letters, digits, `_`, `.` and
    /// percent-encoded ones.
    InvalidName,
    /// A prefix length that is not a number from 1 to 9999, or a modifier that is not one.
    InvalidModifier,
    /// A character that has no place in a URI.
    InvalidLiteral,
    /// More than [`MAX_TEMPLATE_BYTES`].
    TooLong,
    /// More than [`MAX_VARIABLES`].
    TooManyVariables,
}

/// A URI that a template describes is longer than [`MAX_EXPANDED_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpansionTooLong;

impl fmt::Display for ExpansionTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the URI is longer than {MAX_EXPANDED_BYTES} bytes; give the template shorter values")
    }
}

impl std::error::Error for ExpansionTooLong {}

/// How much a template says by itself: of two templates that match a URI, the greater one fits it better.
///
/// More literal text comes first, then fewer variables that may span several path segments, then fewer
/// variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity {
    literal: usize,
    spanning: Reverse<usize>,
    variables: Reverse<usize>,
}

impl UriTemplate {
    /// Parses a template.
    pub fn parse(source: &str) -> Result<Self, UriTemplateError> {
        let parts = parse::parse(source)?;
        let invalid = UriTemplateError { position: 0, reason: UriTemplateFault::InvalidLiteral };
        let program = matching::Program::compile(&parts).ok_or(invalid)?;
        Ok(Self { source: source.into(), parts, program })
    }

    /// The template as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The names of the variables, in the order of their first appearance.
    pub fn variables(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        self.specs().map(|(_, spec)| spec.name.as_str()).filter(|name| seen.insert(*name)).collect()
    }

    /// The URI that the template describes with these variables. Variables without a value are left out.
    ///
    /// # Errors
    /// When it would be longer than [`MAX_EXPANDED_BYTES`].
    pub fn expand(&self, variables: &Variables) -> Result<String, ExpansionTooLong> {
        expand::expand(&self.parts, variables)
    }

    /// The variables with which the template describes `uri`, if there are any.
    ///
    /// * Literal text must be there to the letter.
    /// * `{x}` takes at least one character and stops before `/`, `?` and `#`; `{+x}` takes at least one
    ///   character of any kind. Expressions with another operator may be absent as a whole.
    /// * Parameters of `{?x}` and `{&x}` may come in any order and may be missing, but there must be no others.
    ///   They extend to the end of the query, so nothing but a fragment can follow them;
    ///   [`check_matchable`](Self::check_matchable) tells whether a template keeps to that.
    /// * A value does not contain the character that announces a query or fragment expression further on (`?`,
    ///   `#`), or a `{.x}`, `{;x}` or `{&x}` right after it: in `{name}{.ext}` the name ends at the first dot.
    /// * Where a URI can be divided in several ways, the variable that is written first takes as much as it can.
    /// * Values are text; only exploded variables (`{x*}`) are lists, or name-value pairs where a `{;x*}`,
    ///   `{?x*}` or `{&x*}` has other names than its own.
    /// * A variable that appears twice must have the same value in both places of the division so found.
    pub fn match_uri(&self, uri: &str) -> Option<Captures> {
        self.program.run(uri)
    }

    /// What a router orders templates by.
    pub fn specificity(&self) -> Specificity {
        let literal = |part: &Part| match part {
            Part::Literal(text) => text.len(),
            Part::Expression(_) => 0,
        };
        let spans = |operator| matches!(operator, Operator::Reserved | Operator::Fragment);
        let is_spanning = |(operator, spec): &(Operator, &VarSpec)| {
            spans(*operator) || *operator == Operator::Path && spec.modifier == Modifier::Explode
        };
        Specificity {
            literal: self.parts.iter().map(literal).sum(),
            spanning: Reverse(self.specs().filter(is_spanning).count()),
            variables: Reverse(self.specs().count()),
        }
    }

    fn specs(&self) -> impl Iterator<Item = (Operator, &VarSpec)> {
        let expressions = self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Expression(expression) => Some(expression),
        });
        expressions.flat_map(|expression| expression.specs.iter().map(|spec| (expression.operator, spec)))
    }
}

impl FromStr for UriTemplate {
    type Err = UriTemplateError;

    fn from_str(source: &str) -> Result<Self, UriTemplateError> {
        Self::parse(source)
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl fmt::Debug for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UriTemplate").field(&self.source).finish()
    }
}

impl PartialEq for UriTemplate {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for UriTemplate {}

impl fmt::Display for UriTemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            UriTemplateFault::Unclosed => "an expression that is not closed",
            UriTemplateFault::Unopened => "a closing brace without an opening one",
            UriTemplateFault::ReservedOperator => "an operator that is not in use",
            UriTemplateFault::InvalidName => "not the name of a variable",
            UriTemplateFault::InvalidModifier => "neither `*` nor a prefix length from 1 to 9999",
            UriTemplateFault::InvalidLiteral => "a character that has no place in a URI",
            UriTemplateFault::TooLong => "too long",
            UriTemplateFault::TooManyVariables => "too many variables",
        };
        write!(f, "invalid URI template at byte {}: {reason}", self.position)
    }
}

impl std::error::Error for UriTemplateError {}

#[cfg(test)]
mod tests;
