//! Names that a project can have.

use crate::failure::{Code, Failure, Result};

/// How long a name may be; the registry takes no longer ones.
const MAX_CHARS: usize = 64;

/// Words that cannot be the name of a crate, because they mean something in Rust or to Cargo.
const TAKEN: &str = "\
    abstract alloc as async await become box break build const continue core crate deps do dyn else enum \
    examples extern false final fn for gen if impl in incremental let loop macro match mod move mut \
    override priv proc_macro pub ref return self static std struct super test tokio toolwire trait true \
    try type typeof unsafe unsized use virtual where while yield";

/// A name that is one.
#[derive(Debug)]
pub(super) struct Name(String);

impl Name {
    /// Takes a name if a package can have it, and offers one that is close otherwise.
    pub(super) fn check(name: &str) -> Result<Self> {
        let Some(why) = objection(name) else { return Ok(Self(name.to_owned())) };
        let failure = Failure::new(Code::Usage, format!("`{name}` cannot be the name of a project: {why}"));
        Err(match close(name) {
            Some(close) => failure.hint(format!("how about: toolwire new {close}")),
            None => failure.hint("a name is made of letters, digits, - and _: toolwire new weather"),
        })
    }

    /// The name of the package and the folder.
    pub(super) fn package(&self) -> &str {
        &self.0
    }

    /// The name of the crate in Rust.
    pub(super) fn library(&self) -> String {
        self.0.replace('-', "_")
    }
}

/// What is wrong with a name.
fn objection(name: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() {
        Some("it is empty".to_owned())
    } else if name.chars().count() > MAX_CHARS {
        Some(format!("it is longer than {MAX_CHARS} characters"))
    } else if let Some(c) = name.chars().find(|c| !plain(*c)) {
        Some(format!("it has {c:?} in it"))
    } else if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        Some("it does not begin with a letter".to_owned())
    } else {
        let taken = TAKEN.split(' ').any(|word| word == name.replace('-', "_"));
        taken.then(|| "it means something else already".to_owned())
    }
}

/// A name that is close to what was meant.
fn close(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).find(|part| !part.is_empty())?;
    let allowed = |c: char| match c.to_ascii_lowercase() {
        c @ ('a'..='z' | '0'..='9' | '-' | '_') => c,
        _ => '-',
    };
    let mapped: String = last.chars().take(MAX_CHARS).map(allowed).collect();
    let words: Vec<_> = mapped.split('-').filter(|word| !word.is_empty()).collect();
    let joined = words.join("-");
    let trimmed = joined.trim_start_matches(|c: char| !c.is_ascii_lowercase()).trim_end_matches('_');
    let candidates = [trimmed.to_owned(), format!("{trimmed}-server"), format!("server-{joined}")];
    candidates.into_iter().find(|candidate| !trimmed.is_empty() && objection(candidate).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_packages() {
        for name in ["weather", "my-server", "a", "x_1", "weather2"] {
            assert_eq!(Name::check(name).unwrap().package(), name);
        }
        assert_eq!(Name::check("my-server").unwrap().library(), "my_server");
        let long = "x".repeat(MAX_CHARS + 1);
        for name in ["", "1st", "-x", "a b", "wétter", "../x", "match", "std", "toolwire", "Weather", &long]
        {
            assert!(Name::check(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_close_name_is_offered_and_would_be_taken() {
        for (name, offered) in [
            ("My Server", Some("my-server")),
            ("path/to/Weather", Some("weather")),
            ("match", Some("match-server")),
            ("1st", Some("st")),
            ("wétter!", Some("w-tter")),
            ("...", None),
            ("", None),
        ] {
            assert_eq!(close(name).as_deref(), offered, "{name}");
        }
    }
}
