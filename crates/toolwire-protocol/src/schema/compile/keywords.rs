//! From the keywords of one subschema to its rules.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::{Compiler, Fault, Site};
use crate::schema::{
    format::Format,
    keyword::is_schema,
    node::{ArrayRules, Bound, Constant, Contains, ObjectRules, Range, Rule, TextRules, Types},
    number, value, words,
};

impl<'d> Site<'d> {
    pub(super) fn wrong(self, keyword: &str, reason: impl Into<String>) -> Fault<'d> {
        Fault { at: self.schema, keyword: keyword.to_owned(), reason: reason.into() }
    }

    /// The keyword's value read by `read`, which returns none for a value of the wrong kind.
    fn read<T>(
        self,
        keyword: &str,
        wanted: &str,
        read: impl FnOnce(&'d Value) -> Option<T>,
    ) -> Result<Option<T>, Fault<'d>> {
        let Some(value) = self.keywords.get(keyword) else { return Ok(None) };
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => Err(self.wrong(keyword, format!("must be {wanted}, not {}", words::named(value)))),
        }
    }

    pub(super) fn text(self, keyword: &str) -> Result<Option<&'d str>, Fault<'d>> {
        self.read(keyword, "a string", Value::as_str)
    }

    pub(super) fn object(self, keyword: &str) -> Result<Option<&'d Map<String, Value>>, Fault<'d>> {
        self.read(keyword, "an object", Value::as_object)
    }

    pub(super) fn array(self, keyword: &str) -> Result<Option<&'d Vec<Value>>, Fault<'d>> {
        self.read(keyword, "an array", Value::as_array)
    }

    fn flag(self, keyword: &str) -> Result<bool, Fault<'d>> {
        Ok(self.read(keyword, "a boolean", Value::as_bool)?.unwrap_or(false))
    }

    fn number(self, keyword: &str) -> Result<Option<&'d Number>, Fault<'d>> {
        self.read(keyword, "a number", |value| match value {
            Value::Number(number) => Some(number),
            _ => None,
        })
    }

    fn count(self, keyword: &str) -> Result<Option<u64>, Fault<'d>> {
        self.read(keyword, "a whole number that is not negative", |value| match value {
            Value::Number(number) => number::as_count(number),
            _ => None,
        })
    }

    fn range(self, min: &str, max: &str) -> Result<Range, Fault<'d>> {
        Ok(Range { min: self.count(min)?, max: self.count(max)? })
    }

    /// Returns an array of strings, and how many bytes a copy of it takes.
    fn names(self, keyword: &str) -> Result<Option<(&'d Value, usize)>, Fault<'d>> {
        self.read(keyword, "an array of strings", |value| names_bytes(value).map(|bytes| (value, bytes)))
    }
}

/// Returns how many bytes a copy of an array of nothing but strings takes; none for any other value.
fn names_bytes(value: &Value) -> Option<usize> {
    value.as_array()?.iter().map(|name| name.as_str().map(|name| size_of::<String>() + name.len())).sum()
}

/// Copies the strings of an array.
fn names(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn constant(value: &Value) -> Constant {
    Constant { value: value.clone(), weight: value::weight(value) }
}

fn types(value: &Value) -> Option<Types> {
    let mut types = Types::default();
    let all_known = match value {
        Value::String(name) => types.insert(name),
        Value::Array(names) => {
            !names.is_empty() && names.iter().all(|name| name.as_str().is_some_and(|name| types.insert(name)))
        }
        _ => false,
    };
    all_known.then_some(types)
}

impl<'d> Compiler<'d> {
    /// Adds the rules of the subschema at `site`.
    pub(super) fn keywords(&mut self, site: Site<'d>) -> Result<(), Fault<'d>> {
        self.refer(site, "$ref")?;
        self.members(site, "$defs")?;
        self.members(site, "definitions")?;
        if self.hides_siblings(site.resource) && site.keywords.contains_key("$ref") {
            return Ok(());
        }
        self.refer(site, "$dynamicRef")?;
        self.assertions(site)?;
        self.string_keywords(site)?;
        self.array_keywords(site)?;
        self.object_keywords(site)?;
        self.logic(site)?;
        self.unevaluated(site)
    }

    fn assertions(&mut self, site: Site<'d>) -> Result<(), Fault<'d>> {
        if let Some(value) = site.keywords.get("type") {
            let Some(types) = types(value) else {
                let (names, found) = (words::list(Types::NAMES.into_iter()), words::named(value));
                return Err(site.wrong("type", format!("must be one or several of {names}, not {found}")));
            };
            self.add_rule(site.id, Rule::Type(types));
        }
        if let Some(value) = site.keywords.get("const") {
            self.spend(value::bytes(value), site, "const")?;
            self.add_rule(site.id, Rule::Const(constant(value)));
        }
        if let Some(values) = site.array("enum")? {
            self.spend(values.iter().map(value::bytes).sum(), site, "enum")?;
            self.add_rule(site.id, Rule::Enum(values.iter().map(constant).collect()));
        }
        let bounds = [
            ("minimum", Bound::Minimum),
            ("exclusiveMinimum", Bound::ExclusiveMinimum),
            ("maximum", Bound::Maximum),
            ("exclusiveMaximum", Bound::ExclusiveMaximum),
            ("multipleOf", Bound::MultipleOf),
        ];
        for (keyword, bound) in bounds {
            let Some(number) = site.number(keyword)? else { continue };
            if bound == Bound::MultipleOf && number::compare(number, &Number::from(0)).is_le() {
                return Err(site.wrong(keyword, "must be greater than 0"));
            }
            self.add_rule(site.id, Rule::Number(bound, number.clone()));
        }
        Ok(())
    }

    fn string_keywords(&mut self, site: Site<'d>) -> Result<(), Fault<'d>> {
        let length = site.range("minLength", "maxLength")?;
        let pattern = site.text("pattern")?.map(|source| self.pattern(source));
        let format = if self.formats { site.text("format")?.and_then(Format::of) } else { None };
        if !length.is_open() || pattern.is_some() || format.is_some() {
            self.add_rule(site.id, Rule::Text(TextRules { length, pattern, format }));
        }
        Ok(())
    }

    fn array_keywords(&mut self, site: Site<'d>) -> Result<(), Fault<'d>> {
        // Until draft-07, `items` as an array was what `prefixItems` is now.
        let old = site.keywords.get("items").is_some_and(Value::is_array);
        let (prefix, rest) = if old { ("items", "additionalItems") } else { ("prefixItems", "items") };
        let rules = ArrayRules {
            length: site.range("minItems", "maxItems")?,
            unique: site.flag("uniqueItems")?,
            prefix: self.children(site, prefix)?.unwrap_or_default(),
            rest: self.child(site, rest)?,
            contains: self.contains(site)?,
        };
        let demands = !rules.length.is_open() || rules.unique || rules.contains.is_some();
        if demands || rules.rest.is_some() || !rules.prefix.is_empty() {
            self.add_rule(site.id, Rule::Array(Box::new(rules)));
        }
        Ok(())
    }

    fn contains(&mut self, site: Site<'d>) -> Result<Option<Contains>, Fault<'d>> {
        let (min, max) = (site.count("minContains")?.unwrap_or(1), site.count("maxContains")?);
        Ok(self.child(site, "contains")?.map(|item| Contains { item, min, max }))
    }

    fn object_keywords(&mut self, site: Site<'d>) -> Result<(), Fault<'d>> {
        let mut properties = BTreeMap::new();
        properties.extend(self.members(site, "properties")?.into_iter().map(|(name, id)| (name.clone(), id)));
        let mut required = Vec::new();
        if let Some((value, bytes)) = site.names("required")? {
            self.spend(bytes, site, "required")?;
            required = names(value);
        }
        let mut rules = ObjectRules {
            size: site.range("minProperties", "maxProperties")?,
            required,
            properties,
            patterns: Vec::new(),
            additional: self.child(site, "additionalProperties")?,
            names: self.child(site, "propertyNames")?,
            dependent_required: Vec::new(),
        };
        for (source, id) in self.members(site, "patternProperties")? {
            rules.patterns.push((self.pattern(source), id));
        }
        let mut dependent_schemas = Vec::new();
        for (name, id) in self.members(site, "dependentSchemas")? {
            dependent_schemas.push((name.clone(), id));
        }
        for keyword in ["dependentRequired", "dependencies"] {
            for (name, value) in site.object(keyword)?.into_iter().flatten() {
                self.spend(size_of::<(String, Vec<String>)>() + name.len(), site, keyword)?;
                if let Some(bytes) = names_bytes(value) {
                    self.spend(bytes, site, keyword)?;
                    rules.dependent_required.push((name.clone(), names(value)));
                } else if keyword == "dependencies" && is_schema(value) {
                    // Until draft-07, one keyword held both kinds of dependency.
                    let id = self.subschema(value, site.resource)?;
                    dependent_schemas.push((name.clone(), id));
                } else {
                    return Err(
                        site.wrong(keyword, format!("{} must be an array of strings", words::quoted(name)))
                    );
                }
            }
        }
        if demands(&rules) {
            self.add_rule(site.id, Rule::Object(Box::new(rules)));
        }
        if !dependent_schemas.is_empty() {
            self.add_rule(site.id, Rule::DependentSchemas(dependent_schemas));
        }
        Ok(())
    }

    fn logic(&mut self, site: Site<'d>) -> Result<(), Fault<'d>> {
        if let Some(branches) = self.children(site, "allOf")? {
            self.add_rule(site.id, Rule::AllOf(branches));
        }
        if let Some(branches) = self.children(site, "anyOf")? {
            self.add_rule(site.id, Rule::AnyOf(branches));
        }
        if let Some(branches) = self.children(site, "oneOf")? {
            self.add_rule(site.id, Rule::OneOf(branches));
        }
        if let Some(child) = self.child(site, "not")? {
            self.add_rule(site.id, Rule::Not(child));
        }
        let (then, otherwise) = (self.child(site, "then")?, self.child(site, "else")?);
        if let Some(test) = self.child(site, "if")? {
            self.add_rule(site.id, Rule::If { test, then, otherwise });
        }
        Ok(())
    }

    fn unevaluated(&mut self, site: Site<'d>) -> Result<(), Fault<'d>> {
        if let Some(child) = self.child(site, "unevaluatedItems")? {
            self.add_rule(site.id, Rule::UnevaluatedItems(child));
            self.tracks = true;
        }
        if let Some(child) = self.child(site, "unevaluatedProperties")? {
            self.add_rule(site.id, Rule::UnevaluatedProperties(child));
            self.tracks = true;
        }
        Ok(())
    }
}

fn demands(rules: &ObjectRules) -> bool {
    !rules.size.is_open()
        || !rules.required.is_empty()
        || !rules.properties.is_empty()
        || !rules.patterns.is_empty()
        || rules.additional.is_some()
        || rules.names.is_some()
        || !rules.dependent_required.is_empty()
}
