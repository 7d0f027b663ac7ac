//! `SERVER.TOOL` and `SERVER/TOOL` as one word.

use std::borrow::Cow;

use crate::{
    config,
    target::{Address, TargetOptions},
};

/// The words with the server as a word of its own. A word is only taken apart when a server is configured by the
/// name in front, and none by the whole word.
pub(crate) fn with_server<'a>(words: &'a [String], target: &TargetOptions) -> Cow<'a, [String]> {
    let apart = words.split_first().filter(|(first, _)| {
        target.command.is_empty() && Address::parse(first).is_none() && first.contains(['.', '/'])
    });
    let Some((first, rest)) = apart else { return Cow::Borrowed(words) };
    let servers: Vec<String> = config::find().servers.into_iter().map(|server| server.name).collect();
    match split(first, &servers) {
        Some((server, name)) => {
            let both = [server.to_owned(), name.to_owned()];
            Cow::Owned(both.into_iter().chain(rest.iter().cloned()).collect())
        }
        None => Cow::Borrowed(words),
    }
}

/// The longest configured name in front of a dot or a slash, and what follows.
fn split<'a>(word: &'a str, servers: &[String]) -> Option<(&'a str, &'a str)> {
    if servers.iter().any(|server| server == word) {
        return None;
    }
    let places = word.rmatch_indices(['.', '/']).map(|(place, _)| place);
    let mut parts = places.filter_map(|place| Some((word.get(..place)?, word.get(place + 1..)?)));
    parts.find(|(server, name)| !name.is_empty() && servers.iter().any(|known| known == server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_configured_names_are_taken_off() {
        let servers = ["files".to_owned(), "files.old".to_owned(), "a.b".to_owned()];
        assert_eq!(split("files.read", &servers), Some(("files", "read")));
        assert_eq!(split("files/read.all", &servers), Some(("files", "read.all")));
        assert_eq!(split("files.old.read", &servers), Some(("files.old", "read")));
        for whole in ["a.b", "other.read", "files.", "files"] {
            assert_eq!(split(whole, &servers), None, "{whole}");
        }
    }
}
