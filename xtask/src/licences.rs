//! Licences of all crates in the lock file, as their manifests state them, against the list in `deny.toml`.
//!
//! The texts of the licences, bans and sources are for the step `deny`.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

use crate::process::Program;
use crate::steps::{Outcome, none};
use crate::workspace::root;

/// Manifests of crates for other platforms have to be downloaded.
const LIMIT: Duration = Duration::from_mins(10);

/// Compares the licence of each crate with the list.
pub(crate) fn check() -> Outcome {
    let rules =
        fs::read_to_string(root().join("deny.toml")).map_err(|error| format!("deny.toml: {error}"))?;
    let allowed = allowed(&rules)?;
    let arguments = ["metadata", "--locked", "--all-features", "--format-version", "1"];
    let text = Program::cargo(&root(), LIMIT).args(arguments).successful_output()?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    none(&packages.iter().filter_map(|package| fault(package, &allowed)).collect::<Vec<_>>())
}

/// Reads the list of `deny.toml`.
fn allowed(rules: &str) -> Result<Vec<Licensee>, String> {
    let rules: toml::Table = toml::from_str(rules).map_err(|error| format!("deny.toml: {error}"))?;
    let list =
        rules.get("licenses").and_then(|licences| licences.get("allow")).and_then(toml::Value::as_array);
    let names = list.ok_or("deny.toml has no list `licenses.allow`")?.iter();
    names
        .map(|name| {
            let name = name.as_str().ok_or("deny.toml: a licence is not a string")?;
            Licensee::parse(name).map_err(|error| format!("deny.toml: `{name}`: {error}"))
        })
        .collect()
}

/// Returns what is wrong with the licence of a package, as `cargo metadata` describes it.
fn fault(package: &Value, allowed: &[Licensee]) -> Option<String> {
    let name = format!(
        "{} {}",
        package["name"].as_str().unwrap_or_default(),
        package["version"].as_str().unwrap_or_default()
    );
    let Some(stated) = package["license"].as_str() else {
        return Some(format!("{name}: the manifest states no licence"));
    };
    // Old manifests separate licences by a slash.
    let expression = match Expression::parse_mode(stated, ParseMode::LAX) {
        Ok(expression) => expression,
        Err(error) => return Some(format!("{name}: `{stated}`: {}", error.reason)),
    };
    let accepted = expression.evaluate(|needed| allowed.iter().any(|licence| licence.satisfies(needed)));
    (!accepted).then(|| format!("{name}: `{stated}` is not in the list of deny.toml"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{allowed, fault};

    #[test]
    fn licence_is_accepted_if_one_of_its_alternatives_is_in_the_list() {
        let allowed = allowed("[licenses]\nallow = ['MIT', 'Apache-2.0']").unwrap();
        let of =
            |licence: &str| fault(&json!({ "name": "a", "version": "1.0.0", "license": licence }), &allowed);
        for accepted in ["MIT", "MIT OR GPL-3.0-only", "MIT/Apache-2.0", "(MIT OR ISC) AND Apache-2.0"] {
            assert_eq!(of(accepted), None, "{accepted}");
        }
        for refused in ["GPL-3.0-only", "MIT AND ISC", "Apache-2.0 WITH LLVM-exception"] {
            let expected = format!("a 1.0.0: `{refused}` is not in the list of deny.toml");
            assert_eq!(of(refused), Some(expected));
        }
        assert_eq!(of("Mine"), Some("a 1.0.0: `Mine`: unknown term".to_owned()));
    }

    #[test]
    fn missing_licence_and_missing_list_are_faults() {
        let package = json!({ "name": "a", "version": "1.0.0", "license": null, "license_file": "LICENSE" });
        assert_eq!(fault(&package, &[]), Some("a 1.0.0: the manifest states no licence".to_owned()));
        assert_eq!(allowed("[bans]").unwrap_err(), "deny.toml has no list `licenses.allow`");
        assert!(allowed("[licenses]\nallow = ['Mine']").unwrap_err().starts_with("deny.toml: `Mine`: "));
    }
}
