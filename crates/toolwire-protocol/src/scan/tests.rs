use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;

/// What the scanner takes for one whole value.
fn scan(text: &str) -> Option<&str> {
    let mut scanner = Scanner::new(text);
    let value = scanner.value().ok()?;
    scanner.is_done().then_some(value)
}

fn agrees(text: &str) {
    let theirs = serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get);
    assert_eq!(scan(text), theirs, "{text:?}");
}

#[test]
fn it_takes_what_is_json_and_nothing_else() {
    for text in [
        "null",
        "true",
        "false",
        "nul",
        "nulll",
        "tru",
        " 1 ",
        "0",
        "-0",
        "00",
        "01",
        "-",
        "-1",
        "1.",
        "1.5",
        ".5",
        "1e5",
        "1E+5",
        "1e-5",
        "1e",
        "1e+",
        "1.e5",
        "+1",
        "1 2",
        "",
        " ",
        "\u{feff}1",
        "NaN",
        "Infinity",
        "'a'",
        "[]",
        "[ ]",
        "[1]",
        "[1,]",
        "[,1]",
        "[1,2]",
        "[1 2]",
        "[",
        "]",
        "[1",
        "[1}",
        "[[],[[]]]",
        "[[]",
        "[]]",
        "{}",
        "{ }",
        r#"{"a":1}"#,
        r#"{"a":1,}"#,
        r#"{"a"}"#,
        r#"{"a":}"#,
        "{a:1}",
        "{1:1}",
        r#"{"a":1"b":2}"#,
        r#"{"a":{"b":[{"c":null}]},"d":"e"}"#,
        r#"{"a":[}"#,
        r#"{"a":1]"#,
        r#"{,"a":1}"#,
        r#"{"a" : 1 , "b" : [ ] }"#,
        r#""""#,
        r#"""#,
        r#""a"#,
        r#""\"""#,
        r#""\\""#,
        r#""\"#,
        r#""\x""#,
        r#""\u00""#,
        r#""\u00zz""#,
        r#""\u0041""#,
        r#""\ud800""#,
        r#""\ud83d\ude00""#,
        "\"\t\"",
        "\"\u{1}\"",
        "\"\u{7f}\"",
        "\"ä€😀\"",
        "\"a\nb\"",
    ] {
        agrees(text);
    }
}

#[test]
fn long_strings_end_where_they_end() {
    for length in (0..100).chain([127, 128, 129, 130, 200, 1000]) {
        let filler = "x".repeat(length);
        for end in
            ["\"", "\\\"\"", "\\\\\"", "\\\\\\\"\"", "\t\"", "\u{1f}", "", "ä\"", "\\u0020\"", "\\u002\""]
        {
            agrees(&format!("\"{filler}{end}"));
            agrees(&format!("[\"{filler}{end},\"{filler}\"]"));
        }
    }
}

#[test]
fn nesting_is_kept_track_of_at_any_depth() {
    for levels in [1, 2, 63, 64, 65, 66, 127, 128, 129, 130, 1000, 100_000] {
        let mixed = format!("{}1{}", r#"{"a":["#.repeat(levels), "]}".repeat(levels));
        assert_eq!(scan(&mixed), Some(&*mixed), "{levels}");
        assert_eq!(scan(&mixed[..mixed.len() - 1]), None, "{levels}");
        // One wrong bracket, at every depth in turn.
        for (at, _) in mixed.match_indices(']').take(200) {
            let mut wrong = mixed.clone();
            wrong.replace_range(at..=at, "}");
            assert_eq!(scan(&wrong), None, "{levels} {at}");
        }
    }
}

#[test]
fn members_are_passed_in_order() {
    let mut scanner = Scanner::new(r#" { "a" : 1 , "\u0062":[2], "\ud800":{} } "#);
    let mut seen = Vec::new();
    let walked = scanner.object(|scanner, name| {
        seen.push((name.text().map(Cow::into_owned), scanner.value()?));
        Ok(())
    });
    assert_eq!(walked, Ok(()));
    assert!(scanner.is_done());
    assert_eq!(seen, [(Some("a".to_owned()), "1"), (Some("b".to_owned()), "[2]"), (None, "{}")]);
}

/// Texts that are JSON or nearly so.
fn nearly_json() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"a\"", "\"\"", "\"", "\\", "\\n", "\\u0061", "1", "-", "0", ".5",
        "e3", "true", "null", " ", "\n", "x", "ä", "\u{1}",
    ]);
    prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn it_agrees_with_serde_json(text in nearly_json()) {
        agrees(&text);
    }

    #[test]
    fn it_agrees_in_strings(inner in "[ -~\u{0}-\u{20}\"\\\\nuäb0-9]{0,60}") {
        agrees(&format!("\"{inner}\""));
    }
}
