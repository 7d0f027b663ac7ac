//! Checking JSON values against JSON Schema 2020-12.
//!
//! A [`Schema`] is compiled once and then validates any number of values. What it says about a value that
//! does not fit is meant for a model or a person to act upon: where, what was expected, what came.
//!
//! It is pure and bounded: nothing is ever fetched, and every cost a schema or a value of the other side
//! could cause has a named limit here. It deliberately does not assert `format` (an annotation by default
//! in 2020-12) unless it is told to, knows no vocabulary but the standard one, and tolerates the spellings of draft-07
//! (`definitions`, `items` as an array, `dependencies`) because older peers send them.

mod compile;
mod evaluate;
mod format;
mod keyword;
mod node;
mod number;
mod portable;
mod primitive;
mod uri;
mod value;
mod violation;
mod words;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub use portable::{MAX_INLINED_VALUES, inline_local_refs, is_object_root};
pub use primitive::{elicitation_check, elicitation_schema, fill_defaults};
pub use violation::{SchemaError, Violation, Violations};
pub use words::MAX_SHOWN_CHARS;

use self::{
    compile::Compiler,
    evaluate::{Report, Run},
    node::Program,
};

/// How deep the JSON of a schema may be nested.
pub const MAX_SCHEMA_DEPTH: usize = 128;

/// How many subschemas one document may hold.
pub const MAX_SUBSCHEMAS: usize = 10_000;

/// A limit on the bytes of names, constants and URIs that compiling one document may copy, look up or join.
///
/// Each is counted before the work is done: a copy with the memory that it takes, and a URI together with the base that
/// it is relative to. So a long base with very many `$id`s and references below it is too costly, however short the URIs
/// are that they stand for.
pub const MAX_COMPILED_BYTES: usize = 16 * 1024 * 1024;

/// How deep a value may be nested to be validated.
pub const MAX_INSTANCE_DEPTH: usize = 128;

/// How many subschemas may be entered inside each other while one value is validated.
///
/// A value nested as deep as [`MAX_INSTANCE_DEPTH`] allows still fits when each of its levels passes
/// through two subschemas.
pub const MAX_EVALUATION_DEPTH: usize = 300;

/// How much work one validation may do before it gives up with "schema too costly".
///
/// One step is about one subschema applied to one value, or 64 bytes of a name or a string that are compared; patterns
/// cost more.
pub const MAX_STEPS: u64 = 1_000_000;

/// How many violations one validation reports.
pub const MAX_VIOLATIONS: usize = 16;

/// How large a `pattern`, as written and compiled, may become, in bytes; a larger one is skipped.
pub const MAX_PATTERN_BYTES: usize = 64 * 1024;

/// How large all patterns of one schema may become together, attempts to compile them included; what comes after is
/// skipped.
pub const MAX_ALL_PATTERN_BYTES: usize = 4 * 1024 * 1024;

/// A compiled JSON Schema.
///
/// ```
/// use serde_json::json;
/// use toolwire_protocol::schema::Schema;
///
/// let schema = Schema::compile(&json!({ "properties": { "days": { "type": "integer" } } }))?;
/// let violations = schema.validate(&json!({ "days": "three" })).unwrap_err();
/// assert_eq!(violations.to_string(), r#"/days: expected an integer, found the string "three""#);
/// # Ok::<(), toolwire_protocol::schema::SchemaError>(())
/// ```
#[derive(Debug)]
pub struct Schema {
    program: Program,
    skipped: Vec<String>,
}

impl Schema {
    /// Compiles `schema`, the root of a schema document.
    ///
    /// A reference to another document and a pattern our engine cannot run do not fail: they accept
    /// anything and are listed in [`skipped`](Self::skipped).
    ///
    /// Whoever relies on the check has to look at that list: a server refuses to start with a schema of its own that
    /// it cannot check, and a client warns of one that it was given.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let (program, skipped) = Compiler::new(schema).run()?;
        Ok(Self { program, skipped })
    }

    /// The same, but `format` is asserted where it is one of those that a form may ask for: `date`, `date-time`,
    /// `email` and `uri`.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolwire_protocol::schema::Schema;
    ///
    /// let form = json!({ "properties": { "mail": { "type": "string", "format": "email" } } });
    /// assert!(Schema::compile(&form)?.is_valid(&json!({ "mail": "nope" })));
    /// assert!(!Schema::compile_form(&form)?.is_valid(&json!({ "mail": "nope" })));
    /// # Ok::<(), toolwire_protocol::schema::SchemaError>(())
    /// ```
    pub fn compile_form(schema: &Value) -> Result<Self, SchemaError> {
        let (program, skipped) = Compiler::new(schema).asserting_formats().run()?;
        Ok(Self { program, skipped })
    }

    /// Checks `instance` and says everything that does not fit, up to [`MAX_VIOLATIONS`].
    pub fn validate(&self, instance: &Value) -> Result<(), Violations> {
        if value::is_deeper_than(instance, MAX_INSTANCE_DEPTH) {
            return Err(Violations::one(Violation::too_deep()));
        }
        // The common case is a value that fits, so the first pass builds no words at all.
        let mut quick = Run::new(&self.program);
        if quick.root(instance, &mut Report::quiet()) {
            return Ok(());
        }
        let mut violations = Vec::new();
        if !quick.gave_up() {
            let mut report = Report::collecting();
            Run::new(&self.program).root(instance, &mut report);
            violations = report.into_violations();
        }
        if violations.is_empty() {
            violations.push(Violation::too_costly());
        }
        Err(Violations::new(violations))
    }

    /// Whether `instance` fits; cheaper than [`validate`](Self::validate) when it does not.
    pub fn is_valid(&self, instance: &Value) -> bool {
        !value::is_deeper_than(instance, MAX_INSTANCE_DEPTH)
            && Run::new(&self.program).root(instance, &mut Report::quiet())
    }

    /// What could not be checked and therefore accepts anything: references to other documents and
    /// patterns beyond our engine.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }
}
