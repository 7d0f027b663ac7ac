//! The official schemas and examples, which the tests compare with where they are at hand.
//!
//! The comparing itself is in the tests; without the schemas these pass without it. So whether it was done is a step
//! of its own.

use std::env;
use std::path::Path;

use crate::steps::{Outcome, Stop};

/// The environment variable that names the folder, for the tests as well.
const VARIABLE: &str = "TOOLWIRE_SPEC";

/// The revisions of the specification; the newest has examples, too.
const REVISIONS: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

pub(crate) fn run() -> Outcome {
    match env::var_os(VARIABLE) {
        Some(folder) => all_there(Path::new(&folder)),
        None => Err(Stop::skipped(format!(
            "{VARIABLE} is not set: have it name a folder with REVISION/schema.json of the specification in it"
        ))),
    }
}

fn all_there(folder: &Path) -> Outcome {
    let schemas = REVISIONS.iter().map(|revision| folder.join(revision).join("schema.json"));
    let examples = REVISIONS.last().map(|revision| folder.join(revision).join("examples"));
    match schemas.chain(examples).find(|path| !path.exists()) {
        Some(missing) => Err(format!("{VARIABLE} is set, but there is no {}", missing.display()).into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::all_there;

    #[test]
    fn a_folder_without_schemas_is_not_taken_for_them() {
        let stop = all_there(Path::new("/no/such/folder")).unwrap_err();
        assert!(stop.reason().contains("/no/such/folder/2024-11-05/schema.json"), "{stop:?}");
    }
}
