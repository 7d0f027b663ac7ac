//! Tests of the whole validator.

mod bounds;
mod differential;
mod keywords;
mod messages;
mod portable;
mod primitive;
mod references;

use serde_json::Value;

use super::{Schema, SchemaError};

#[test]
fn a_schema_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + std::fmt::Debug>() {}
    shared::<Schema>();
}

/// What is wrong with `instance`, as one line; empty when nothing is.
fn said(schema: &Value, instance: &Value) -> String {
    let schema = Schema::compile(schema).unwrap();
    let verdict = schema.validate(instance);
    assert_eq!(schema.is_valid(instance), verdict.is_ok(), "the two entries disagree on {instance}");
    verdict.err().map(|violations| violations.to_string()).unwrap_or_default()
}

fn accepts(schema: &Value, instances: &[Value]) {
    for instance in instances {
        assert_eq!(said(schema, instance), "", "{schema} should accept {instance}");
    }
}

fn rejects(schema: &Value, instances: &[Value]) {
    for instance in instances {
        assert_ne!(said(schema, instance), "", "{schema} should reject {instance}");
    }
}

fn compile_error(schema: &Value) -> SchemaError {
    Schema::compile(schema).expect_err("the schema should not compile")
}
