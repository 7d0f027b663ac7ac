//! Structured content as a table where it is one, and as JSON where it is not.
//!
//! Members stay in the order in which the server wrote them.

use owo_colors::OwoColorize;
use serde_json::Value;
use toolwire::{protocol::RawJson, wire::Keyed};

use super::indented;
use crate::terminal::{MAX_COLUMN, Table, printable, width};

/// How many bytes may become a table; more is for programs.
const MAX_TABLE_BYTES: usize = 64 * 1024;
/// How deep JSON is shown with its members in their order.
const MAX_DEPTH: usize = 64;

/// A cell, and whether it is a number.
type Cell = (String, bool);
/// Names and cells.
type Record = Vec<(String, Cell)>;

/// The value as people like to read it, at most this wide if that is possible.
pub(crate) fn structured(raw: &RawJson, columns: usize) -> String {
    if raw.text().len() > MAX_TABLE_BYTES {
        return large(raw);
    }
    if let Some((text, _)) = scalar(raw) {
        return text;
    }
    if let Some(rows) = rows(raw) {
        return table(&rows, columns);
    }
    object(raw, columns).unwrap_or_else(|| printable(&pretty(raw, 0)))
}

fn scalar(raw: &RawJson) -> Option<Cell> {
    match raw.text().bytes().next()? {
        b'{' | b'[' => None,
        b'"' => raw.decode::<String>().ok().map(|text| (printable(&text), false)),
        b'-' | b'0'..=b'9' => Some((raw.text().to_owned(), true)),
        _ => Some((raw.text().to_owned(), false)),
    }
}

/// A scalar, or a list of scalars with commas between them.
fn cell(raw: &RawJson) -> Option<Cell> {
    if let Some(cell) = scalar(raw) {
        return Some(cell);
    }
    let items: Vec<RawJson> = raw.decode().ok()?;
    let items: Option<Vec<String>> = items.iter().map(|item| scalar(item).map(|(text, _)| text)).collect();
    items.map(|items| (if items.is_empty() { "(empty)".to_owned() } else { items.join(", ") }, false))
}

fn record(raw: &RawJson) -> Option<Record> {
    let members: Keyed<RawJson> = raw.decode().ok()?;
    members.iter().map(|(name, value)| Some((printable(name), cell(value)?))).collect()
}

fn rows(raw: &RawJson) -> Option<Vec<Record>> {
    let items: Vec<RawJson> = raw.decode().ok()?;
    let rows: Option<Vec<Record>> = items.iter().map(record).collect();
    rows.filter(|rows| !rows.is_empty() && rows.iter().any(|row| !row.is_empty()))
}

fn table(rows: &[Record], columns: usize) -> String {
    let one_by_one = || rows.iter().map(|row| pairs(row)).collect::<Vec<_>>().join("\n\n");
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
        // Each column takes a character and a gap.
        if names.len() * 3 > columns + 2 {
            return one_by_one();
        }
    }
    let find =
        |row: &'_ Record, name: &str| row.iter().find(|(key, _)| key == name).map(|(_, cell)| cell.clone());
    let is_number = |name: &&str| {
        let mut cells = rows.iter().filter_map(|row| find(row, name)).peekable();
        cells.peek().is_some() && cells.all(|(_, number)| number)
    };
    let right: Vec<usize> =
        names.iter().enumerate().filter(|(_, name)| is_number(name)).map(|(index, _)| index).collect();
    let mut table = Table::headed(names.iter().map(|name| name.bold().to_string())).right(&right);
    for row in rows {
        table.row(names.iter().map(|name| find(row, name).unwrap_or_default().0));
    }
    let lines_break = rows.iter().flatten().any(|(_, (text, _))| text.contains('\n'));
    let text = table.to_string();
    if !lines_break && text.lines().all(|line| width(line) <= columns) {
        return text;
    }
    // Too wide for a table: one record after the other.
    one_by_one()
}

/// Names and values, one pair per line.
fn pairs(record: &[(String, Cell)]) -> String {
    let longest = record.iter().map(|(name, _)| width(name)).max().unwrap_or_default().min(MAX_COLUMN);
    let lines = record.iter().map(|(name, (text, _))| {
        let fill = " ".repeat(longest - width(name).min(longest));
        let text = indented(text, longest + 2);
        let line = format!("{}{fill}  {}", name.cyan(), text.trim_start());
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// An object of scalars, and of tables below their names.
fn object(raw: &RawJson, columns: usize) -> Option<String> {
    let members: Keyed<RawJson> = raw.decode().ok()?;
    if members.is_empty() {
        return None;
    }
    let (mut plain, mut sections) = (Vec::new(), Vec::new());
    for (name, value) in members.iter() {
        if let Some(cell) = cell(value) {
            plain.push((printable(name), cell));
        } else if let Some(rows) = rows(value) {
            let table = indented(&table(&rows, columns.saturating_sub(2)), 2);
            sections.push(format!("{}\n{table}", printable(name).cyan()));
        } else {
            return None;
        }
    }
    let plain = (!plain.is_empty()).then(|| pairs(&plain));
    Some(plain.into_iter().chain(sections).collect::<Vec<_>>().join("\n\n"))
}

/// JSON with line breaks, its members in their order.
fn pretty(raw: &RawJson, depth: usize) -> String {
    let list = |open: char, close: char, items: Vec<String>| {
        if items.is_empty() {
            return format!("{open}{close}");
        }
        format!("{open}\n{}\n{close}", indented(&items.join(",\n"), 2))
    };
    if depth < MAX_DEPTH && raw.is_object() {
        if let Ok(members) = raw.decode::<Keyed<RawJson>>() {
            let member = |(name, value): (&str, &RawJson)| {
                format!("{}: {}", Value::from(name), pretty(value, depth + 1))
            };
            return list('{', '}', members.iter().map(member).collect());
        }
    } else if depth < MAX_DEPTH
        && raw.text().starts_with('[')
        && let Ok(items) = raw.decode::<Vec<RawJson>>()
    {
        return list('[', ']', items.iter().map(|item| pretty(item, depth + 1)).collect());
    }
    raw.text().to_owned()
}

fn large(raw: &RawJson) -> String {
    let pretty = raw.decode::<Value>().and_then(|value| serde_json::to_string_pretty(&value));
    printable(&pretty.unwrap_or_else(|_| raw.text().to_owned()))
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn shown(json: &str) -> String {
        strip_str(&structured(&RawJson::parse(json).unwrap(), 80)).to_string()
    }

    #[test]
    fn flat_objects_are_a_table_in_the_order_of_the_server() {
        let table = shown(r#"[{"name":"Ada","age":36},{"name":"Al","age":7,"tags":["x","y"]}]"#);
        assert_eq!(table, "name  age  tags\nAda    36\nAl      7  x, y");
        assert_eq!(shown(r#"{"zeta":1,"alpha":"two"}"#), "zeta   1\nalpha  two");
        assert_eq!(shown(r#"{"n":1,"rows":[{"a":1}]}"#), "n  1\n\nrows\n  a\n  1");
    }

    #[test]
    fn what_is_no_table_is_json() {
        assert_eq!(
            shown(r#"{"b":{"z":1,"a":[]},"c":2}"#),
            "{\n  \"b\": {\n    \"z\": 1,\n    \"a\": []\n  },\n  \"c\": 2\n}"
        );
        assert_eq!(shown("[]"), "[]");
        assert_eq!(shown("{}"), "{}");
        assert_eq!(shown("7"), "7");
        assert_eq!(shown(r#""a\u001b[31mb""#), "a\u{fffd}[31mb");
    }

    #[test]
    fn what_does_not_fit_is_one_record_after_the_other() {
        let long = "x".repeat(90);
        assert_eq!(shown(&format!(r#"[{{"a":"{long}","b":1}}]"#)), format!("a  {long}\nb  1"));
        assert_eq!(shown(r#"[{"a":"x\ny","b":1}]"#), "a  x\n   y\nb  1");
    }

    #[test]
    fn records_of_different_members_and_long_names_take_no_more_room_than_they_have() {
        let records: Vec<_> = (0..4000).map(|n| format!(r#"{{"{n:04}":1}}"#)).collect();
        assert_eq!(shown(&format!("[{}]", records.join(","))).lines().count(), 4000 + 3999);
        let short: Vec<_> = (0..3000).map(|n| format!(r#""{n:04}":1"#)).collect();
        let record = format!(r#"{{"{}":1,{}}}"#, "x".repeat(30_000), short.join(","));
        assert!(shown(&record).len() < 1_000_000);
    }

    #[test]
    fn nothing_is_too_deep_or_too_large() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(RawJson::parse(deep.as_str()).is_err() || !shown(&deep).is_empty());
        let deep = format!("{}1{}", r#"{"a":"#.repeat(100), "}".repeat(100));
        assert!(shown(&deep).contains("\"a\""));
        let wide = format!("[{}1]", "1,".repeat(100_000));
        assert!(shown(&wide).starts_with('['));
    }
}
