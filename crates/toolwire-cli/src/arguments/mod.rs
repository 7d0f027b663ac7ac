//! Arguments as people type them: `key=value`, `user.name=Ada`, `tags[]=x`, `key:=JSON`, `key=@file`.
//!
//! A value becomes what the schema wants where that is clear. What cannot be made to fit stays a string, and
//! the check against the schema says what is wrong with it.

mod coerce;
mod path;

use std::{
    collections::BTreeMap,
    io::{IsTerminal, Read},
};

use serde_json::{Map, Value};

use crate::failure::{Code, Explain, Failure, Result};

pub(crate) use coerce::{coerce, number, whole};

/// How many bytes a file or the standard input may have to be an argument.
const MAX_INPUT_BYTES: u64 = 64 * 1024 * 1024;

/// How it is done, for those who did it wrong.
const HOW: &str = "arguments look like this: key=value, user.name=Ada, tags[]=x, key:=JSON, key=@FILE, key=-";

/// One word, taken apart.
#[derive(Debug, PartialEq)]
struct Assignment<'a> {
    key: &'a str,
    text: &'a str,
    /// Whether it was written with `:=`.
    raw: bool,
}

fn assignment(word: &str) -> Result<Assignment<'_>> {
    let usage = |what: &str| Failure::new(Code::Usage, format!("`{word}` {what}")).hint(HOW);
    let (key, text) = word.split_once('=').ok_or_else(|| no_value(word))?;
    let (key, raw) = key.strip_suffix(':').map_or((key, false), |key| (key, true));
    if key.is_empty() { Err(usage("has no name")) } else { Ok(Assignment { key, text, raw }) }
}

/// A word without a value is often meant as a switch, and sometimes written as one.
fn no_value(word: &str) -> Failure {
    let name = word.trim_start_matches('-');
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    let text = format!("`{word}` is not KEY=VALUE");
    let failure = Failure::new(Code::Usage, text).hint(HOW);
    if is_name { failure.and(format_args!("; did you mean {name}=true?")) } else { failure }
}

/// Whether a word looks like an argument.
pub(crate) fn is_assignment(word: &str) -> bool {
    assignment(word).is_ok()
}

/// Puts the words into an object of this schema.
pub(crate) fn assign(
    words: &[String],
    schema: &Value,
    arguments: Map<String, Value>,
) -> Result<Map<String, Value>> {
    let mut root = Value::Object(arguments);
    let mut given: Vec<&str> = Vec::new();
    for word in words {
        let Assignment { key, text, raw } = assignment(word)?;
        let steps = path::parse(key, schema).map_err(|why| wrong(key, &why))?;
        let place = path::schema_at(schema, &steps);
        let value = if raw {
            let text = contents(key, text)?;
            serde_json::from_str(&text).map_err(|error| wrong(key, &format!("is not JSON: {error}")))?
        } else {
            let text = contents(key, text)?;
            if place.is_some_and(|place| coerce::is_too_large(&text, schema, place)) {
                return Err(wrong(key, "is too large: whole numbers have at most 64 bits here"));
            }
            place.map_or_else(|| coerce::guess(&text), |place| coerce(&text, schema, place))
        };
        // A list may be given item by item.
        let again = given.contains(&key);
        let more = again && !raw && place.is_some_and(|place| coerce::is_list(schema, place));
        if again && !more && !matches!(steps.last(), Some(path::Step::Append)) {
            return Err(wrong(key, "is given twice"));
        }
        given.push(key);
        path::put(&mut root, &steps, value, more).map_err(|why| wrong(key, &why))?;
    }
    match root {
        Value::Object(arguments) => Ok(arguments),
        _ => Ok(Map::new()),
    }
}

/// Puts the words into a map of strings, as prompts want it.
pub(crate) fn strings(words: &[String]) -> Result<BTreeMap<String, String>> {
    let mut strings = BTreeMap::new();
    for word in words {
        let Assignment { key, text, raw } = assignment(word)?;
        if raw {
            return Err(wrong(key, "is a text here; write key=value"));
        }
        if strings.insert(key.to_owned(), contents(key, text)?).is_some() {
            return Err(wrong(key, "is given twice"));
        }
    }
    Ok(strings)
}

/// A JSON object that is given as text, in a file (`@FILE`) or on standard input (`-`).
pub(crate) fn object(option: &str, text: &str) -> Result<Map<String, Value>> {
    let text = match text.strip_prefix('@') {
        Some(file) => read_file(option, file)?,
        None if text == "-" => read_input(option)?,
        None => text.to_owned(),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Failure::new(Code::Usage, format!("{option} is not a JSON object"))),
        Err(error) => Err(Failure::new(Code::Usage, format!("{option} is not JSON: {error}"))),
    }
}

/// What a value stands for: itself, a file or the standard input. `@@` is an `@` that means itself.
fn contents(key: &str, text: &str) -> Result<String> {
    match text.strip_prefix('@') {
        Some(rest) if rest.starts_with('@') => Ok(rest.to_owned()),
        Some(file) if !file.is_empty() => read_file(key, file),
        _ if text == "-" => read_input(key),
        _ => Ok(text.to_owned()),
    }
}

fn read_file(what: &str, file: &str) -> Result<String> {
    let open = std::fs::File::open(file).context(format_args!("{what}: {file}"));
    // The value of an option is an object, which never begins so.
    let hint = if what.starts_with("--") {
        format!("{what} takes JSON, @FILE with a file that has some, or - for standard input")
    } else {
        format!("a text that begins with @ is written with two: {what}=@@{file}")
    };
    let open = open.hint(hint)?;
    read_all(open, what, file)
}

fn read_input(what: &str) -> Result<String> {
    let input = std::io::stdin();
    if input.is_terminal() {
        let said = format!("{what}: reading standard input; Ctrl-D ends it");
        let _ = std::io::Write::write_all(&mut anstream::stderr(), format!("{said}\n").as_bytes());
    }
    read_all(input.lock(), what, "standard input")
}

fn read_all(from: impl Read, what: &str, place: &str) -> Result<String> {
    let mut bytes = Vec::new();
    from.take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes).context(format_args!("{what}: {place}"))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_INPUT_BYTES {
        return Err(wrong(what, &format!("{place} has more than {MAX_INPUT_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| wrong(what, &format!("{place} is not text in UTF-8")))
}

fn wrong(key: &str, why: &str) -> Failure {
    Failure::new(Code::Usage, format!("{key}: {why}")).hint(HOW)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn assigned(words: &[&str], schema: &Value) -> Result<Value> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        assign(&words, schema, Map::new()).map(Value::Object)
    }

    fn schema() -> Value {
        json!({ "type": "object", "properties": {
            "n": { "type": "integer" }, "x": { "type": "number" }, "b": { "type": "boolean" }, "s": { "type": "string" },
            "o": { "type": ["string", "null"] }, "tags": { "type": "array", "items": { "type": "string" } },
            "ids": { "type": "array", "items": { "type": "integer" } }, "dotted.key": { "type": "integer" },
            "user": { "type": "object", "properties": { "name": { "type": "string" }, "age": { "type": "integer" } } },
            "items": { "type": "array", "items": { "type": "object", "properties": { "id": { "type": "integer" } } } },
        }})
    }

    #[test]
    fn values_become_what_the_schema_wants() {
        let given = assigned(&["n=3", "x=2.5", "b=yes", "s=7", "o=null"], &schema()).unwrap();
        assert_eq!(given, json!({ "n": 3, "x": 2.5, "b": true, "s": "7", "o": null }));
        assert_eq!(assigned(&["n=three"], &schema()).unwrap(), json!({ "n": "three" }));
        assert_eq!(assigned(&["n=1e3"], &schema()).unwrap(), json!({ "n": 1000 }));
        assert_eq!(assigned(&["n=-2.0"], &schema()).unwrap(), json!({ "n": -2 }));
        assert_eq!(assigned(&["n=1.5"], &schema()).unwrap(), json!({ "n": "1.5" }));
        assert_eq!(assigned(&["n:=\"3\"", "s=a=b"], &schema()).unwrap(), json!({ "n": "3", "s": "a=b" }));
        assert_eq!(
            assigned(&["new=true", "word=hi"], &json!({})).unwrap(),
            json!({ "new": true, "word": "hi" })
        );
    }

    #[test]
    fn lists_are_given_item_by_item_or_as_json() {
        for words in [
            &["tags=a, b", "tags=c"][..],
            &["tags[]=a, b", "tags[]=c"],
            &["tags[0]=a, b", "tags[1]=c"],
            &[r#"tags=["a, b","c"]"#],
        ] {
            assert_eq!(assigned(words, &schema()).unwrap(), json!({ "tags": ["a, b", "c"] }), "{words:?}");
        }
        assert_eq!(assigned(&["ids=1,2,3"], &schema()).unwrap(), json!({ "ids": [1, 2, 3] }));
        assert!(assigned(&["n=1", "n=2"], &schema()).is_err());
    }

    #[test]
    fn nested_keys_reach_into_objects() {
        let given =
            assigned(&["user.name=7", "user.age=7", "items[0].id=1", "items[1].id=2"], &schema()).unwrap();
        assert_eq!(given, json!({ "user": { "name": "7", "age": 7 }, "items": [{ "id": 1 }, { "id": 2 }] }));
        assert_eq!(assigned(&["dotted.key=1"], &schema()).unwrap(), json!({ "dotted.key": 1 }));
        for bad in [
            &["items[2]=x"][..],
            &["items[=x"],
            &["user.=x"],
            &["s=x", "s.y=z"],
            &["items[999999999]=x"],
            &["=x"],
            &["x"],
        ] {
            assert_eq!(assigned(bad, &schema()).unwrap_err().code(), Code::Usage, "{bad:?}");
        }
    }

    #[test]
    fn files_are_values_and_an_at_sign_can_be_meant() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "[1, 2]").unwrap();
        let path = file.path().display();
        let given =
            assigned(&[&format!("ids=@{path}"), &format!("s=@{path}"), "o=@@home"], &schema()).unwrap();
        assert_eq!(given, json!({ "ids": [1, 2], "s": "[1, 2]", "o": "@home" }));
        let missing = assigned(&["s=@/no/such/file"], &schema()).unwrap_err();
        assert!(missing.message().contains("/no/such/file"), "{missing}");
        assert!(object("--args", &format!("@{path}")).unwrap_err().message().contains("not a JSON object"));
    }

    #[test]
    fn a_number_that_is_too_large_is_called_so() {
        let failure = assigned(&["n=99999999999999999999999"], &schema()).unwrap_err();
        assert!(failure.message().starts_with("n: is too large"), "{failure}");
        assert_eq!(assigned(&["n=18446744073709551615"], &schema()).unwrap(), json!({ "n": u64::MAX }));
        assert_eq!(
            assigned(&["s=99999999999999999999999"], &schema()).unwrap()["s"],
            "99999999999999999999999"
        );
    }

    #[test]
    fn an_option_is_not_told_to_write_its_file_with_two_signs() {
        let missing = object("--args", "@/no/such/file").unwrap_err();
        assert!(missing.advice().is_some_and(|hint| !hint.contains("@@")), "{missing:?}");
    }

    #[test]
    fn a_word_without_a_value_is_answered_with_what_may_be_meant() {
        for word in ["flag", "--flag"] {
            let failure = assigned(&[word], &schema()).unwrap_err();
            assert!(failure.message().ends_with("is not KEY=VALUE; did you mean flag=true?"), "{failure}");
        }
        assert!(assigned(&["{}"], &schema()).unwrap_err().message().ends_with("is not KEY=VALUE"));
    }

    #[test]
    fn prompts_take_texts_only() {
        let words = ["name=Ada=1".to_owned()];
        assert_eq!(strings(&words).unwrap()["name"], "Ada=1");
        assert!(strings(&["n:=1".to_owned()]).is_err());
    }
}
