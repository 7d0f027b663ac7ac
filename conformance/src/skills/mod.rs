//! The skills extension (SEP-2640), made of the SDK's custom methods and resources.
//!
//! A skill is a folder with a `SKILL.md`: the server lists it with the digests of its files, and the client
//! believes no file that does not match. What is shared by both sides is here. Of the YAML in front of a
//! `SKILL.md` only plain `key: value` lines are read.

pub mod client;
pub mod server;

use std::fmt::Write as _;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolwire::serde::{Deserialize, Serialize};

/// The name of the extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// What a server says of one skill.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "the extension defines these members")]
pub struct SkillEntry {
    /// Where its `SKILL.md` is.
    pub uri: String,
    /// What stands in front of its `SKILL.md`.
    pub frontmatter: Map<String, Value>,
    /// Its files.
    pub resources: SkillResources,
}

/// The files of a skill.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
#[expect(clippy::exhaustive_enums, reason = "the extension defines these two forms")]
pub enum SkillResources {
    /// All of them.
    Listed(Vec<SkillResource>),
    /// The word `dynamic`: they are not known beforehand.
    Dynamic(String),
}

/// One file of a skill.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "the extension defines these members")]
pub struct SkillResource {
    /// Where it is.
    pub uri: String,
    /// The digest of its bytes.
    pub digest: String,
    /// How many bytes it has.
    pub size: usize,
}

impl SkillResource {
    /// What is to be said of a file with these contents.
    pub fn of(uri: impl Into<String>, contents: &[u8]) -> Self {
        Self { uri: uri.into(), digest: digest(contents), size: contents.len() }
    }
}

/// The digest of a file.
pub fn digest(contents: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(contents) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// What stands in front of a `SKILL.md`; `None` when there is nothing, or more than plain `key: value` lines.
pub fn frontmatter(text: &str) -> Option<Map<String, Value>> {
    let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
    if lines.next() != Some("---") {
        return None;
    }
    let mut members = Map::new();
    for line in lines {
        if line.trim_end() == "---" {
            return Some(members);
        }
        let (key, value) = line.split_once(':').filter(|(key, _)| !key.starts_with([' ', '-', '#']))?;
        let value = value.trim();
        // Numbers, booleans and quoted texts look the same in JSON; everything else is a plain text.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        members.insert(key.to_owned(), value);
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{digest, frontmatter};

    #[test]
    fn frontmatter_is_read_line_by_line() {
        let text =
            "---\nname: pdf\ndescription: Reads: and writes\nversion: 2\nquoted: \"yes\"\n---\n\nBody.\n";
        let expected =
            json!({ "name": "pdf", "description": "Reads: and writes", "version": 2, "quoted": "yes" });
        assert_eq!(frontmatter(text).map(serde_json::Value::Object), Some(expected));
    }

    #[test]
    fn what_is_no_plain_frontmatter_is_none() {
        for text in
            ["", "name: pdf\n", "---\nname: pdf\n", "---\nlist:\n  - a\n---\n", "---\nno colon\n---\n"]
        {
            assert_eq!(frontmatter(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_digest_is_that_of_the_bytes() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest(b""), empty);
        assert_ne!(digest(b"x"), empty);
    }
}
