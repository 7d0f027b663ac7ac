//! The list of scenarios that do not pass yet.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The prefixes of names that may be on the list: scenarios whose turn has not come yet. The list may only shrink.
const FAMILIES: &[&str] = &["tasks-"];

/// Reads lines of the form `leg: scenario`; what follows a `#` is for people.
pub(super) fn read(path: &Path) -> Result<BTreeSet<(String, String)>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text)
}

fn parse(text: &str) -> Result<BTreeSet<(String, String)>, String> {
    let mut missing = BTreeSet::new();
    for line in text.lines() {
        let entry = line.split('#').next().unwrap_or_default().trim();
        if entry.is_empty() {
            continue;
        }
        let (leg, scenario) = entry.split_once(": ").ok_or_else(|| format!("not `leg: scenario`: {line}"))?;
        if !FAMILIES.iter().any(|family| scenario.starts_with(family)) {
            return Err(format!("`{scenario}` must pass and cannot be listed as missing"));
        }
        if !missing.insert((leg.to_owned(), scenario.to_owned())) {
            return Err(format!("listed twice: {entry}"));
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn lines_name_a_leg_and_a_scenario() {
        let missing = parse("# later\n\nserver 2026-07-28: tasks-lifecycle # extension\n").unwrap();
        let expected = ("server 2026-07-28".to_owned(), "tasks-lifecycle".to_owned());
        assert_eq!(missing.into_iter().collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn what_must_pass_cannot_be_listed() {
        assert!(parse("client 2026-07-28: auth/dpop").unwrap_err().contains("must pass"));
        assert!(parse("server 2026-07-28: tools-list").unwrap_err().contains("must pass"));
        assert!(parse("tasks-lifecycle").unwrap_err().starts_with("not `leg: scenario`"));
        assert!(parse("a: tasks-x\na: tasks-x").unwrap_err().starts_with("listed twice"));
    }
}
