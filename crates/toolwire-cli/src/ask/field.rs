//! One field: what it wants, how it is asked for, and whether an answer will do.

use std::{collections::HashSet, sync::Arc};

use inquire::{InquireError, MultiSelect, Select, Text, list_option::ListOption, validator::Validation};
use serde_json::{Value, json};
use toolwire::{
    protocol::schema::elicitation_schema,
    wire::{NumberKind, PrimitiveSchemaDefinition, RequestedSchema, StringFormat},
};

use super::format;
use crate::{
    arguments::{self, coerce, number},
    schema,
    terminal::{printable, printable_line},
};

/// A field and everything that is known about it.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(super) name: String,
    label: String,
    help: String,
    required: bool,
    default: Option<Value>,
    kind: Arc<Kind>,
}

#[derive(Debug)]
enum Kind {
    Text {
        least: u64,
        most: u64,
        format: Option<StringFormat>,
    },
    Number {
        whole: bool,
        least: Option<f64>,
        most: Option<f64>,
    },
    Boolean,
    One(Vec<Choice>),
    Many {
        choices: Vec<Choice>,
        least: u64,
        most: u64,
    },
    /// Something that no form has: the text becomes what the schema wants.
    Free {
        root: Value,
        place: Value,
    },
}

#[derive(Clone, Debug)]
struct Choice {
    value: String,
    label: String,
}

impl Choice {
    fn new(value: &str, title: Option<&str>) -> Self {
        let label = match title {
            Some(title) if title != value => format!("{} ({})", printable_line(title), printable_line(value)),
            _ => printable_line(value),
        };
        Self { value: value.to_owned(), label }
    }
}

impl Field {
    /// A field of a form.
    pub(super) fn new(name: &str, definition: &PrimitiveSchemaDefinition, required: bool) -> Self {
        use PrimitiveSchemaDefinition as Definition;
        let plain = |values: &[String]| values.iter().map(|value| Choice::new(value, None)).collect();
        let titled = |options: &[toolwire::wire::EnumOption]| {
            options.iter().map(|option| Choice::new(&option.value, Some(&option.title))).collect()
        };
        let kind = match definition {
            Definition::String(text) => Kind::Text {
                least: text.min_length.unwrap_or(0),
                most: text.max_length.unwrap_or(u64::MAX),
                format: text.format.clone(),
            },
            Definition::Number(number) => Kind::Number {
                whole: number.kind == NumberKind::Integer,
                least: number.minimum.map(toolwire::wire::Number::as_f64),
                most: number.maximum.map(toolwire::wire::Number::as_f64),
            },
            Definition::UntitledSingleSelect(one) => Kind::One(plain(&one.values)),
            Definition::TitledSingleSelect(one) => Kind::One(titled(&one.one_of)),
            Definition::LegacyTitled(one) => {
                let names = one.enum_names.as_deref().unwrap_or_default();
                let choice = |(index, value): (usize, &String)| {
                    Choice::new(value, names.get(index).map(String::as_str))
                };
                Kind::One(one.values.iter().enumerate().map(choice).collect())
            }
            Definition::UntitledMultiSelect(many) => Kind::Many {
                choices: plain(&many.items.values),
                least: many.min_items.unwrap_or(0),
                most: many.max_items.unwrap_or(u64::MAX),
            },
            Definition::TitledMultiSelect(many) => Kind::Many {
                choices: titled(&many.items.any_of),
                least: many.min_items.unwrap_or(0),
                most: many.max_items.unwrap_or(u64::MAX),
            },
            _ => Kind::Boolean,
        };
        // Every kind of field has these under the same names.
        let said = serde_json::to_value(definition).unwrap_or_default();
        Self::described(name, &said, required, kind)
    }

    /// An argument of a tool, which may be more than a form can ask for.
    pub(crate) fn of_argument(name: &str, root: &Value) -> Self {
        let place = schema::property(root, root, name).cloned().unwrap_or(Value::Bool(true));
        let mut alone = json!({ "type": "object", "properties": { name: place }, "required": [name] });
        for keyword in ["$defs", "definitions"] {
            if let Some(definitions) = root.get(keyword) {
                alone[keyword] = definitions.clone();
            }
        }
        let form = elicitation_schema(&alone).ok();
        let form: Option<RequestedSchema> = form.and_then(|form| serde_json::from_value(form).ok());
        if let Some(definition) = form.as_ref().and_then(|form| form.properties.get(name)) {
            return Self::new(name, definition, true);
        }
        let said = schema::resolve(root, &place).clone();
        let kind = Kind::Free { root: root.clone(), place };
        let mut field = Self::described(name, &said, true, kind);
        field.label = format!("{} ({})", field.label, printable(&schema::short(root, &said)));
        field
    }

    /// An argument of a prompt.
    pub(crate) fn text(name: &str, title: Option<&str>, description: Option<&str>) -> Self {
        let said = json!({ "title": title, "description": description });
        Self::described(name, &said, true, Kind::Text { least: 0, most: u64::MAX, format: None })
    }

    fn described(name: &str, said: &Value, required: bool, kind: Kind) -> Self {
        let text = |key: &str| said.get(key).and_then(Value::as_str).map(printable_line);
        let label = text("title").unwrap_or_else(|| printable_line(name));
        let help = text("description").unwrap_or_default();
        let default = said.get("default").filter(|default| !default.is_null()).cloned();
        Self { name: name.to_owned(), label, help, required, default, kind: Arc::new(kind) }
    }

    /// Asks until the answer will do; nothing when the field is left out.
    pub(super) fn ask(&self) -> Result<Option<Value>, InquireError> {
        match &*self.kind {
            Kind::Text { .. } | Kind::Number { .. } | Kind::Free { .. } => self.ask_text(),
            Kind::Boolean => {
                // What is chosen without looking should do the least.
                let choices = [("false", "no"), ("true", "yes")]
                    .map(|(value, label)| Choice { value: value.to_owned(), label: label.to_owned() });
                let answer = self.ask_one(
                    &choices,
                    self.default.as_ref().map(|yes| if *yes == Value::Bool(true) { "true" } else { "false" }),
                )?;
                Ok(answer.map(|answer| Value::Bool(answer == "true")))
            }
            Kind::One(choices) => {
                let default = self.default.as_ref().and_then(Value::as_str);
                Ok(self.ask_one(choices, default)?.map(Value::from))
            }
            Kind::Many { choices, least, most } => self.ask_many(choices, *least, *most),
        }
    }

    fn ask_text(&self) -> Result<Option<Value>, InquireError> {
        let field = self.clone();
        let default = self.default.as_ref().map(|default| match default {
            Value::String(text) => printable(text),
            other => other.to_string(),
        });
        let help =
            self.help_with(if self.required || default.is_some() { "" } else { "Enter leaves it out" });
        let mut prompt = Text::new(&self.label).with_validator(move |text: &str| {
            Ok(match field.read(text) {
                Ok(_) => Validation::Valid,
                Err(why) => Validation::Invalid(why.into()),
            })
        });
        if let Some(default) = &default {
            prompt = prompt.with_default(default);
        }
        if !help.is_empty() {
            prompt = prompt.with_help_message(&help);
        }
        Ok(self.read(&prompt.prompt()?).ok().flatten())
    }

    fn ask_one(&self, choices: &[Choice], default: Option<&str>) -> Result<Option<String>, InquireError> {
        let mut labels: Vec<&str> = choices.iter().map(|choice| choice.label.as_str()).collect();
        if !self.required && default.is_none() {
            labels.push("(leave it out)");
        }
        let start =
            choices.iter().position(|choice| Some(choice.value.as_str()) == default).unwrap_or_default();
        let help = self.help_with("↑↓ moves, Enter chooses");
        let prompt = Select::new(&self.label, labels).with_starting_cursor(start).with_help_message(&help);
        let chosen = prompt.raw_prompt()?.index;
        Ok(choices.get(chosen).map(|choice| choice.value.clone()))
    }

    fn ask_many(&self, choices: &[Choice], least: u64, most: u64) -> Result<Option<Value>, InquireError> {
        let labels: Vec<&str> = choices.iter().map(|choice| choice.label.as_str()).collect();
        let defaults = self.default.as_ref().and_then(Value::as_array).into_iter().flatten();
        let defaults: HashSet<&str> = defaults.filter_map(Value::as_str).collect();
        let chosen = |choice: &Choice| defaults.contains(choice.value.as_str());
        let defaults: Vec<usize> =
            choices.iter().enumerate().filter(|(_, choice)| chosen(choice)).map(|(index, _)| index).collect();
        let help = self.help_with("↑↓ moves, Space marks, Enter is done");
        let prompt = MultiSelect::new(&self.label, labels)
            .with_default(&defaults)
            .with_help_message(&help)
            .with_validator(move |marked: &[ListOption<&&str>]| {
                let count = u64::try_from(marked.len()).unwrap_or(u64::MAX);
                Ok(match how_many(count, least, most) {
                    Ok(()) => Validation::Valid,
                    Err(why) => Validation::Invalid(why.into()),
                })
            });
        let marked = prompt.raw_prompt()?;
        let values = marked.iter().filter_map(|option| choices.get(option.index));
        let values: Vec<&str> = values.map(|choice| choice.value.as_str()).collect();
        Ok((self.required || !values.is_empty() || self.default.is_some()).then(|| json!(values)))
    }

    fn help_with(&self, keys: &str) -> String {
        match (self.help.is_empty(), keys.is_empty()) {
            (true, _) => keys.to_owned(),
            (_, true) => self.help.clone(),
            _ => format!("{} · {keys}", self.help),
        }
    }

    /// The value that a typed text is, or why it will not do.
    fn read(&self, text: &str) -> Result<Option<Value>, String> {
        if text.is_empty() && !self.required {
            return Ok(None);
        }
        if text.is_empty() {
            return Err("this one is needed".to_owned());
        }
        match &*self.kind {
            Kind::Text { least, most, format } => {
                let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
                if length < *least {
                    return Err(format!("at least {least} characters are needed"));
                }
                if length > *most {
                    return Err(format!("{length} characters are too many; {most} are allowed"));
                }
                if let Some(format) = format {
                    format::check(format, text)?;
                }
                Ok(Some(Value::from(text)))
            }
            Kind::Number { whole, least, most } => {
                let number = number(text.trim()).ok_or("that is not a number")?;
                let number = match arguments::whole(&number) {
                    Some(whole_number) if *whole => whole_number,
                    None if *whole => return Err("it must be a whole number".to_owned()),
                    _ => number,
                };
                let value = number.as_f64().unwrap_or_default();
                if let Some(least) = least.filter(|least| value < *least) {
                    return Err(format!("it must be at least {least}"));
                }
                if let Some(most) = most.filter(|most| value > *most) {
                    return Err(format!("it must be at most {most}"));
                }
                Ok(Some(Value::Number(number)))
            }
            Kind::Free { root, place } => Ok(Some(coerce(text, root, place))),
            _ => Ok(Some(Value::from(text))),
        }
    }
}

fn how_many(count: u64, least: u64, most: u64) -> Result<(), String> {
    if count < least {
        return Err(format!("choose at least {least}"));
    }
    if count > most {
        return Err(format!("choose at most {most}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(schema: Value, required: bool) -> Field {
        Field::new("x", &serde_json::from_value(schema).unwrap(), required)
    }

    #[test]
    fn answers_are_checked_by_the_kind_of_field() {
        let name = field(json!({ "type": "string", "minLength": 2, "maxLength": 3 }), true);
        assert_eq!(name.read("Ada"), Ok(Some(json!("Ada"))));
        assert!(name.read("A").unwrap_err().contains("at least 2"));
        assert!(name.read("Adam").unwrap_err().contains("3 are allowed"));
        assert!(name.read("").is_err());
        let cups = field(json!({ "type": "integer", "minimum": 1, "maximum": 12 }), false);
        assert_eq!(cups.read("3"), Ok(Some(json!(3))));
        assert_eq!(cups.read("1e1"), Ok(Some(json!(10))));
        assert_eq!(cups.read(""), Ok(None));
        for wrong in ["0", "13", "1.5", "many"] {
            assert!(cups.read(wrong).is_err(), "{wrong}");
        }
        let email = field(json!({ "type": "string", "format": "email" }), false);
        assert!(email.read("nobody").unwrap_err().contains("ada@example.com"));
    }

    #[test]
    fn arguments_that_no_form_has_are_asked_for_as_text() {
        let root = json!({ "properties": { "ids": { "type": "array", "items": { "type": "integer" } }, "n": { "type": "integer" } } });
        let ids = Field::of_argument("ids", &root);
        assert_eq!(ids.label, "ids (integer[])");
        assert_eq!(ids.read("1,2"), Ok(Some(json!([1, 2]))));
        assert!(Field::of_argument("n", &root).read("x").is_err());
    }

    #[test]
    fn choices_are_counted() {
        assert!(how_many(0, 1, 2).is_err() && how_many(3, 1, 2).is_err() && how_many(2, 1, 2).is_ok());
    }
}
