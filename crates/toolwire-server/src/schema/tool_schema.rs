//! What a schema is used for, worked out once.
//!
//! Making the schema of a type is most of the start of a server with many tools, so it is done once per type,
//! and whatever takes or returns the same type shares the outcome. Forms are not made here: a question is asked
//! of a user who is there now, and its schema may depend on the moment.

use std::{
    any::TypeId,
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolwire_protocol::{headers::HeaderPlan, schema::Schema, wire::JsonObject};

use super::{Order, as_input_schema, as_output_schema, fields, finished, of_input, of_output};

/// The shapes of the types that handlers take and return. Only types of the program come in, so it cannot grow
/// beyond them.
static OF_TYPES: Mutex<BTreeMap<(Side, TypeId), Arc<ToolSchema>>> = Mutex::new(BTreeMap::new());

/// Which way the values of a schema go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Input,
    /// Input whose names are known.
    Arguments,
    Output,
}

/// The arguments or the structured content of a tool: the schema, and what follows from it.
#[derive(Debug)]
pub(crate) struct ToolSchema {
    side: Side,
    pub(crate) schema: JsonObject,
    /// Whether values have to be checked because the schema says more than a type.
    pub(crate) strict: bool,
    /// The names that may be used for arguments. Without them, any may.
    pub(crate) names: Option<Vec<Box<str>>>,
    /// The order in which its members are listed.
    pub(crate) order: Order,
    /// Which arguments travel in headers.
    pub(crate) header_plan: HeaderPlan,
    /// Why no tool can have it.
    pub(crate) problems: Vec<String>,
    compiled: OnceLock<Result<Schema, String>>,
}

impl ToolSchema {
    /// The shape of a type that is taken.
    pub(crate) fn input_of<T: JsonSchema + 'static>() -> Arc<Self> {
        Self::of((Side::Input, TypeId::of::<T>()), || {
            let (schema, strict) = of_input::<T>();
            Self::input(schema, strict)
        })
    }

    /// The shape of arguments that are decoded into a type, which knows their names.
    pub(crate) fn arguments_of<T: DeserializeOwned + JsonSchema + 'static>() -> Arc<Self> {
        Self::of((Side::Arguments, TypeId::of::<T>()), || {
            let (schema, strict) = of_input::<T>();
            let names = fields::names::<T>().filter(|_| is_plain(&schema));
            let names = names.into_iter().flatten().map(|name| (*name).into()).collect();
            Self { order: Order::of::<T>(), ..Self::closed(schema, strict, names) }
        })
    }

    /// The shape of arguments that are taken one by one.
    pub(crate) fn of_parameters(schema: Value, names: Vec<Box<str>>, order: Order) -> Self {
        let (schema, strict) = finished(schema);
        Self { order, ..Self::closed(schema, strict, names) }
    }

    /// The shape of arguments with these names and no others. A tool without arguments ignores what comes: some hosts
    /// send a placeholder.
    fn closed(mut schema: Value, strict: bool, names: Vec<Box<str>>) -> Self {
        if names.is_empty() {
            return Self::input(schema, strict);
        }
        if let Some(root) = schema.as_object_mut() {
            root.insert("additionalProperties".into(), false.into());
        }
        Self::input_named(schema, strict, Some(names))
    }

    /// The same, for a tool that ignores what it does not know.
    pub(crate) fn open(&self) -> Self {
        let mut schema = self.schema.clone();
        if self.names.is_some() {
            schema.remove("additionalProperties");
        }
        Self { order: self.order.clone(), ..Self::input(schema.into(), self.strict) }
    }

    /// The shape of a type that is returned.
    pub(crate) fn output_of<T: JsonSchema + 'static>() -> Arc<Self> {
        Self::of((Side::Output, TypeId::of::<T>()), || {
            let (schema, strict) = of_output::<T>();
            Self::output(schema, strict)
        })
    }

    /// The map is not locked while a shape is made: that runs the code of whoever wrote the type.
    fn of(key: (Side, TypeId), make: impl FnOnce() -> Self) -> Arc<Self> {
        let shapes = || OF_TYPES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shapes().get(&key).cloned();
        known.unwrap_or_else(|| {
            let shape = Arc::new(make());
            Arc::clone(shapes().entry(key).or_insert(shape))
        })
    }

    /// The shape of arguments.
    pub(crate) fn input(schema: Value, strict: bool) -> Self {
        Self::input_named(schema, strict, None)
    }

    fn input_named(schema: Value, strict: bool, names: Option<Vec<Box<str>>>) -> Self {
        let (schema, problem) = as_input_schema(schema);
        let mut shape = Self::new(Side::Input, schema, strict, names, problem);
        match HeaderPlan::compile(&shape.schema) {
            Ok(plan) => shape.header_plan = plan,
            Err(error) => shape.problems.push(error.to_string()),
        }
        shape
    }

    /// The shape of structured content.
    pub(crate) fn output(schema: Value, strict: bool) -> Self {
        Self::new(Side::Output, as_output_schema(schema), strict, None, None)
    }

    fn new(
        side: Side,
        schema: JsonObject,
        strict: bool,
        names: Option<Vec<Box<str>>>,
        problem: Option<String>,
    ) -> Self {
        let mut shape = Self {
            side,
            schema,
            strict,
            names,
            order: Order::default(),
            header_plan: HeaderPlan::default(),
            problems: problem.into_iter().collect(),
            compiled: OnceLock::new(),
        };
        if strict {
            shape.problems.extend(shape.check().err().map(str::to_owned));
        }
        shape
    }

    /// What checks values, or what is wrong with the schema.
    ///
    /// A schema that only repeats a type is compiled when it is first needed, which is mostly never. All others
    /// are compiled at once, so that one that is wrong, or that could only be checked in part, keeps the server from
    /// being built.
    pub(crate) fn check(&self) -> Result<&Schema, &str> {
        let compile = || {
            let which = match self.side {
                Side::Input | Side::Arguments => "input",
                Side::Output => "output",
            };
            let mut schema = self.schema.clone();
            if self.names.is_some() {
                // Names are looked at when the arguments are decoded, with the aliases that no schema can tell.
                schema.remove("additionalProperties");
            }
            let compiled = Schema::compile(&Value::Object(schema))
                .map_err(|error| format!("its {which} schema is not valid: {error}"))?;
            match compiled.skipped() {
                [] => Ok(compiled),
                skipped => Err(format!(
                    "its {which} schema has what cannot be checked, patterns too large or with look-around, or \
                     references to other documents: {}",
                    skipped.join(", ")
                )),
            }
        };
        self.compiled.get_or_init(compile).as_ref().map_err(String::as_str)
    }
}

/// Whether all there is to say about the members of an object is said by its properties.
fn is_plain(schema: &Value) -> bool {
    let Some(root) = schema.as_object() else { return false };
    let more = ["patternProperties", "unevaluatedProperties", "anyOf", "oneOf", "allOf", "$ref"];
    root.get("properties").and_then(Value::as_object).is_some_and(|properties| !properties.is_empty())
        && root.get("additionalProperties").is_none_or(|other| *other == Value::Bool(false))
        && !more.iter().any(|keyword| root.contains_key(*keyword))
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Serialize, JsonSchema)]
    struct Plain {
        text: String,
    }

    #[derive(Serialize, JsonSchema)]
    struct Other {
        number: i64,
    }

    #[test]
    fn a_type_has_one_shape_for_each_side() {
        let input = ToolSchema::input_of::<Plain>();
        assert!(Arc::ptr_eq(&input, &ToolSchema::input_of::<Plain>()));
        assert!(!Arc::ptr_eq(&input, &ToolSchema::output_of::<Plain>()));
        assert!(input.schema["properties"].get("text").is_some());
        assert!(ToolSchema::input_of::<Other>().schema["properties"].get("number").is_some());
    }

    #[test]
    fn what_only_repeats_a_type_is_compiled_when_it_is_needed() {
        let shape = ToolSchema::input(of_input::<Plain>().0, false);
        assert!(shape.compiled.get().is_none());
        assert!(shape.check().is_ok());
        assert!(shape.compiled.get().is_some());
        assert!(ToolSchema::input(of_input::<Plain>().0, true).compiled.get().is_some());
    }

    #[test]
    fn what_cannot_be_checked_is_a_problem_of_the_tool() {
        for schema in [
            serde_json::json!({"type": "object", "properties": {"a": {"pattern": "(?=x)y"}}}),
            serde_json::json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/other.json"}}}),
        ] {
            for shape in [ToolSchema::input(schema.clone(), true), ToolSchema::output(schema.clone(), true)] {
                assert!(shape.problems[0].contains("cannot be checked"), "{:?}", shape.problems);
            }
            let tool = crate::tool("t", || async {}).input_schema(schema);
            let error = crate::Server::builder("t", "1").tool(tool).build().unwrap_err();
            assert!(error.to_string().contains("cannot be checked"), "{error}");
        }
    }

    #[test]
    fn a_type_may_register_others_while_its_schema_is_made() {
        struct Nosy;
        impl JsonSchema for Nosy {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                "Nosy".into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                ToolSchema::input_of::<Plain>().schema.clone().into()
            }
        }
        assert_eq!(
            ToolSchema::input_of::<Nosy>().schema["properties"],
            ToolSchema::input_of::<Plain>().schema["properties"]
        );
    }
}
