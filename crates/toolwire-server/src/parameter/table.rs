//! The arguments of a function, one by one: their names and what may be sent for each.

use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::missing::missing;
use crate::schema::{self, Order, takes_null};

/// A parameter as its function names it.
#[derive(Debug)]
pub struct Named {
    /// Which of the function's parameters it is.
    pub(super) position: usize,
    pub(super) name: &'static str,
    pub(super) description: Option<&'static str>,
    /// Whether there is a value for it when the caller sends none.
    pub(super) has_default: bool,
    /// How that is shown, if it can be.
    pub(super) shown: Option<Value>,
}

impl Named {
    /// The parameter at this position, which is called this on the wire.
    pub fn new(position: usize, name: &'static str) -> Self {
        Self { position, name, description: None, has_default: false, shown: None }
    }

    /// What it is, for the model.
    #[must_use]
    pub fn description(mut self, text: &'static str) -> Self {
        self.description = Some(text);
        self
    }

    /// It has a default, which is shown in the schema if it can be.
    #[must_use]
    pub fn default(mut self, shown: Option<Value>) -> Self {
        self.has_default = true;
        self.shown = shown;
        self
    }
}

/// The arguments that a function takes one by one.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(super) rows: Vec<Row>,
}

/// One argument.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// What it may be called.
    pub(super) names: Vec<Box<str>>,
    /// Whether `null` means that it was not given.
    pub(super) null_is_absent: bool,
    pub(super) required: bool,
    /// Which of the function's parameters it is.
    pub(super) position: usize,
    /// Whether it is decoded from all the arguments, because it brings attributes of its own. Then it says by itself
    /// what is missing or duplicated.
    pub(super) whole: bool,
}

impl Table {
    /// The names that the caller may use.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().flat_map(|row| row.names.iter().map(|name| &**name))
    }

    /// The row of a name.
    pub(super) fn find(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.names.iter().any(|known| **known == *name))
    }
}

/// A table that is being filled, and the schema that goes with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableBuilder {
    rows: Vec<Row>,
    properties: Map<String, Value>,
    required: Vec<Value>,
    order: Order,
    /// One for all, so that definitions of types are shared.
    generator: Option<SchemaGenerator>,
}

impl TableBuilder {
    /// Adds an argument of this type.
    pub(super) fn push<T: DeserializeOwned + JsonSchema>(&mut self, named: Named) {
        let generator = self.generator.get_or_insert_with(schema::input_generator);
        let mut schema = generator.subschema_for::<T>().to_value();
        let required = !named.has_default && missing::<T>().is_none();
        if !required {
            schema::without_null(&mut schema);
        }
        let null_is_absent = !required && !takes_null(&schema);
        if let Some(text) = named.description {
            put(&mut schema, "description", text.into());
        }
        if let Some(shown) = named.shown.filter(|shown| !shown.is_null()) {
            put(&mut schema, "default", shown);
        }
        if required {
            self.required.push(named.name.into());
        }
        self.properties.insert(named.name.to_owned(), schema);
        self.order.names.push(named.name);
        self.order.inside.insert(named.name, Order::of::<T>());
        self.rows.push(Row {
            names: vec![named.name.into()],
            null_is_absent,
            required,
            position: named.position,
            whole: false,
        });
    }

    /// Adds an argument that brings attributes of its own: the only field of the struct `T`.
    pub(crate) fn push_field<T: DeserializeOwned + JsonSchema>(
        &mut self,
        position: usize,
        aliases: &[&'static str],
    ) {
        let order = Order::of::<T>();
        self.order.names.extend(order.names);
        self.order.inside.extend(order.inside);
        let generator = self.generator.get_or_insert_with(schema::input_generator);
        let mut schema = T::json_schema(generator).to_value();
        schema::without_optional_nulls(&mut schema);
        let mut names: Vec<Box<str>> = aliases.iter().map(|name| (*name).into()).collect();
        let mut required = Vec::new();
        if let Some(object) = schema.as_object_mut() {
            if let Some(Value::Array(names)) = object.remove("required") {
                required = names;
            }
            if let Some(Value::Object(properties)) = object.remove("properties") {
                names.extend(properties.keys().map(|name| name.as_str().into()));
                self.properties.extend(properties);
            }
        }
        self.required.extend(required);
        self.rows.push(Row { names, null_is_absent: false, required: false, position, whole: true });
    }

    /// The table, and the schema of all arguments together.
    pub(crate) fn finish(&mut self) -> (Table, Option<(Value, Order)>) {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return (Table::default(), None);
        }
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), std::mem::take(&mut self.properties).into());
        if !self.required.is_empty() {
            schema.insert("required".into(), std::mem::take(&mut self.required).into());
        }
        if let Some(mut generator) = self.generator.take() {
            let mut definitions = Value::Object(generator.take_definitions(true));
            schema::without_optional_nulls_in(&mut definitions);
            if definitions.as_object().is_some_and(|definitions| !definitions.is_empty()) {
                schema.insert("$defs".into(), definitions);
            }
        }
        (Table { rows }, Some((schema.into(), std::mem::take(&mut self.order))))
    }
}

/// Puts a member into a schema. `true`, which accepts anything, becomes an object for it.
fn put(schema: &mut Value, key: &str, value: Value) {
    if schema.as_bool() == Some(true) {
        *schema = Map::new().into();
    }
    if let Some(object) = schema.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}
