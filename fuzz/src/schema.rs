//! Schemas, compiled and applied.

use std::{borrow::Cow, time::Duration};

use serde_json::Value;
use toolwire_protocol::schema::{
    MAX_SUBSCHEMAS, MAX_VIOLATIONS, Schema, elicitation_schema, inline_local_refs,
};

use crate::cost::within;

/// What one compilation may take. It is seconds rather than milliseconds because all limits at once may be met.
const COMPILE: Duration = Duration::from_secs(3);

/// What one validation may take, both of its passes.
const VALIDATE: Duration = Duration::from_secs(6);

/// The size that a text is blown up to: a list of the shortest values still takes less memory at once than a target may.
const BLOWN_UP_BYTES: usize = 384 * 1024;

/// Repeats every second one of the pieces between bytes 0xfe, which no text has, until all of them together are long.
/// Costs that grow faster than their input show there, and not in the short texts that are tried otherwise.
fn blown_up(data: &[u8]) -> Cow<'_, [u8]> {
    let pieces: Vec<&[u8]> = data.split(|byte| *byte == 0xfe).collect();
    if pieces.len() == 1 {
        return Cow::Borrowed(data);
    }
    let share = BLOWN_UP_BYTES / (pieces.len() / 2);
    let times = |index: usize, piece: &[u8]| if index % 2 == 1 { share / piece.len().max(1) } else { 1 };
    pieces.iter().enumerate().flat_map(|(index, piece)| piece.repeat(times(index, piece))).collect()
}

/// Two texts, with a byte between them that no text has.
pub(crate) fn halves(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let middle = data.iter().position(|byte| *byte == 0xff)?;
    Some((&data[..middle], &data[middle + 1..]))
}

/// Compiles what a peer calls a schema, and makes it portable.
pub fn schema_compile(data: &[u8]) {
    let Ok(schema) = serde_json::from_slice::<Value>(&blown_up(data)) else { return };
    let compiled = within(COMPILE, "compiling", || Schema::compile(&schema));
    if let Err(error) = &compiled {
        assert!(error.to_string().len() < 20_000);
    }
    let portable = within(COMPILE, "replacing references", || inline_local_refs(schema.clone()));
    if let (Ok(_), Ok(portable)) = (&compiled, &portable) {
        // What has no references any more may only be refused for what it has become too large for.
        let _ = within(COMPILE, "compiling again", || Schema::compile(portable));
    }
    if let Ok(form) = within(COMPILE, "making a form", || elicitation_schema(&schema)) {
        let too_many = format!("more than {MAX_SUBSCHEMAS} subschemas");
        let refused = Schema::compile(&form).err().filter(|error| error.reason != too_many);
        assert_eq!(refused, None);
    }
}

/// Validates a value of a peer against a schema of a peer.
pub fn schema_validate(data: &[u8]) {
    let Some((schema, instance)) = halves(data) else { return };
    let Ok(schema) = serde_json::from_slice::<Value>(&blown_up(schema)) else { return };
    let Ok(instance) = serde_json::from_slice::<Value>(&blown_up(instance)) else { return };
    let Ok(schema) = Schema::compile(&schema) else { return };
    let verdict = within(VALIDATE, "validating", || schema.validate(&instance));
    let quick = within(VALIDATE, "asking whether it is valid", || schema.is_valid(&instance));
    assert_eq!(quick, verdict.is_ok());
    if let Err(violations) = verdict {
        assert!((1..=MAX_VIOLATIONS).contains(&violations.iter().count()));
        assert!(violations.to_string().len() < 100_000);
    }
}
