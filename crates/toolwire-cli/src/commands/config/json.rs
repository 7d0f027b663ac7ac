//! A server in a text of JSON: put in, replaced or taken out, with everything else left as it is written.
//!
//! The new text is read again and must say what the old one said, plus or minus the one server. So a mistake
//! here becomes a message, and never a damaged file.

use std::{fmt::Write, ops::Range, path::Path};

use serde_json::{Map, Value, json};

use super::{
    entry::{Entry, Field},
    outline::{self, Object, skip_space},
};
use crate::{
    config::{Format, jsonc, syntax},
    failure::{Code, Failure, Result},
    target::shell_word,
};

/// How wide a list may be to be written in one line.
const MAX_LINE: usize = 70;

/// The text with the server in it.
pub(super) fn with_server(
    path: &Path,
    text: &str,
    key: &str,
    name: &str,
    entry: &Entry,
    force: bool,
) -> Result<String> {
    // A new file, and one with nothing in it, begins as one without servers.
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let mut expected = syntax::parse(path, text, Format::Json)?;
    let root = expected.as_object_mut().ok_or_else(|| unexpected(path, "the settings are no object { }"))?;
    let servers = root.entry(key).or_insert_with(|| Value::Object(Map::new()));
    let servers =
        servers.as_object_mut().ok_or_else(|| unexpected(path, &format!("{key} is not an object {{ }}")))?;
    if servers.insert(name.to_owned(), entry.value()).is_some() && !force {
        return Err(taken(path, name));
    }
    let source = Source::new(path, text)?;
    let new =
        source.add(key, name, entry).ok_or_else(|| unexpected(path, "its structure is not understood"))?;
    checked(path, new, &expected)
}

/// The text without a server that is in the table that the keys lead to.
pub(super) fn without_server(path: &Path, text: &str, keys: &[String], name: &str) -> Result<String> {
    let mut expected = syntax::parse(path, text, Format::Json)?;
    let table = keys.iter().try_fold(&mut expected, |table, key| table.get_mut(key));
    if let Some(table) = table.and_then(Value::as_object_mut) {
        table.remove(name);
    }
    let source = Source::new(path, text)?;
    let new = source.remove(keys, name).ok_or_else(|| unexpected(path, "its structure is not understood"))?;
    checked(path, new, &expected)
}

/// The failure for a name that is in use.
pub(super) fn taken(path: &Path, name: &str) -> Failure {
    let message = format!("{}: there is a server `{name}` already", path.display());
    Failure::new(Code::Usage, message)
        .hint(format!("--force replaces it; toolwire tools {} shows what it is", shell_word(name)))
}

fn checked(path: &Path, new: String, expected: &Value) -> Result<String> {
    match syntax::parse(path, &new, Format::Json) {
        Ok(value) if value == *expected => Ok(new),
        _ => Err(unexpected(path, "it cannot be edited without changing something else")),
    }
}

pub(super) fn unexpected(path: &Path, why: &str) -> Failure {
    Failure::new(Code::ConfigBroken, format!("{}: {why}; nothing was changed", path.display()))
        .hint("change it by hand")
}

/// A text with what is needed to change it.
struct Source<'a> {
    text: &'a str,
    blanked: jsonc::Blanked,
    style: Style,
}

impl<'a> Source<'a> {
    fn new(path: &Path, text: &'a str) -> Result<Self> {
        let blanked = jsonc::blank(text).map_err(|_| unexpected(path, "a comment is never closed"))?;
        Ok(Self { text, style: Style::of(text, &blanked.text), blanked })
    }

    fn add(&self, key: &str, name: &str, entry: &Entry) -> Option<String> {
        let root = outline::find(&self.blanked.text, &[])?;
        let Some(_) = root.member(key) else {
            let inner = self.inner_indent(&root);
            let server = self.style.entry(&self.style.deeper(&self.style.deeper(&inner)), entry);
            let servers = self.style.object(&self.style.deeper(&inner), &[(name.to_owned(), server)]);
            return Some(self.insert(
                &root,
                key,
                &servers,
                &format!("{{{}: {}}}", json!(name), entry.line()),
            ));
        };
        let servers = outline::find(&self.blanked.text, &[key.to_owned()])?;
        let inner = self.inner_indent(&servers);
        let lines = self.style.entry(&self.style.deeper(&inner), entry);
        match servers.member(name) {
            Some(old) if self.is_one_line(&servers) => {
                Some(self.splice(&[(old.value.clone(), entry.line())]))
            }
            Some(old) => Some(self.splice(&[(old.value.clone(), lines)])),
            None => Some(self.insert(&servers, name, &lines, &entry.line())),
        }
    }

    /// Puts a member at the end of an object.
    fn insert(&self, object: &Object, name: &str, lines: &str, short: &str) -> String {
        let name = json!(name);
        let newline = self.style.newline;
        let indent = self.inner_indent(object);
        let Some(last) = object.members.last() else {
            // Comments may be in it, so what is between the braces stays.
            let inside = self.text.get(object.range.start + 1..object.range.end - 1).unwrap_or_default();
            let end = if inside.contains('\n') {
                String::new()
            } else {
                format!("{newline}{}", self.line_indent(object.range.start))
            };
            let at = object.range.start + 1;
            return self.splice(&[(at..at, format!("{newline}{indent}{name}: {lines}{end}"))]);
        };
        let end = last.value.end;
        if self.is_one_line(object) {
            return self.splice(&[(end..end, format!(", {name}: {short}"))]);
        }
        // A comment behind the last value belongs to it, and so does a comma that was blanked.
        let comma = self.trailing_comma(end);
        let behind = self.end_of_line(comma.map_or(end, |comma| comma + 1));
        let own = if comma.is_some() { "," } else { "" };
        let member = format!("{newline}{indent}{name}: {lines}{own}");
        match comma {
            Some(_) => self.splice(&[(behind..behind, member)]),
            None => self.splice(&[(end..end, ",".to_owned()), (behind..behind, member)]),
        }
    }

    fn remove(&self, keys: &[String], name: &str) -> Option<String> {
        let object = outline::find(&self.blanked.text, keys)?;
        let index = object.members.iter().rposition(|member| member.name == name)?;
        let member = object.members.get(index)?;
        let next = skip_space(&self.blanked.text, member.value.end);
        let comma = if self.blanked.text.as_bytes().get(next) == Some(&b',') {
            Some(next)
        } else {
            self.trailing_comma(member.value.end)
        };
        let mut end = comma.map_or(member.value.end, |comma| comma + 1);
        let mut start = member.start;
        let line = self.text.get(..start)?.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = self.end_of_line(end);
        // Alone on its lines, it takes the line with it.
        let alone = self.text.get(line..start)?.trim().is_empty();
        let to_the_end = matches!(self.text.as_bytes().get(rest), Some(b'\n' | b'\r'));
        if alone && line > 0 && (to_the_end || comma.is_none()) {
            start = line.saturating_sub(1);
            if start > 0 && self.text.as_bytes().get(start - 1) == Some(&b'\r') {
                start -= 1;
            }
            end = rest;
        } else if comma.is_some() {
            end = skip_space(&self.blanked.text, end).min(self.end_of_line(end));
        }
        let mut edits = Vec::new();
        // The one before it is the last now, and needs no comma.
        let before = index.checked_sub(1).and_then(|before| object.members.get(before));
        if let (None, Some(before)) = (comma, before) {
            let comma = skip_space(&self.blanked.text, before.value.end);
            if !alone && self.text.get(comma + 1..start).is_some_and(|between| between.trim().is_empty()) {
                start = comma + 1;
            }
            edits.push((comma..comma + 1, String::new()));
        }
        edits.push((start..end, String::new()));
        Some(self.splice(&edits))
    }

    /// Where a comma is behind a value that is the last of its object.
    fn trailing_comma(&self, mut at: usize) -> Option<usize> {
        loop {
            if let Some(comment) = self.blanked.comments.iter().find(|comment| comment.contains(&at)) {
                at = comment.end;
                continue;
            }
            match self.text.as_bytes().get(at)? {
                b',' => return Some(at),
                byte if byte.is_ascii_whitespace() => at += 1,
                _ => return None,
            }
        }
    }

    /// The end of the line, if only a comment is left on it that ends there; otherwise the same place.
    fn end_of_line(&self, from: usize) -> usize {
        let rest = self.blanked.text.get(from..).unwrap_or_default();
        let length = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let end = from + length;
        let blank = rest.get(..length).is_some_and(|rest| rest.trim().is_empty());
        let inside = self.blanked.comments.iter().any(|comment| comment.start < end && end < comment.end);
        if blank && !inside { end } else { from }
    }

    fn is_one_line(&self, object: &Object) -> bool {
        !object.members.is_empty() && !self.text.get(object.range.clone()).unwrap_or_default().contains('\n')
    }

    /// How far the members of an object are indented.
    fn inner_indent(&self, object: &Object) -> String {
        let begins_line = |at: usize| {
            let before = self.text.get(..at).unwrap_or_default();
            before.rsplit('\n').next().is_some_and(|line| line.trim().is_empty())
        };
        match object.members.iter().find(|member| begins_line(member.start)) {
            Some(member) => self.line_indent(member.start),
            None => self.style.deeper(&self.line_indent(object.range.start)),
        }
    }

    /// How far the line is indented in which this is.
    fn line_indent(&self, at: usize) -> String {
        let before = self.text.get(..at).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
    }

    /// The text with some ranges replaced, which are in order.
    fn splice(&self, edits: &[(Range<usize>, String)]) -> String {
        let mut new = String::new();
        let mut at = 0;
        for (range, text) in edits {
            new += self.text.get(at..range.start).unwrap_or_default();
            new += text;
            at = range.end;
        }
        new + self.text.get(at..).unwrap_or_default()
    }
}

/// How a text is laid out.
struct Style {
    newline: &'static str,
    /// One step of indentation.
    unit: String,
}

impl Style {
    fn of(text: &str, blanked: &str) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let indent = |line: &str| line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect::<String>();
        let lines = blanked.lines().filter(|line| !line.trim().is_empty());
        let unit = lines.map(indent).find(|indent| !indent.is_empty());
        Self { newline, unit: unit.unwrap_or_else(|| "  ".to_owned()) }
    }

    fn deeper(&self, indent: &str) -> String {
        format!("{indent}{}", self.unit)
    }

    /// An object whose members are indented this far.
    fn object(&self, indent: &str, members: &[(String, String)]) -> String {
        let outer = indent.strip_suffix(self.unit.as_str()).unwrap_or_default();
        let mut text = "{".to_owned();
        for (index, (name, value)) in members.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let _ = write!(text, "{comma}{}{indent}{}: {value}", self.newline, json!(name));
        }
        text + self.newline + outer + "}"
    }

    fn entry(&self, indent: &str, entry: &Entry) -> String {
        let field = |(name, field): &(&'static str, Field)| ((*name).to_owned(), self.field(indent, field));
        self.object(indent, &entry.0.iter().map(field).collect::<Vec<_>>())
    }

    fn field(&self, indent: &str, field: &Field) -> String {
        let inner = self.deeper(indent);
        match field {
            Field::Text(text) => json!(text).to_string(),
            Field::List(list) => {
                let items: Vec<_> = list.iter().map(|item| json!(item).to_string()).collect();
                let line = format!("[{}]", items.join(", "));
                if line.len() <= MAX_LINE {
                    return line;
                }
                let separator = format!(",{}{inner}", self.newline);
                format!("[{0}{inner}{1}{0}{indent}]", self.newline, items.join(&separator))
            }
            Field::Pairs(pairs) => {
                let pairs: Vec<_> =
                    pairs.iter().map(|(name, value)| (name.clone(), json!(value).to_string())).collect();
                self.object(&inner, &pairs)
            }
        }
    }
}
