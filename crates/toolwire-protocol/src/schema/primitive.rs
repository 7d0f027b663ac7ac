//! The small part of JSON Schema that a form can ask for: flat objects of primitive fields.
//!
//! What a form cannot express, such as `pattern`, is left out of what is asked for. The answer is checked against it all
//! the same: that is what [`elicitation_check`] is for.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value, json};

use super::{
    SchemaError,
    format::Format,
    inline_local_refs, is_object_root,
    keyword::below,
    number,
    words::{named, quoted, shortened},
};

/// Keywords at the root that make the object more than a flat list of fields.
const NOT_FLAT: [&str; 8] =
    ["$ref", "allOf", "anyOf", "if", "not", "oneOf", "patternProperties", "dependentSchemas"];

/// How often one wrapper may be inside another around a field.
const MAX_WRAPPERS: usize = 8;

/// Reduces the schema of a flat struct to what `elicitation/create` may ask for.
///
/// Optional fields become fields that are not required; enums are kept with their titles. A nested object
/// or a list of anything but choices is an error that names the field.
///
/// ```
/// use serde_json::json;
/// use toolwire_protocol::schema::elicitation_schema;
///
/// let derived = json!({
///     "type": "object",
///     "properties": { "age": { "type": ["integer", "null"], "format": "uint8", "minimum": 0 } },
///     "required": ["age"],
/// });
/// let asked = json!({
///     "type": "object",
///     "properties": { "age": { "type": "integer", "minimum": 0 } },
/// });
/// assert_eq!(elicitation_schema(&derived)?, asked);
/// # Ok::<(), toolwire_protocol::schema::SchemaError>(())
/// ```
pub fn elicitation_schema(schema: &Value) -> Result<Value, SchemaError> {
    form(schema).map(|form| form.asked)
}

/// What an answer to a form has to fit: everything that the schema of the struct demands, also what a form cannot
/// express. Optional fields are not required, as in [`elicitation_schema`].
///
/// ```
/// use serde_json::json;
/// use toolwire_protocol::schema::{Schema, elicitation_check, elicitation_schema};
///
/// let derived = json!({
///     "type": "object",
///     "properties": { "code": { "type": "string", "pattern": "^[a-z]+$" } },
/// });
/// assert!(elicitation_schema(&derived)?["properties"]["code"].get("pattern").is_none());
/// assert!(!Schema::compile_form(&elicitation_check(&derived)?)?.is_valid(&json!({ "code": "1" })));
/// # Ok::<(), toolwire_protocol::schema::SchemaError>(())
/// ```
pub fn elicitation_check(schema: &Value) -> Result<Value, SchemaError> {
    form(schema).map(|form| form.check)
}

/// What is asked for, and what is checked.
struct Form {
    asked: Value,
    check: Value,
}

fn form(schema: &Value) -> Result<Form, SchemaError> {
    let inlined = inline_local_refs(schema.clone())?;
    let Some(root) = inlined.as_object().filter(|root| is_object_root(root)) else {
        return Err(SchemaError::new("", "an elicitation asks for an object, so the type must be a struct"));
    };
    if let Some(keyword) = NOT_FLAT.iter().find(|keyword| root.contains_key(**keyword)) {
        let reason =
            format!("an elicitation asks for a flat object, which {} does not describe", quoted(keyword));
        return Err(SchemaError::new(below("", keyword), reason));
    }
    if root.get("additionalProperties").is_some_and(Value::is_object) {
        let reason = "an elicitation asks for named fields, not for a map";
        return Err(SchemaError::new("/additionalProperties", reason));
    }
    let no_fields = Map::new();
    let fields = root.get("properties").and_then(Value::as_object).unwrap_or(&no_fields);
    let (mut properties, mut checked, mut optional) = (Map::new(), Map::new(), BTreeSet::new());
    for (name, schema) in fields {
        let field = Field::new(name, schema)?;
        if field.optional {
            optional.insert(name.as_str());
        }
        properties.insert(name.clone(), Value::Object(field.primitive()?));
        checked.insert(name.clone(), Value::Object(field.keywords));
    }
    let demanded = root.get("required").and_then(Value::as_array).into_iter().flatten();
    let answered = |name: &&str| properties.contains_key(*name) && !optional.contains(name);
    let required: Vec<&str> = demanded.filter_map(Value::as_str).filter(answered).collect();
    let required = (!required.is_empty()).then(|| json!(required));
    let mut check = root.clone();
    check.remove("required");
    check.insert("properties".to_owned(), Value::Object(checked));
    let mut asked = Map::from_iter([("type".to_owned(), json!("object"))]);
    asked.insert("properties".to_owned(), Value::Object(properties));
    for members in [&mut asked, &mut check] {
        members.extend(required.clone().map(|required| ("required".to_owned(), required)));
    }
    Ok(Form { asked: Value::Object(asked), check: Value::Object(check) })
}

/// Inserts the defaults of `requested`, an elicitation's schema, for the properties `content` does not have.
pub fn fill_defaults(requested: &Value, content: &mut Map<String, Value>) {
    let properties = requested.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        if let Some(default) = schema.get("default")
            && !content.contains_key(name)
        {
            content.insert(name.clone(), default.clone());
        }
    }
}

/// One choice of an enum and the title to show for it.
struct Choice {
    value: String,
    title: Option<String>,
}

/// One field without the wrappers around its schema.
struct Field<'n> {
    name: &'n str,
    keywords: Map<String, Value>,
    optional: bool,
}

impl<'n> Field<'n> {
    fn new(name: &'n str, schema: &Value) -> Result<Self, SchemaError> {
        let keywords = schema.as_object().cloned().unwrap_or_default();
        let mut field = Self { name, keywords, optional: false };
        for _ in 0..MAX_WRAPPERS {
            if !field.unwrap_once() {
                return Ok(field);
            }
        }
        Err(field.wrong("is wrapped too often"))
    }

    fn wrong(&self, reason: &str) -> SchemaError {
        let allowed = "an elicitation has only strings, numbers, booleans, enums and lists of enum values";
        let reason = format!("the field {} {reason}; {allowed}", quoted(self.name));
        SchemaError::new(below("/properties", &shortened(self.name)), reason)
    }

    /// Takes off one way of saying "or null", or an `allOf` around a single schema.
    fn unwrap_once(&mut self) -> bool {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let Some(Value::Array(list)) = self.keywords.get(keyword) else { continue };
            let rest: Vec<&Map<String, Value>> =
                list.iter().filter(|it| !is_null(it)).filter_map(Value::as_object).collect();
            let with_null = keyword != "allOf" && rest.len() < list.len();
            let unwrapped = match rest.as_slice() {
                [only] if list.len() == 1 || with_null => (*only).clone(),
                [_, ..] if with_null => {
                    let choices: Vec<Value> = rest.into_iter().cloned().map(Value::Object).collect();
                    Map::from_iter([(keyword.to_owned(), Value::Array(choices))])
                }
                _ => continue,
            };
            self.optional |= with_null;
            self.keywords.remove(keyword);
            for (key, value) in unwrapped {
                // What stands next to the wrapper is about this field, so it wins.
                self.keywords.entry(key).or_insert(value);
            }
            return true;
        }
        self.drop_null_type()
    }

    fn drop_null_type(&mut self) -> bool {
        let mut changed = false;
        if let Some(Value::Array(types)) = self.keywords.get_mut("type") {
            let before = types.len();
            types.retain(|kind| kind != "null");
            changed = types.len() < before;
            if let [only] = types.as_slice() {
                let only = only.clone();
                self.keywords.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(values)) = self.keywords.get_mut("enum") {
            let before = values.len();
            values.retain(|value| !value.is_null());
            changed |= values.len() < before;
        }
        self.optional |= changed;
        changed
    }

    /// The field in the words of the protocol.
    fn primitive(&self) -> Result<Map<String, Value>, SchemaError> {
        let mut out = Map::new();
        if let Some(choices) = self.choices(&self.keywords)? {
            out.insert("type".to_owned(), json!("string"));
            out.extend(select(&choices, "oneOf"));
            self.describe(&mut out, |it| is_choice(&choices, it))?;
            return Ok(out);
        }
        let kind = self.keywords.get("type").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "string" | "integer" | "number" | "boolean" => {
                out.insert("type".to_owned(), json!(kind));
                self.limits(kind, &mut out);
                self.describe(&mut out, |it| is_of(kind, it))?;
            }
            "array" => self.list(&mut out)?,
            "object" => return Err(self.wrong("is an object")),
            _ => return Err(self.wrong("has no single primitive type")),
        }
        Ok(out)
    }

    fn limits(&self, kind: &str, out: &mut Map<String, Value>) {
        match kind {
            "string" => {
                self.keep(&["minLength", "maxLength"], Value::is_u64, out);
                let known = |format: &Value| format.as_str().and_then(Format::of).is_some();
                self.keep(&["format"], known, out);
            }
            "integer" | "number" => {
                self.keep(&["minimum", "maximum"], Value::is_number, out);
                // A form knows no exclusive limits, but between integers they are not needed.
                for (exclusive, inclusive, offset) in
                    [("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)]
                {
                    let limit = self.keywords.get(exclusive).and_then(Value::as_i64);
                    let limit =
                        limit.and_then(|limit| limit.checked_add(offset)).filter(|_| kind == "integer");
                    if let Some(limit) = limit {
                        out.entry(inclusive).or_insert_with(|| json!(limit));
                    }
                }
            }
            _ => {}
        }
    }

    fn list(&self, out: &mut Map<String, Value>) -> Result<(), SchemaError> {
        let items = self.keywords.get("items").unwrap_or(&Value::Null);
        let item = Field::new(self.name, items)?;
        let Some(choices) = self.choices(&item.keywords)?.filter(|_| !item.optional) else {
            return Err(self.wrong("is a list of something else than enum values"));
        };
        let mut items = select(&choices, "anyOf");
        if items.contains_key("enum") {
            items.insert("type".to_owned(), json!("string"));
        }
        out.insert("type".to_owned(), json!("array"));
        out.insert("items".to_owned(), Value::Object(items));
        self.keep(&["minItems", "maxItems"], Value::is_u64, out);
        // A set, because both lists may be long.
        let known: BTreeSet<&str> = choices.iter().map(|choice| choice.value.as_str()).collect();
        let is_known = |it: &Value| it.as_str().is_some_and(|it| known.contains(it));
        let are_choices = |it: &Value| it.as_array().is_some_and(|it| it.iter().all(is_known));
        self.describe(out, are_choices)
    }

    /// Copies what is said about the field; a default must be a possible answer.
    fn describe(
        &self,
        out: &mut Map<String, Value>,
        is_answer: impl Fn(&Value) -> bool,
    ) -> Result<(), SchemaError> {
        self.keep(&["title", "description"], Value::is_string, out);
        match self.keywords.get("default") {
            // The default of an optional field is not to answer it.
            None | Some(Value::Null) => Ok(()),
            Some(default) if is_answer(default) => {
                out.insert("default".to_owned(), default.clone());
                Ok(())
            }
            Some(other) => Err(self.wrong(&format!("cannot have the default {}", named(other)))),
        }
    }

    fn keep(&self, keywords: &[&str], wanted: impl Fn(&Value) -> bool, out: &mut Map<String, Value>) {
        for keyword in keywords {
            if let Some(value) = self.keywords.get(*keyword).filter(|value| wanted(value)) {
                out.insert((*keyword).to_owned(), value.clone());
            }
        }
    }

    /// The choices, when the schema is an enum in any of its spellings.
    fn choices(&self, keywords: &Map<String, Value>) -> Result<Option<Vec<Choice>>, SchemaError> {
        let branches =
            ["oneOf", "anyOf"].into_iter().find_map(|key| keywords.get(key).and_then(Value::as_array));
        let mut choices = Vec::new();
        if let Some(branches) = branches {
            for branch in branches {
                match branch.as_object().map(|branch| self.choices_here(branch)).transpose()?.flatten() {
                    Some(more) => choices.extend(more),
                    None => return Err(self.wrong("is one of several types")),
                }
            }
        } else if let Some(here) = self.choices_here(keywords)? {
            choices = here;
        } else {
            return Ok(None);
        }
        if choices.is_empty() { Err(self.wrong("is an enum without values")) } else { Ok(Some(choices)) }
    }

    fn choices_here(&self, keywords: &Map<String, Value>) -> Result<Option<Vec<Choice>>, SchemaError> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        if let Some(value) = keywords.get("const") {
            let Some(value) = text(Some(value)) else {
                return Err(self.wrong("has a choice that is not a string"));
            };
            // schemars writes the doc comment of a variant as its description.
            let title = text(keywords.get("title")).or_else(|| text(keywords.get("description")));
            return Ok(Some(vec![Choice { value, title }]));
        }
        let Some(Value::Array(values)) = keywords.get("enum") else { return Ok(None) };
        let titles = keywords.get("enumNames");
        let choices = values.iter().enumerate().map(|(index, value)| {
            let value = text(Some(value)).ok_or_else(|| self.wrong("has a choice that is not a string"))?;
            Ok(Choice { value, title: text(titles.and_then(|titles| titles.get(index))) })
        });
        choices.collect::<Result<_, _>>().map(Some)
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "null") || schema.get("const").is_some_and(Value::is_null)
}

fn is_of(kind: &str, value: &Value) -> bool {
    let is_whole = |number: &Number| number::is_integer(number);
    match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => matches!(value, Value::Number(number) if is_whole(number)),
        _ => value.is_number(),
    }
}

fn is_choice(choices: &[Choice], value: &Value) -> bool {
    choices.iter().any(|choice| value == choice.value.as_str())
}

/// The choices as `enum`, or below `titled` when at least one has a title.
fn select(choices: &[Choice], titled: &str) -> Map<String, Value> {
    let with_titles = choices.iter().any(|choice| choice.title.is_some());
    let list: Vec<Value> = choices
        .iter()
        .map(|Choice { value, title }| {
            let title = title.as_ref().unwrap_or(value);
            if with_titles { json!({ "const": value, "title": title }) } else { json!(value) }
        })
        .collect();
    Map::from_iter([(if with_titles { titled } else { "enum" }.to_owned(), Value::Array(list))])
}
