//! Which name somebody may have meant.

/// Longer names than this are compared with nothing: a peer chooses them, and comparing costs by the product.
const LONGEST: usize = 64;

/// The name that is nearest to a misspelt one, if one is near enough.
pub(crate) fn nearest<'a>(misspelt: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if misspelt.len() > LONGEST {
        return None;
    }
    let near = names.filter(|name| name.len() <= LONGEST).map(|name| (distance(misspelt, name), name));
    let (distance, name) = near.min_by_key(|(distance, _)| *distance)?;
    // A third of the letters may be wrong: `limmit` is `limit`, and `from` is not `to`.
    (distance * 3 <= name.chars().count().max(3)).then_some(name)
}

/// How many letters have to be put in, taken out, replaced or swapped with their neighbour. Case does not count.
fn distance(one: &str, other: &str) -> usize {
    let letters = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<_>>();
    let (one, other) = (letters(one), letters(other));
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, a) in one.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, b) in other.iter().enumerate() {
            let at = |line: &[usize], column: usize| line.get(column).copied().unwrap_or(usize::MAX / 2);
            let replaced = at(&last, column) + usize::from(a != b);
            let mut best = replaced.min(at(&last, column + 1) + 1).min(at(&next, column) + 1);
            let swapped =
                row > 0 && column > 0 && one.get(row - 1) == Some(b) && other.get(column - 1) == Some(a);
            if swapped {
                best = best.min(at(&before, column - 1) + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut last, next);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn what_was_meant_is_found() {
        let names = ["limit", "query", "offset", "to"];
        for (misspelt, meant) in [
            ("limt", Some("limit")),
            ("limmit", Some("limit")),
            ("Limit", Some("limit")),
            ("ilmit", Some("limit")),
            ("qurey", Some("query")),
            ("ot", Some("to")),
            ("of", None),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(misspelt, names.into_iter()), meant, "{misspelt}");
        }
        assert_eq!(nearest(&"l".repeat(1_000_000), names.into_iter()), None);
    }
}
