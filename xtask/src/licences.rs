//! Holds the crates in use to the licences and bans of `deny.toml`, without needing cargo-deny.
//!
//! Advisories need a database that changes by the day, so they stay with `cargo deny check`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::process::Program;
use crate::workspace::LIMIT;

/// The part of `deny.toml` that is checked here.
#[derive(Debug)]
struct Policy {
    allowed: Vec<String>,
    banned: Vec<String>,
}

/// Checks every crate of other makers and returns all violations, one sentence each.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(root.join("deny.toml")).map_err(|error| format!("deny.toml: {error}"))?;
    let policy = Policy::parse(&text).ok_or("deny.toml has no list of licences or bans")?;
    let arguments = ["metadata", "--format-version", "1", "--all-features"];
    let metadata = Program::cargo(root, LIMIT).args(arguments).successful_output()?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let others = packages.iter().filter(|package| !package["source"].is_null());
    Ok(others.filter_map(|package| policy.violation(&package["name"], &package["license"])).collect())
}

impl Policy {
    fn parse(text: &str) -> Option<Self> {
        let allowed = quoted(list(text, "allow")?);
        let entries = list(text, "deny")?.split("name = ").skip(1);
        let banned = entries.filter_map(|entry| quoted(entry).into_iter().next()).collect();
        Some(Self { allowed, banned })
    }

    fn violation(&self, name: &Value, licence: &Value) -> Option<String> {
        let name = name.as_str()?;
        if self.banned.iter().any(|banned| banned == name) {
            return Some(format!("`{name}` is banned by deny.toml"));
        }
        let licence = licence.as_str().unwrap_or_default();
        let allowed = Expression::new(licence).allowed(&self.allowed);
        (!allowed).then(|| format!("the licence of `{name}` is not in deny.toml: {licence}"))
    }
}

/// What stands between the brackets of `key = [ … ]`.
fn list<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("\n{key} = ["))?;
    rest.split_once(']').map(|(inside, _)| inside)
}

fn quoted(text: &str) -> Vec<String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A licence expression, read from left to right; `AND` binds closer than `OR`.
#[derive(Debug)]
struct Expression {
    /// Words still to be read, the next one last.
    words: Vec<String>,
}

impl Expression {
    fn new(text: &str) -> Self {
        // Before expressions there was a slash, and crates of that time still have it; some write a small "or".
        let spaced =
            text.replace('/', " OR ").replace(" or ", " OR ").replace('(', " ( ").replace(')', " ) ");
        Self { words: spaced.split_whitespace().rev().map(str::to_owned).collect() }
    }

    fn allowed(mut self, allowed: &[String]) -> bool {
        self.any(allowed) && self.words.is_empty()
    }

    fn any(&mut self, allowed: &[String]) -> bool {
        let mut holds = self.all(allowed);
        while self.take("OR") {
            holds |= self.all(allowed);
        }
        holds
    }

    fn all(&mut self, allowed: &[String]) -> bool {
        let mut holds = self.one(allowed);
        while self.take("AND") {
            holds &= self.one(allowed);
        }
        holds
    }

    fn one(&mut self, allowed: &[String]) -> bool {
        if self.take("(") {
            return self.any(allowed) & self.take(")");
        }
        let Some(mut licence) = self.words.pop() else { return false };
        if self.take("WITH") {
            let exception = self.words.pop().unwrap_or_default();
            licence = format!("{licence} WITH {exception}");
        }
        allowed.contains(&licence)
    }

    fn take(&mut self, word: &str) -> bool {
        self.words.pop_if(|next| next == word).is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Expression, Policy, check};
    use crate::workspace::root;

    #[test]
    fn the_crates_in_use_keep_the_policy() {
        assert_eq!(check(&root()), Ok(vec![]));
    }

    #[test]
    fn expressions_are_understood() {
        let allowed = ["MIT".to_owned(), "Zlib".to_owned(), "A WITH B".to_owned()];
        for good in ["MIT", "GPL-3.0/MIT", "(GPL-3.0 OR MIT) AND Zlib", "GPL-3.0 AND X OR MIT", "A WITH B"] {
            assert!(Expression::new(good).allowed(&allowed), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "A", "MIT WITH B", "(MIT", "MIT)", "MIT Zlib", "OR"] {
            assert!(!Expression::new(bad).allowed(&allowed), "{bad}");
        }
    }

    #[test]
    fn violations_are_named() {
        let text =
            "[licenses]\nallow = [\"MIT\"]\n[bans]\ndeny = [\n  { name = \"bad\", reason = \"it is\" },\n]\n";
        let policy = Policy::parse(text).unwrap();
        assert_eq!(policy.violation(&json!("good"), &json!("MIT")), None);
        let banned = policy.violation(&json!("bad"), &json!("MIT"));
        assert_eq!(banned.as_deref(), Some("`bad` is banned by deny.toml"));
        let other = policy.violation(&json!("x"), &json!("GPL-3.0"));
        assert_eq!(other.as_deref(), Some("the licence of `x` is not in deny.toml: GPL-3.0"));
        assert!(policy.violation(&json!("x"), &json!(null)).is_some(), "no licence is not a licence");
        assert!(Policy::parse("nothing").is_none());
    }
}
