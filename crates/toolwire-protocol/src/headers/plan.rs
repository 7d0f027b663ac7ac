use std::{borrow::Cow, collections::HashSet, fmt};

use serde_json::{Map, Number, Value};

use super::{HeaderMismatch, MCP_PARAM_PREFIX, MismatchReason, decode_value, encode_value};

/// The annotation in a schema that asks for a header.
const ANNOTATION: &str = "x-mcp-header";
/// The largest whole number that survives in every JSON implementation: 2^53 - 1.
const MAX_SAFE_INTEGER: u128 = (1 << 53) - 1;

/// How many headers one tool may have.
pub const MAX_PLAN_HEADERS: usize = 64;

/// How many bytes the names of one tool's headers, and of the properties that lead to them, may have together.
pub const MAX_PLAN_BYTES: usize = 64 * 1024;

/// How deep an input schema with annotations may be nested.
const MAX_DEPTH: usize = 128;

/// How many characters of a property's name an error shows.
const SHOWN_CHARS: usize = 60;

/// Which arguments of a tool travel in which headers: the `x-mcp-header` annotations of its input schema.
///
/// ```
/// use serde_json::json;
/// use toolwire_protocol::headers::HeaderPlan;
///
/// let schema = json!({
///     "type": "object",
///     "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
/// });
/// let plan = HeaderPlan::compile(schema.as_object().unwrap()).unwrap();
/// let arguments = json!({ "region": "us-west1" });
/// let headers = plan.headers(arguments.as_object().unwrap());
/// assert_eq!(headers, [("mcp-param-region".to_owned(), "us-west1".to_owned())]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderPlan {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// The whole name of the header, in lower case.
    header: String,
    /// The chain of property names that leads to the argument.
    path: Vec<String>,
}

/// An annotation that breaks the rules; the tool that has it must not be offered over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderPlanError {
    /// The place of the annotated schema, as a JSON pointer into the input schema.
    pub pointer: String,
    /// The rule it breaks.
    pub fault: HeaderPlanFault,
}

/// The rules an annotation can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderPlanFault {
    /// The annotation is not a string that can be part of a header's name.
    NotAToken,
    /// Another annotation has the same name, upper and lower case aside.
    Duplicate,
    /// The annotated property is not of type string, integer or boolean.
    NotPrimitive,
    /// The property is not reached by `properties` alone.
    NotReachable,
    /// More than [`MAX_PLAN_HEADERS`] annotations.
    TooMany,
    /// More than [`MAX_PLAN_BYTES`] of names.
    TooLong,
    /// The schema is nested too deep to be looked through.
    TooDeep,
}

impl HeaderPlan {
    /// Reads the annotations of an input schema.
    pub fn compile(input_schema: &Map<String, Value>) -> Result<Self, HeaderPlanError> {
        let mut compiler = Compiler::default();
        compiler.schema(input_schema)?;
        Ok(Self { entries: compiler.entries })
    }

    /// Whether no argument travels in a header.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The names of all headers that this plan knows, in lower case.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.header.as_str())
    }

    /// The headers to send along with a call: names in lower case, values encoded.
    ///
    /// Arguments that are absent or `null` have no header. Nor have those that are not a string, whole number or
    /// boolean: they do not fit the schema, and the server will say so.
    pub fn headers(&self, arguments: &Map<String, Value>) -> Vec<(String, String)> {
        let header = |entry: &Entry| {
            let text = header_text(entry.argument(arguments)?)?;
            Some((entry.header.clone(), encode_value(&text).into_owned()))
        };
        self.entries.iter().filter_map(header).collect()
    }

    /// Checks the headers of a call against its arguments; `lookup` finds a header by its lower-case name.
    ///
    /// Whole numbers are compared as numbers, everything else as text.
    pub fn check<'h>(
        &self,
        arguments: &Map<String, Value>,
        lookup: impl Fn(&str) -> Option<&'h str>,
    ) -> Result<(), HeaderMismatch> {
        self.entries.iter().try_for_each(|entry| {
            check_entry(entry.argument(arguments), lookup(&entry.header))
                .map_err(|reason| HeaderMismatch { header: Cow::Owned(entry.header.clone()), reason })
        })
    }
}

impl Entry {
    /// The argument at the path of this entry; `null` is not an argument.
    fn argument<'a>(&self, arguments: &'a Map<String, Value>) -> Option<&'a Value> {
        let (first, rest) = self.path.split_first()?;
        let value = rest.iter().try_fold(arguments.get(first)?, |value, key| value.as_object()?.get(key))?;
        (!value.is_null()).then_some(value)
    }
}

fn check_entry(argument: Option<&Value>, header: Option<&str>) -> Result<(), MismatchReason> {
    let (argument, header) = match (argument, header) {
        (None, None) => return Ok(()),
        (None, Some(_)) => return Err(MismatchReason::Unexpected),
        (Some(_), None) => return Err(MismatchReason::Missing),
        (Some(argument), Some(header)) => (argument, header),
    };
    let header = decode_value(header).map_err(MismatchReason::Invalid)?;
    if let Some(number) = argument.as_number().and_then(whole_number) {
        if number.unsigned_abs() > MAX_SAFE_INTEGER {
            return Err(MismatchReason::OutOfRange);
        }
        let mirrored = serde_json::from_slice(header.as_bytes()).ok().as_ref().and_then(whole_number);
        return if mirrored == Some(number) { Ok(()) } else { Err(MismatchReason::Different) };
    }
    if header_text(argument).is_some_and(|text| text == header) {
        Ok(())
    } else {
        Err(MismatchReason::Different)
    }
}

/// The text of an argument in a header, not yet encoded.
fn header_text(argument: &Value) -> Option<Cow<'_, str>> {
    match argument {
        Value::String(text) => Some(text.into()),
        Value::Bool(flag) => Some(if *flag { "true" } else { "false" }.into()),
        Value::Number(number) => whole_number(number).map(|number| number.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The whole number that `number` is, also when it is written with a fraction of zero.
fn whole_number(number: &Number) -> Option<i128> {
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    whole.or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
        format!("{float:.0}").parse().ok()
    })
}

/// Walks through a schema once. Where it is, it keeps as a list of borrowed names: pointers are written for errors only,
/// because one for each place could be far larger than the schema.
#[derive(Default)]
struct Compiler<'s> {
    entries: Vec<Entry>,
    names: HashSet<String>,
    /// How many bytes the entries have.
    bytes: usize,
    /// The way from the root to here.
    way: Vec<Step<'s>>,
    /// How many steps of the way are other keywords than `properties`.
    detours: usize,
}

/// One step on the way through a schema.
#[derive(Clone, Copy)]
enum Step<'s> {
    /// The keyword `properties`.
    Properties,
    /// The name of a property.
    Property(&'s str),
    /// A keyword, or a name below one, that leads away from what is known to be an argument.
    Detour(&'s str),
    /// An item of an array.
    Item(usize),
}

impl<'s> Compiler<'s> {
    fn schema(&mut self, schema: &'s Map<String, Value>) -> Result<(), HeaderPlanError> {
        if let Some(annotation) = schema.get(ANNOTATION) {
            self.annotation(annotation, schema).map_err(|fault| self.error(fault))?;
        }
        for (keyword, value) in schema {
            match keyword.as_str() {
                // These hold examples of instances, or names, and no schemas.
                "const" | "default" | "enum" | "examples" | "dependentRequired" => {}
                "properties" => {
                    self.below(Step::Properties, |compiler| compiler.named(value, Step::Property))?;
                }
                "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                    self.below(Step::Detour(keyword), |compiler| compiler.named(value, Step::Detour))?;
                }
                _ => self.below(Step::Detour(keyword), |compiler| compiler.subschemas(value))?,
            }
        }
        Ok(())
    }

    /// Does something one step further on.
    fn below(
        &mut self,
        step: Step<'s>,
        work: impl FnOnce(&mut Self) -> Result<(), HeaderPlanError>,
    ) -> Result<(), HeaderPlanError> {
        if self.way.len() == MAX_DEPTH {
            return Err(self.error(HeaderPlanFault::TooDeep));
        }
        let detour = usize::from(matches!(step, Step::Detour(_) | Step::Item(_)));
        self.way.push(step);
        self.detours += detour;
        work(self)?;
        self.detours -= detour;
        self.way.pop();
        Ok(())
    }

    /// Visits the values of a map whose keys are names and not keywords.
    fn named(&mut self, value: &'s Value, step: fn(&'s str) -> Step<'s>) -> Result<(), HeaderPlanError> {
        for (name, schema) in value.as_object().into_iter().flatten() {
            if let Value::Object(schema) = schema {
                self.below(step(name), |compiler| compiler.schema(schema))?;
            }
        }
        Ok(())
    }

    /// Visits whatever schemas a keyword other than `properties` holds.
    fn subschemas(&mut self, value: &'s Value) -> Result<(), HeaderPlanError> {
        match value {
            Value::Object(schema) => self.schema(schema),
            Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
                self.below(Step::Item(index), |compiler| compiler.subschemas(item))
            }),
            _ => Ok(()),
        }
    }

    fn annotation(&mut self, annotation: &Value, schema: &Map<String, Value>) -> Result<(), HeaderPlanFault> {
        let path: Vec<&str> = self.way.iter().filter_map(|step| step.property()).collect();
        if self.detours > 0 || path.is_empty() {
            return Err(HeaderPlanFault::NotReachable);
        }
        let name = annotation.as_str().filter(|name| is_token(name)).ok_or(HeaderPlanFault::NotAToken)?;
        if !is_primitive(schema.get("type")) {
            return Err(HeaderPlanFault::NotPrimitive);
        }
        if self.entries.len() == MAX_PLAN_HEADERS {
            return Err(HeaderPlanFault::TooMany);
        }
        self.bytes += name.len() + path.iter().map(|name| name.len()).sum::<usize>();
        if self.bytes > MAX_PLAN_BYTES {
            return Err(HeaderPlanFault::TooLong);
        }
        let header = format!("{MCP_PARAM_PREFIX}{}", name.to_ascii_lowercase());
        if !self.names.insert(header.clone()) {
            return Err(HeaderPlanFault::Duplicate);
        }
        self.entries.push(Entry { header, path: path.into_iter().map(str::to_owned).collect() });
        Ok(())
    }

    /// What is wrong here.
    fn error(&self, fault: HeaderPlanFault) -> HeaderPlanError {
        let mut pointer = String::new();
        for step in &self.way {
            pointer.push('/');
            match step {
                Step::Properties => pointer.push_str("properties"),
                Step::Property(name) | Step::Detour(name) => {
                    let shown: String = name.chars().take(SHOWN_CHARS).collect();
                    pointer.push_str(&shown.replace('~', "~0").replace('/', "~1"));
                }
                Step::Item(index) => pointer.push_str(&index.to_string()),
            }
        }
        HeaderPlanError { pointer, fault }
    }
}

impl<'s> Step<'s> {
    fn property(self) -> Option<&'s str> {
        match self {
            Self::Property(name) => Some(name),
            Self::Properties | Self::Detour(_) | Self::Item(_) => None,
        }
    }
}

/// Whether `name` is a token as RFC 9110 has it: what the name of a header is made of.
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Whether a `type` names one primitive type; it may allow `null` as well, which counts as absent.
fn is_primitive(schema_type: Option<&Value>) -> bool {
    let is_name = |value: &Value| matches!(value.as_str(), Some("string" | "integer" | "boolean"));
    match schema_type {
        Some(Value::Array(types)) => {
            let (nulls, others): (Vec<_>, Vec<_>) = types.iter().partition(|value| *value == "null");
            matches!(others.as_slice(), [only] if is_name(only)) && nulls.len() <= 1
        }
        Some(name) => is_name(name),
        None => false,
    }
}

impl fmt::Display for HeaderPlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = match self.fault {
            HeaderPlanFault::NotAToken => "is not a string that can be part of a header name",
            HeaderPlanFault::Duplicate => "has the same name as another",
            HeaderPlanFault::NotPrimitive => "is on a property that is not a string, integer or boolean",
            HeaderPlanFault::NotReachable => "is not on a property that `properties` alone lead to",
            HeaderPlanFault::TooMany => {
                return write!(f, "more than MAX_PLAN_HEADERS ({MAX_PLAN_HEADERS}) {ANNOTATION} annotations");
            }
            HeaderPlanFault::TooLong => {
                return write!(
                    f,
                    "the names of {ANNOTATION} annotations and their properties take more than MAX_PLAN_BYTES \
                     ({MAX_PLAN_BYTES})"
                );
            }
            HeaderPlanFault::TooDeep => {
                return write!(
                    f,
                    "the schema at {:?} is nested deeper than {MAX_DEPTH} levels",
                    self.pointer
                );
            }
        };
        write!(f, "the {ANNOTATION} at {:?} {rule}", self.pointer)
    }
}

impl std::error::Error for HeaderPlanError {}
