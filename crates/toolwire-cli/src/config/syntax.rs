//! From text to values, and from mistakes to their places.

use std::path::Path;

use serde_json::{Map, Value, json};
use toml_edit::{DocumentMut, Item};
use unicode_width::UnicodeWidthStr;

use super::{Format, jsonc};
use crate::{
    failure::{Code, Failure, Result},
    redact,
    terminal::{printable, printable_line},
};

/// How much of a long line is shown on each side of a mistake.
const SHOWN_BESIDE: usize = 60;

/// Reads a text. A mistake is told with its file, line and column, and shown.
pub(crate) fn parse(path: &Path, text: &str, format: Format) -> Result<Value> {
    read(path, text, format, |mistake| mistake.tell(path, text))
}

/// The same for a text of which nothing may be shown.
pub(crate) fn parse_unseen(path: &Path, text: &str, format: Format) -> Result<Value> {
    read(path, text, format, |_| {
        let why =
            "is a link to a file outside of the project that has no settings in it; nothing of it is shown";
        super::file::broken(path, why)
    })
}

fn read(path: &Path, text: &str, format: Format, tell: impl Fn(Mistake) -> Failure) -> Result<Value> {
    match format {
        _ if text.trim().is_empty() && format == Format::Toml => Ok(json!({})),
        _ if text.trim().is_empty() => {
            Err(super::file::broken(path, "is empty; a file without servers should say {}"))
        }
        Format::Json => parse_json(text).map_err(tell),
        Format::Toml => parse_toml(text).map_err(tell),
    }
}

/// What is wrong at some place of a text.
#[derive(Debug, PartialEq, Eq)]
struct Mistake {
    /// The offset in bytes.
    at: usize,
    what: String,
}

fn parse_json(text: &str) -> Result<Value, Mistake> {
    let never_closed =
        |jsonc::NeverClosed(at)| Mistake { at, what: "this comment is never closed".to_owned() };
    let blanked = jsonc::blank(text).map_err(never_closed)?;
    serde_json::from_str(&blanked).map_err(|error| {
        let line =
            text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
        Mistake { at: line + error.column().saturating_sub(1), what: in_words(&error) }
    })
}

/// What serde says, without the place, and in words for people who write settings.
fn in_words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    match text {
        "EOF while parsing an object" => "the file ends inside of { }; is a } missing?",
        "EOF while parsing a list" => "the file ends inside of [ ]; is a ] missing?",
        "EOF while parsing a string" => "the file ends inside of a text; is a \" missing?",
        "EOF while parsing a value" => "the file ends where a value should be",
        "trailing characters" => "something follows after the end of the settings",
        "key must be a string" => "a name in \"quotes\" was expected",
        "expected value" | "expected ident" => {
            "a value was expected: text in \"quotes\", a number, true, false, null, [ or {"
        }
        "expected `,` or `}`" => "a comma or } was expected",
        "expected `,` or `]`" => "a comma or ] was expected",
        "expected `:`" => "a : was expected",
        "control character (\\u0000-\\u001F) found while parsing a string" => {
            "a text must end on the line where it begins; is a \" missing?"
        }
        "recursion limit exceeded" => "this is nested too deeply",
        "invalid escape" => "there is no such escape; a backslash is written \\\\",
        other => other,
    }
    .to_owned()
}

fn parse_toml(text: &str) -> Result<Value, Mistake> {
    match text.parse::<DocumentMut>() {
        Ok(document) => Ok(table(document.as_table())),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            Err(Mistake { at, what: error.message().trim().replace('\n', ", ") })
        }
    }
}

fn table(table: &dyn toml_edit::TableLike) -> Value {
    Value::Object(table.iter().map(|(key, item)| (key.to_owned(), item_value(item))).collect::<Map<_, _>>())
}

fn item_value(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(found) => value(found),
        Item::Table(found) => table(found),
        Item::ArrayOfTables(found) => found.iter().map(|item| table(item)).collect(),
    }
}

fn value(found: &toml_edit::Value) -> Value {
    use toml_edit::Value as Toml;
    match found {
        Toml::String(text) => json!(text.value()),
        Toml::Integer(number) => json!(number.value()),
        Toml::Float(number) => json!(number.value()),
        Toml::Boolean(flag) => json!(flag.value()),
        Toml::Datetime(time) => json!(time.value().to_string()),
        Toml::Array(list) => list.iter().map(value).collect(),
        Toml::InlineTable(found) => table(found),
    }
}

impl Mistake {
    /// The failure with the line that is meant, and a mark below the column.
    fn tell(&self, path: &Path, text: &str) -> Failure {
        // What is missing at the end is missed after the last thing that is there.
        let mut at = self.at.min(text.trim_end().len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let (before, after) = text.split_at(at);
        let line = before.matches('\n').count() + 1;
        let start = before.rsplit('\n').next().unwrap_or_default();
        let length = start.chars().count();
        let column = length + 1;
        let rest = after.lines().next().unwrap_or_default();
        // It may be the line with the password.
        let whole = redact::excerpt(&format!("{start}{rest}"));
        let from = length.saturating_sub(SHOWN_BESIDE);
        let shown_before = shown(whole.chars().skip(from).take(length - from));
        let shown_after = shown(whole.chars().skip(length).take(SHOWN_BESIDE));
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        let indent = " ".repeat(shown_before.width());
        let what = printable_line(&format!("{}:{line}:{column}: {}", path.display(), self.what));
        let message = format!("{what}\n  {number} | {shown_before}{shown_after}\n  {margin} | {indent}^");
        Failure::new(Code::ConfigBroken, message)
            .data(json!({ "file": path, "line": line, "column": column }))
    }
}

/// Characters as they can be shown in one line with a mark below.
fn shown(characters: impl Iterator<Item = char>) -> String {
    printable(&characters.map(|c| if c == '\t' { ' ' } else { c }).collect::<String>()).replace('\n', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, format: Format) -> String {
        parse(Path::new("/x/mcp.json"), text, format).unwrap_err().message().to_owned()
    }

    #[test]
    fn a_mistake_is_shown_where_it_is() {
        let text = "{\n  // names\n  \"mcpServers\": {\n\t\"é\": { \"command\" \"npx\" }\n  }\n}\n";
        insta::assert_snapshot!("a_mistake_in_json", told(text, Format::Json));
        insta::assert_snapshot!(told("a = 1\nb = \n", Format::Toml));
    }

    #[test]
    fn every_kind_of_mistake_has_its_words() {
        let mistakes = [
            "",
            "  \n",
            "{",
            "[1, 2",
            "{\"a",
            "{\"a\":",
            "{} {}",
            "{a: 1}",
            "{\"a\": nope}",
            "{\"a\": 1 \"b\": 2}",
            "[1 2]",
            "{\"a\": \"x\ny\"}",
            "{\"a\": \"C:\\Users\"}",
            "{ /* ",
            "'a'",
            "\u{1b}[31m",
            "[01]",
        ];
        let told: Vec<_> = mistakes
            .iter()
            .map(|text| told(text, Format::Json).lines().next().unwrap_or_default().to_owned())
            .collect();
        insta::assert_snapshot!(told.join("\n"));
    }

    #[test]
    fn long_lines_are_cut_around_the_mistake() {
        let text = format!("[{}x{}]", "1,".repeat(10_000), ",1".repeat(10_000));
        let told = told(&text, Format::Json);
        assert!(told.contains(":1:20002:"), "{told}");
        assert!(told.lines().all(|line| line.len() < 200), "{told}");
    }

    #[test]
    fn deep_nesting_is_a_mistake_and_no_crash() {
        assert!(told(&"[".repeat(100_000), Format::Json).contains("nested too deeply"));
        let toml = format!("a = {}", "[".repeat(100_000));
        assert!(!told(&toml, Format::Toml).is_empty());
    }

    #[test]
    fn toml_becomes_the_same_values() {
        let text = "[mcp_servers.db]\ncommand = 'x'\nargs = ['a']\nenv = { A = 'b' }\nenabled = false\nt = 1.5\nd = 2026-07-28\n";
        let expected = json!({ "mcp_servers": { "db": {
            "command": "x", "args": ["a"], "env": { "A": "b" }, "enabled": false, "t": 1.5, "d": "2026-07-28",
        } } });
        assert_eq!(parse(Path::new("x"), text, Format::Toml).unwrap(), expected);
        assert_eq!(parse(Path::new("x"), "", Format::Toml).unwrap(), json!({}));
    }
}
