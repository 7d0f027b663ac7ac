mod unique;

use std::{borrow::Cow, fs, path::Path};

use proptest::prelude::*;

use self::unique::Unique;
use super::*;

/// What the scanner takes for one whole value.
fn scan(text: &str) -> Option<&str> {
    let mut scanner = Scanner::new(text);
    let value = scanner.value();
    let whole = value.is_ok() && scanner.is_done();
    value.ok().filter(|_| whole && scanner.flaw(whole).is_none())
}

/// Compares the scanner with the other opinion, and with `Value` itself.
fn agrees(text: &str) {
    let theirs =
        serde_json::from_str::<Unique>(text).is_ok().then(|| text.trim_matches([' ', '\n', '\t', '\r']));
    assert_eq!(scan(text), theirs, "{text:?}");
    assert!(theirs.is_none() || serde_json::from_str::<Value>(text).is_ok(), "{text:?}");
    assert_eq!(crate::RawJson::parse(text).is_ok(), theirs.is_some(), "{text:?}");
}

/// The corpus: one file for each text, whose name begins with what is to become of it.
#[test]
fn the_corpus_is_taken_or_refused_as_its_names_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/json");
    let mut count = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = fs::read(&path).unwrap();
        let taken = std::str::from_utf8(&bytes).is_ok_and(|text| {
            agrees(text);
            scan(text).is_some()
        });
        assert_eq!(taken, name.starts_with("take-"), "{name}");
        assert!(taken || name.starts_with("refuse-"), "{name}");
        // As part of a message, too, wherever it is.
        let message =
            [br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"#, &bytes[..], b"}}"].concat();
        let shallow = !name.contains("depth");
        if shallow || !taken {
            assert_eq!(crate::Message::parse(&message.clone().into()).is_ok(), taken, "{name} in a message");
            assert_eq!(crate::Message::parse_and_peek(&message.into()).is_ok(), taken, "{name} with a peek");
        }
        count += 1;
    }
    assert!(count > 90, "{count}");
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
fn nesting_is_kept_track_of_up_to_the_depth_that_is_decoded() {
    for levels in [1, 2, 31, 32, 33, 62, 63, 64, 65, 1000, 100_000] {
        let mixed = format!("{}1{}", r#"{"a":["#.repeat(levels), "]}".repeat(levels));
        agrees(&mixed);
        assert_eq!(scan(&mixed).is_some(), levels * 2 <= MAX_DEPTH, "{levels}");
        assert_eq!(scan(&mixed[..mixed.len() - 1]), None, "{levels}");
        // One wrong bracket, at every depth in turn.
        for (at, _) in mixed.match_indices(']').take(200) {
            let mut wrong = mixed.clone();
            wrong.replace_range(at..=at, "}");
            assert_eq!(scan(&wrong), None, "{levels} {at}");
        }
    }
    for levels in [126, 127, 128] {
        for (open, inner, close) in
            [("[", "", "]"), ("[", "1", "]"), (r#"{"a":"#, "{}", "}"), (r#"{"a":"#, "[]", "}")]
        {
            agrees(&format!("{}{inner}{}", open.repeat(levels), close.repeat(levels)));
        }
    }
}

#[test]
fn numbers_are_taken_up_to_the_edge_of_their_range() {
    for exponent in ["300", "307", "308", "309", "310", "999", "99999999999", "-308", "-324", "-99999999999"]
    {
        for digits in
            ["0", "1", "1.7", "1.8", "17976931348623157", "17976931348623158", "1.7976931348623157", "0.0001"]
        {
            agrees(&format!("{digits}e{exponent}"));
            agrees(&format!("[-{digits}E+{}]", exponent.trim_start_matches('-')));
        }
    }
    for length in [1, 19, 20, 299, 300, 301, 308, 309, 310, 400, 5000] {
        for digit in ["1", "9"] {
            agrees(&digit.repeat(length));
            agrees(&format!("-{}.5", digit.repeat(length)));
            agrees(&format!("{}e-100", digit.repeat(length)));
            agrees(&format!("0.{}", digit.repeat(length)));
        }
    }
}

#[test]
fn halves_of_characters_are_found_in_names_and_values() {
    for half in [
        r"\ud800",
        r"\udc00",
        r"\ud800\ud800",
        r"\ud800\u0041",
        r"\ud800x",
        r"\ud800\n",
        r"\ud83d\ude00",
        r"\uDBFF\uDFFF",
        r"\ud83d\ude0",
        r"\ud83d\u",
        r"\ud83d\",
        r"\ude00\ud83d",
        r"\ud7ff",
        r"\ue000",
        r"\ufffe",
        r"\u0000",
    ] {
        agrees(&format!("\"{half}\""));
        agrees(&format!("\"x{half}y\""));
        agrees(&format!("{{\"{half}\":1}}"));
        agrees(&format!("{{\"a\":[\"{half}\"]}}"));
    }
}

#[test]
fn names_are_unique_at_every_level_and_in_every_spelling() {
    for (text, unique) in [
        (r#"{"a":1,"b":2,"A":3,"":4}"#, true),
        (r#"{"a":1,"a":1}"#, false),
        (r#"{"":1,"":1}"#, false),
        (r#"{"a":1,"\u0061":1}"#, false),
        (r#"{"\u0061":1,"\u0061":1}"#, false),
        (r#"{"\u0061":1,"\u0062":1}"#, true),
        (r#"{"a":{"a":{"a":1}},"b":{"a":1}}"#, true),
        (r#"{"a":{"b":1,"b":1}}"#, false),
        (r#"{"a":{"b":1},"a":1}"#, false),
        (r#"{"a":{"b":1,"c":{}},"b":[{"b":1},{"b":2}],"c":{"a":[],"b":[]}}"#, true),
        (r#"[{"a":1},{"a":2},[{"a":1,"b":1,"a":1}]]"#, false),
    ] {
        agrees(text);
        assert_eq!(scan(text).is_some(), unique, "{text}");
    }
    // More names than are compared on the way, with the last one, or the one before all others, repeated.
    for count in [22, 23, 24, 25, 26, 100] {
        let members: Vec<String> = (0..count).map(|name| format!("\"{name}\":{{\"x\":1}}")).collect();
        agrees(&format!("{{{}}}", members.join(",")));
        for repeated in [0, count - 1] {
            let text = format!("{{{},\"{repeated}\":1}}", members.join(","));
            agrees(&text);
            assert_eq!(scan(&text), None);
        }
    }
    let deep = format!("{}{{\"b\":1,\"b\":2}}{}", r#"{"a":"#.repeat(60), "}".repeat(60));
    agrees(&deep);
    assert_eq!(scan(&deep), None);
}

#[test]
fn a_flaw_says_what_it_is() {
    for (text, flaw) in [
        ("[1e999]", Flaw::NumberOutOfRange),
        (r#"["\udc00"]"#, Flaw::LoneSurrogate),
        (r#"[{"b":1,"a":1,"\u0061":1}]"#, Flaw::Duplicate("a".into())),
        (
            r#"{"$serde_json::private::RawValue":"[1]"}"#,
            Flaw::Reserved("$serde_json::private::RawValue".into()),
        ),
        (
            r#"[{"a":{"\u0024serde_json::private::Number":"1"}}]"#,
            Flaw::Reserved("$serde_json::private::Number".into()),
        ),
        (&"[".repeat(128), Flaw::TooDeep),
    ] {
        assert_eq!(check(text), Err(flaw), "{text}");
    }
}

#[test]
fn many_names_are_compared_in_good_time() {
    // All pairs of these would be ten thousand million comparisons.
    let members: Vec<String> = (0..150_000).map(|name| format!("\"{name}\":0")).collect();
    assert_eq!(check(&format!("{{{}}}", members.join(","))), Ok(()));
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

/// Any value.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Texts that are JSON or nearly so.
fn nearly_json() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"\"",
        "\"",
        "\\",
        "\\n",
        "\\u0061",
        "1",
        "-",
        "0",
        ".5",
        "e3",
        "true",
        "null",
        " ",
        "\n",
        "x",
        "ä",
        "\u{1}",
        "e999",
        "\"b\":",
        "\"a\":",
        "{\"a\":1,",
        "\"\\u0061\":2}",
        "\\ud800",
        "\\udc00",
        "9",
    ]);
    prop::collection::vec(pieces, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_agrees_with_serde_json(text in nearly_json()) {
        agrees(&text);
    }

    #[test]
    fn it_agrees_on_what_is_json(value in any_json()) {
        let text = value.to_string();
        agrees(&text);
        prop_assert!(scan(&text).is_some());
    }

    #[test]
    fn it_agrees_on_json_with_one_byte_changed(value in any_json(), at: prop::sample::Index, byte in any::<u8>()) {
        let mut bytes = value.to_string().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(text) = String::from_utf8(bytes) {
            agrees(&text);
        }
    }

    #[test]
    fn it_agrees_on_objects_with_few_names(text in "\\{(\"[ab]\":(1|\\{\"a\":1,\"[ab]\":2\\}),){0,4}\"([ab]|\\\\u006[12])\":0\\}") {
        agrees(&text);
    }

    #[test]
    fn it_agrees_on_numbers(text in "-?[0-9]{1,3}(\\.[0-9]{0,20})?([eE][+-]?[0-9]{0,4})?") {
        agrees(&text);
    }

    #[test]
    fn it_agrees_in_strings(inner in "[ -~\u{0}-\u{20}\"\\\\nuäb0-9]{0,60}") {
        agrees(&format!("\"{inner}\""));
    }
}
