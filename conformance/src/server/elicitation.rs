//! Forms with every kind of field: defaults (SEP-1034) and choices (SEP-1330).

use toolwire::{
    Answer, Context, Group, NeedInput, Result,
    protocol::schema::elicitation_schema,
    routes,
    schemars::{self, JsonSchema, schema_for},
    serde::{Deserialize, Serialize},
    server::{IntoToolOutput, Reply},
    tool,
    wire::{ElicitRequestFormParams, LegacyTitledEnumSchema, RequestedSchema},
};

pub(super) fn routes() -> Group {
    routes![test_elicitation_sep1034_defaults, test_elicitation_sep1330_enums]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(crate = "toolwire::serde", default)]
struct Person {
    name: String,
    age: i64,
    score: f64,
    status: Status,
    verified: bool,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(crate = "toolwire::serde", rename_all = "lowercase")]
enum Status {
    Active,
    Inactive,
    Pending,
}

impl Default for Person {
    fn default() -> Self {
        Self { name: "John Doe".to_owned(), age: 30, score: 95.5, status: Status::Active, verified: true }
    }
}

/// Asks for fields that all have defaults.
#[tool]
async fn test_elicitation_sep1034_defaults(cx: Context) -> Result<String> {
    Ok(match cx.elicit::<Person>("Who are you?").await? {
        Answer::Accept(person) => format!("The user accepted: {person:?}"),
        other => format!("The user did not accept: {other:?}"),
    })
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct Choices {
    untitled_single: Word,
    titled_single: Titled,
    untitled_multi: Vec<Word>,
    titled_multi: Vec<Titled>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum Word {
    Option1,
    Option2,
    Option3,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum Titled {
    /// First option
    Value1,
    /// Second option
    Value2,
    /// Third option
    Value3,
}

/// Asks for choices of every form.
#[tool]
async fn test_elicitation_sep1330_enums(cx: Context) -> Result<Reply> {
    const KEY: &str = "choices";
    if let Some(answer) = cx.raw_input(KEY) {
        return Ok(format!("The user answered: {}", answer.text()).into_tool_output()?);
    }
    let params = ElicitRequestFormParams::new("Which ones?", choices()?);
    Ok(NeedInput::new().question(KEY, params).into_tool_output()?)
}

/// The form. Types are made into the forms that are current; the one of 2025-06-18 has to be added by hand.
fn choices() -> Result<RequestedSchema> {
    let derived = elicitation_schema(&schema_for!(Choices).to_value())?;
    let mut form: RequestedSchema = serde_json::from_value(derived)?;
    let words = ["opt1", "opt2", "opt3"].map(str::to_owned);
    let names = ["Option one", "Option two", "Option three"].map(str::to_owned);
    let legacy = LegacyTitledEnumSchema::new(words).enum_names(names);
    form.properties.insert("legacyEnum", legacy.into());
    Ok(form)
}
