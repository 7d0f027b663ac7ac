//! Just enough of RFC 3986 to know which part of the document a reference means.

/// The URI without its fragment, and the fragment.
pub(super) fn split_fragment(reference: &str) -> (&str, Option<&str>) {
    match reference.split_once('#') {
        Some((uri, fragment)) => (uri, Some(fragment)),
        None => (reference, None),
    }
}

/// Resolves `reference`, which has no fragment, against `base`.
pub(super) fn join(base: &str, reference: &str) -> String {
    if reference.is_empty() {
        return base.to_owned();
    }
    if scheme_end(reference).is_some() {
        return reference.to_owned();
    }
    let scheme_end = scheme_end(base).unwrap_or(0);
    let (scheme, rest) = base.split_at_checked(scheme_end).unwrap_or(("", base));
    if reference.starts_with("//") {
        return format!("{scheme}{reference}");
    }
    let authority_end = match rest.strip_prefix("//") {
        Some(after) => 2 + after.find(['/', '?']).unwrap_or(after.len()),
        None => 0,
    };
    let (authority, rest) = rest.split_at_checked(authority_end).unwrap_or(("", rest));
    let path = rest.split_once('?').map_or(rest, |(path, _)| path);
    if reference.starts_with('?') {
        return format!("{scheme}{authority}{path}{reference}");
    }
    let (relative, query) = match reference.find('?').and_then(|at| reference.split_at_checked(at)) {
        Some((relative, query)) => (relative, query),
        None => (reference, ""),
    };
    let merged = if relative.starts_with('/') {
        relative.to_owned()
    } else {
        match path.rfind('/').and_then(|at| path.get(..=at)) {
            Some(folder) => format!("{folder}{relative}"),
            None if authority.is_empty() => relative.to_owned(),
            None => format!("/{relative}"),
        }
    };
    format!("{scheme}{authority}{}{query}", without_dots(&merged))
}

/// Where the scheme ends, its colon included.
fn scheme_end(uri: &str) -> Option<usize> {
    let colon = uri.find(':')?;
    let scheme = uri.get(..colon)?;
    let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let plain = scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    (named && plain).then_some(colon + 1)
}

/// Resolves the segments `.` and `..`, in time and memory proportional to the length of the path.
fn without_dots(path: &str) -> String {
    let absolute = path.starts_with('/');
    // Each segment that is kept has a slash behind it.
    let mut kept = String::with_capacity(path.len() + 1);
    for segment in path.split('/').skip(usize::from(absolute)) {
        match segment {
            "." => {}
            ".." => {
                kept.pop();
                kept.truncate(kept.rfind('/').map_or(0, |slash| slash + 1));
            }
            _ => kept.extend([segment, "/"]),
        }
    }
    // A path that ends in a dot segment names the folder itself.
    if !path.ends_with("/.") && !path.ends_with("/..") {
        kept.pop();
    }
    if absolute {
        kept.insert(0, '/');
    }
    kept
}

/// Undoes percent encoding; what is not valid UTF-8 afterwards is replaced.
pub(super) fn decode(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        let mut decoded = *first;
        if let (b'%', [high, low, after @ ..]) = (first, tail)
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            decoded = high * 16 + low;
            rest = after;
        }
        bytes.push(decoded);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::{decode, join};

    #[test]
    fn references_resolve_like_rfc_3986() {
        let base = "http://a/b/c/d;p?q";
        let cases = [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("./", "http://a/b/c/"),
            ("..//g", "http://a/b//g"),
            ("..//../g", "http://a/b/g"),
            ("/./g/../..", "http://a/"),
            ("../g", "http://a/b/g"),
            ("../../../g", "http://a/g"),
            ("g:h", "g:h"),
        ];
        for (reference, expected) in cases {
            assert_eq!(join(base, reference), expected, "{reference}");
        }
        assert_eq!(join("", "other.json"), "other.json");
        assert_eq!(join("", "a/.."), "");
        assert_eq!(join("", "../a/./b/."), "a/b/");
        assert_eq!(join("http://a", "b"), "http://a/b");
        assert_eq!(join("urn:example:root", ""), "urn:example:root");
    }

    #[test]
    fn percent_encoding_is_undone_and_broken_encoding_kept() {
        assert_eq!(decode("a%25b%22"), "a%b\"");
        assert_eq!(decode("%zz%4"), "%zz%4");
        assert_eq!(decode("%C3%A9"), "é");
    }
}
