//! The members of an object, each as it stands in the text.

use std::borrow::Cow;

use crate::scan::Scanner;

/// Goes through the members of a JSON object once, in their order. `member` gets the name of each and the text of its
/// value, which is known to be JSON. A name may come more than once; that is for `member` to judge.
///
/// Says whether the text is a JSON object whose names can be read.
pub fn for_each_member<'a>(text: &'a str, mut member: impl FnMut(Cow<'a, str>, &'a str)) -> bool {
    let mut scanner = Scanner::without_flaws(text);
    let mut named = true;
    let passed = scanner.object(|scanner, name| {
        let value = scanner.value()?;
        match name.text() {
            Some(name) => member(name, value),
            None => named = false,
        }
        Ok(())
    });
    passed.is_ok() && named && scanner.is_done()
}

#[cfg(test)]
mod tests {
    use super::for_each_member;

    fn members(text: &str) -> Option<Vec<(String, String)>> {
        let mut found = Vec::new();
        for_each_member(text, |name, value| found.push((name.into_owned(), value.to_owned())))
            .then_some(found)
    }

    #[test]
    fn every_member_is_met_once_and_in_order() {
        let found = members(r#" {"b" : [1, {"a":2}],"\u0061":"x\"y" , "b":null} "#).unwrap();
        let found: Vec<_> = found.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(found, [("b", r#"[1, {"a":2}]"#), ("a", r#""x\"y""#), ("b", "null")]);
        assert_eq!(members("{}"), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_object_is_said() {
        for text in ["", "[]", "{", "{} {}", r#"{"a":1"#, r#"{"a"}"#, r#"{"\ud800":1}"#, "null"] {
            assert_eq!(members(text), None, "{text}");
        }
    }
}
