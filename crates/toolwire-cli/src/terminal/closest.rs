//! What somebody may have meant.

/// How much a name must be like another to be offered.
const LEAST_LIKENESS: f64 = 0.75;
/// How many letters a part of a name has, to be taken for one.
const LEAST_PART: usize = 2;
/// The number of bytes that a name may have to be compared letter by letter.
const MAX_COMPARED: usize = 256;
/// How many names are offered.
const MAX_OFFERED: usize = 3;

/// The names that are most like this one, the closest first.
pub(crate) fn closest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let name = name.to_lowercase();
    let likeness = |other: &str| {
        let other = other.to_lowercase();
        // A part of a name is as good as most of its letters, unless it is in every other name.
        let part =
            name.len().min(other.len()) >= LEAST_PART && (other.contains(&name) || name.contains(&other));
        let comparable = name.len().max(other.len()) <= MAX_COMPARED;
        let alike = if comparable { strsim::jaro_winkler(&name, &other) } else { 0.0 };
        alike.max(if part { 0.9 } else { 0.0 })
    };
    let mut offered: Vec<(f64, &str)> = names.into_iter().map(|other| (likeness(other), other)).collect();
    offered.retain(|(likeness, _)| *likeness >= LEAST_LIKENESS);
    offered.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    offered.dedup_by_key(|(_, name)| *name);
    offered.into_iter().take(MAX_OFFERED).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_come_first_and_strangers_not_at_all() {
        assert_eq!(closest("ad", ["echo", "add_note", "add"]).first(), Some(&"add"));
        assert_eq!(closest("ehco", ["echo", "count"]), ["echo"]);
        assert_eq!(closest("zzz", ["echo", "count"]), Vec::<&str>::new());
        assert_eq!(closest("", ["echo"]), Vec::<&str>::new());
        assert_eq!(closest("echo", ["", "echo", "echo"]), ["echo"]);
    }

    #[test]
    fn very_long_names_are_not_compared_letter_by_letter() {
        let (typed, other) = ("a".repeat(1_000_000), "b".repeat(1_000_000));
        assert_eq!(closest(&typed, [other.as_str(), "echo"]), Vec::<&str>::new());
        assert_eq!(closest("aaa", [other.as_str(), &typed]), [&typed]);
    }
}
