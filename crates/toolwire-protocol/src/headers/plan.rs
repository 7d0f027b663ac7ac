use std::{borrow::Cow, collections::HashSet, fmt};

use serde_json::{Map, Number, Value};

use super::{HeaderMismatch, MCP_PARAM_PREFIX, MismatchReason, decode_value, encode_value};

/// The annotation in a schema that asks for a header.
const ANNOTATION: &str = "x-mcp-header";
/// The largest whole number that survives in every JSON implementation: 2^53 - 1.
const MAX_SAFE_INTEGER: u128 = (1 << 53) - 1;

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
}

impl HeaderPlan {
    /// Reads the annotations of an input schema.
    pub fn compile(input_schema: &Map<String, Value>) -> Result<Self, HeaderPlanError> {
        let mut compiler = Compiler::default();
        // Nearly no schema has annotations, and keeping track of the place takes most of the time.
        if input_schema.iter().any(|(name, value)| name == ANNOTATION || mentions_annotation(value)) {
            compiler.schema(input_schema, &Place::root())?;
        }
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
    /// Arguments that are absent or `null` have no header. Nor have those that are no string, whole number or
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
    /// The argument at the path of this entry; `null` is no argument.
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

#[derive(Default)]
struct Compiler {
    entries: Vec<Entry>,
    names: HashSet<String>,
}

/// Where in the schema the compiler is.
struct Place {
    pointer: String,
    /// The property names that lead here, or `None` once anything but `properties` was passed.
    path: Option<Vec<String>>,
}

impl Compiler {
    fn schema(&mut self, schema: &Map<String, Value>, place: &Place) -> Result<(), HeaderPlanError> {
        if let Some(annotation) = schema.get(ANNOTATION) {
            self.annotation(annotation, schema, place)
                .map_err(|fault| HeaderPlanError { pointer: place.pointer.clone(), fault })?;
        }
        for (keyword, value) in schema {
            match keyword.as_str() {
                // These hold examples of instances, or names, and no schemas.
                "const" | "default" | "enum" | "examples" | "dependentRequired" => {}
                "properties" => self.named_schemas(value, &place.properties())?,
                "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                    self.named_schemas(value, &place.keyword(keyword))?;
                }
                _ => self.subschemas(value, &place.keyword(keyword))?,
            }
        }
        Ok(())
    }

    /// Visits the values of a map whose keys are names and not keywords.
    fn named_schemas(&mut self, value: &Value, place: &Place) -> Result<(), HeaderPlanError> {
        value.as_object().into_iter().flatten().try_for_each(|(name, schema)| match schema {
            Value::Object(schema) => self.schema(schema, &place.name(name)),
            _ => Ok(()),
        })
    }

    /// Visits whatever schemas a keyword other than `properties` holds.
    fn subschemas(&mut self, value: &Value, place: &Place) -> Result<(), HeaderPlanError> {
        match value {
            Value::Object(schema) => self.schema(schema, place),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .try_for_each(|(index, item)| self.subschemas(item, &place.keyword(&index.to_string()))),
            _ => Ok(()),
        }
    }

    fn annotation(
        &mut self,
        annotation: &Value,
        schema: &Map<String, Value>,
        place: &Place,
    ) -> Result<(), HeaderPlanFault> {
        let path =
            place.path.as_ref().filter(|path| !path.is_empty()).ok_or(HeaderPlanFault::NotReachable)?;
        let name = annotation.as_str().filter(|name| is_token(name)).ok_or(HeaderPlanFault::NotAToken)?;
        if !is_primitive(schema.get("type")) {
            return Err(HeaderPlanFault::NotPrimitive);
        }
        let header = format!("{MCP_PARAM_PREFIX}{}", name.to_ascii_lowercase());
        if !self.names.insert(header.clone()) {
            return Err(HeaderPlanFault::Duplicate);
        }
        self.entries.push(Entry { header, path: path.clone() });
        Ok(())
    }
}

impl Place {
    fn root() -> Self {
        Self { pointer: String::new(), path: Some(Vec::new()) }
    }

    /// The place under a keyword that leads away from what is known to be an argument.
    fn keyword(&self, keyword: &str) -> Self {
        Self { pointer: self.point_to(keyword), path: None }
    }

    fn properties(&self) -> Self {
        Self { pointer: self.point_to("properties"), path: self.path.clone() }
    }

    fn name(&self, name: &str) -> Self {
        let path = self.path.iter().flatten().cloned().chain([name.to_owned()]).collect();
        Self { pointer: self.point_to(name), path: self.path.is_some().then_some(path) }
    }

    fn point_to(&self, key: &str) -> String {
        format!("{}/{}", self.pointer, key.replace('~', "~0").replace('/', "~1"))
    }
}

/// Whether the name of the annotation stands anywhere in a schema, as an annotation or not.
fn mentions_annotation(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.iter().any(|(name, value)| name == ANNOTATION || mentions_annotation(value))
        }
        Value::Array(items) => items.iter().any(mentions_annotation),
        _ => false,
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
        };
        write!(f, "the {ANNOTATION} at {:?} {rule}", self.pointer)
    }
}

impl std::error::Error for HeaderPlanError {}
