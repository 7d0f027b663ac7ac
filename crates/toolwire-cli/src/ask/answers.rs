//! Answers that are given in advance, for scripts.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use clap::Args;
use serde_json::{Map, Value};
use toolwire::{
    protocol::schema::fill_defaults,
    wire::{PrimitiveSchemaDefinition, RequestedSchema, StringSchema},
};

use super::format;
use crate::{
    arguments,
    failure::{Code, Failure, Result},
    schema,
    terminal::{Terminal, printable},
};

/// What the server may ask, answered in advance.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "When the server asks")]
pub(crate) struct AnswerOptions {
    /// Answer a field of a form; may be given several times
    #[arg(long = "answer", value_name = "KEY=VALUE")]
    answer: Vec<String>,

    /// Answers as a JSON object: text, @FILE or -
    #[arg(long, value_name = "JSON")]
    answers: Option<String>,

    /// Accept the defaults of forms; never opens pages
    #[arg(short, long)]
    yes: bool,
}

/// The answers to a form, if there are any, and the names of required fields without an answer or a default.
pub(super) type Answered = (Option<Map<String, Value>>, Vec<String>);

/// The answers, ready to be used.
#[derive(Debug)]
pub(super) struct Answers {
    terminal: Terminal,
    words: Vec<String>,
    object: Map<String, Value>,
    yes: bool,
    /// The names of all fields that were asked for so far.
    asked: Mutex<BTreeSet<String>>,
}

impl Answers {
    pub(super) fn new(options: &AnswerOptions, terminal: Terminal) -> Result<Self> {
        for word in &options.answer {
            if !arguments::is_assignment(word) {
                return Err(Failure::new(
                    Code::Usage,
                    format!("--answer {word}: an answer looks like this: KEY=VALUE"),
                ));
            }
        }
        let object = options.answers.as_ref().map(|text| arguments::object("--answers", text)).transpose()?;
        Ok(Self {
            terminal,
            words: options.answer.clone(),
            object: object.unwrap_or_default(),
            yes: options.yes,
            asked: Mutex::default(),
        })
    }

    /// The names that were answered in advance and that none of the forms asked for. Without any form there is
    /// nothing to say: answers may be given to a tool that only sometimes asks.
    pub(super) fn unused(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.is_empty() {
            return Vec::new();
        }
        let given = self.words.iter().map(|word| key(word)).chain(self.object.keys().map(String::as_str));
        let unused: BTreeSet<&str> = given.filter(|name| !asked.contains(*name)).collect();
        unused.into_iter().map(str::to_owned).collect()
    }

    /// What is answered of this form.
    pub(super) fn to(&self, schema: &RequestedSchema) -> Result<Answered> {
        let names = schema.properties.keys().map(str::to_owned);
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
        let has = |name: &str| schema.properties.contains_key(name);
        let words: Vec<String> = self.words.iter().filter(|word| has(key(word))).cloned().collect();
        let object: Map<String, Value> = self
            .object
            .iter()
            .filter(|(name, _)| has(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let given = !words.is_empty() || !object.is_empty() || self.yes;
        let json = serde_json::to_value(schema).unwrap_or_default();
        let mut content = arguments::assign(&words, &json, object)?;
        for (name, value) in &mut content {
            by_title(&json["properties"][name.as_str()], value);
        }
        fill_defaults(&json, &mut content);
        let required = schema.required.iter().flatten();
        let missing: Vec<String> = required.filter(|name| !content.contains_key(*name)).cloned().collect();
        if !given {
            return Ok((None, missing));
        }
        if missing.is_empty() {
            check(&json, &content, self.terminal)?;
            formats(schema, &content)?;
        }
        Ok((Some(content), missing))
    }
}

/// The field that a `KEY=VALUE` is about.
fn key(word: &str) -> &str {
    word.split(['=', ':', '[', '.']).next().unwrap_or_default()
}

fn check(schema: &Value, content: &Map<String, Value>, terminal: Terminal) -> Result<()> {
    schema::check("the answers", schema, &Value::Object(content.clone()), terminal).map_err(|violations| {
        Failure::new(
            Code::InvalidArguments,
            printable(&format!("the answers do not fit the form: {violations}")),
        )
    })
}

/// Replaces the title of a choice, which is what a form shows, by its value.
fn by_title(property: &Value, value: &mut Value) {
    if let Value::Array(items) = value {
        return items.iter_mut().for_each(|item| by_title(&property["items"], item));
    }
    let Some(given) = value.as_str().map(str::to_lowercase) else { return };
    let titled = ["oneOf", "anyOf"].iter().filter_map(|word| property[*word].as_array()).flatten();
    let titled = titled.map(|option| (&option["const"], &option["title"]));
    let list = |word: &str| property[word].as_array().into_iter().flatten();
    let choices: Vec<_> = titled.chain(list("enum").zip(list("enumNames"))).collect();
    let is = |text: &Value| text.as_str().is_some_and(|text| text.to_lowercase() == given);
    if choices.iter().any(|(choice, _)| **choice == *value) {
        return;
    }
    if let Some((choice, _)) = choices.iter().find(|(_, title)| is(title)) {
        *value = (*choice).clone();
    }
}

/// Checks what a schema's check leaves to others: whether an e-mail address is one, and the like.
fn formats(schema: &RequestedSchema, content: &Map<String, Value>) -> Result<()> {
    for (name, definition) in schema.properties.iter() {
        let PrimitiveSchemaDefinition::String(StringSchema { format: Some(wanted), .. }) = definition else {
            continue;
        };
        let Some(text) = content.get(name).and_then(Value::as_str) else { continue };
        format::check(wanted, text).map_err(|why| {
            Failure::new(
                Code::InvalidArguments,
                printable(&format!("the answers do not fit the form: {name}: {why}")),
            )
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> RequestedSchema {
        serde_json::from_value(json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string", "minLength": 2 }, "cups": { "type": "integer", "default": 1 },
        }}))
        .unwrap()
    }

    fn answers(words: &[&str], object: Option<&str>, yes: bool) -> Answers {
        let answer = words.iter().map(|&word| word.to_owned()).collect();
        let terminal = Terminal { json: false, verbose: 0 };
        Answers::new(&AnswerOptions { answer, answers: object.map(str::to_owned), yes }, terminal).unwrap()
    }

    #[test]
    fn what_is_given_is_used_and_the_rest_gets_its_default() {
        let (content, missing) = answers(&["name=Ada", "other=x"], None, false).to(&schema()).unwrap();
        assert_eq!((json!(content), missing.len()), (json!({ "name": "Ada", "cups": 1 }), 0));
        let (content, _) = answers(&["cups=3"], Some(r#"{"name":"Ada"}"#), false).to(&schema()).unwrap();
        assert_eq!(json!(content), json!({ "name": "Ada", "cups": 3 }));
    }

    #[test]
    fn a_choice_is_given_by_its_value_or_by_what_the_form_shows() {
        let schema: RequestedSchema = serde_json::from_value(json!({ "type": "object", "properties": {
            "size": { "type": "string", "oneOf": [{ "const": "m", "title": "Medium" }, { "const": "l", "title": "Large" }] },
            "old": { "type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"] },
            "more": { "type": "array", "items": { "anyOf": [{ "const": "x", "title": "Extra" }] } },
            "mail": { "type": "string", "format": "email" },
        }}))
        .unwrap();
        let (content, _) =
            answers(&["size=medium", "old=Second", "more=Extra"], None, false).to(&schema).unwrap();
        assert_eq!(json!(content), json!({ "size": "m", "old": "b", "more": ["x"] }));
        let (content, _) = answers(&["size=l", "mail=a@b.example"], None, false).to(&schema).unwrap();
        assert_eq!(json!(content)["size"], "l");
        let failure = answers(&["mail=nope"], None, false).to(&schema).unwrap_err();
        assert!(failure.message().contains("mail:"), "{failure}");
        assert!(answers(&["size=huge"], None, false).to(&schema).is_err());
    }

    #[test]
    fn what_no_form_asked_for_is_known() {
        let answers = answers(&["name=Ada", "cup=3"], Some(r#"{"sugar":true}"#), false);
        assert!(answers.unused().is_empty(), "nothing was asked");
        answers.to(&schema()).unwrap();
        assert_eq!(answers.unused(), ["cup", "sugar"]);
    }

    #[test]
    fn what_is_missing_is_named_and_what_does_not_fit_is_told() {
        let nothing = answers(&["other=x"], None, false).to(&schema()).unwrap();
        assert_eq!(nothing, (None, vec!["name".to_owned()]));
        assert_eq!(answers(&[], None, true).to(&schema()).unwrap().1, ["name"]);
        let failure = answers(&["name=A"], None, false).to(&schema()).unwrap_err();
        assert_eq!(failure.code(), Code::InvalidArguments);
        assert!(failure.message().contains("/name"), "{failure}");
    }
}
