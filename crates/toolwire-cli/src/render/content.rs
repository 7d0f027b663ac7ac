//! Blocks of content on standard output.

use std::{
    io::{self, IsTerminal, Write},
    path::Path,
};

use owo_colors::OwoColorize;
use serde_json::Value;
use toolwire::{
    protocol::RawJson,
    wire::{Content, ResourceContents},
};

use super::{Saver, columns, structured};
use crate::{
    failure::{Code, Result},
    redact,
    terminal::{Terminal, printable, printable_line},
};

/// Prints text: as it is for programs, and without what could control the terminal for people.
pub(crate) fn text(text: &str) -> Result<()> {
    let text = redact::outgoing(text);
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        out.write_all(printable(&text).as_bytes())?;
    } else {
        out.write_all(text.as_bytes())?;
    }
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// What a tool has returned.
#[derive(Debug)]
pub(crate) struct Blocks<'a> {
    pub(crate) content: &'a [Content],
    pub(crate) structured: Option<&'a RawJson>,
}

impl Blocks<'_> {
    /// Saves the bytes in it and prints nothing.
    pub(crate) fn save(&self, to: &Path) -> Result<()> {
        let pieces: Vec<&Content> = self.content.iter().filter(|block| is_binary(block)).collect();
        let mut saver = Saver::new(Some(to), pieces.len());
        pieces.into_iter().try_for_each(|block| binary(block, &mut saver).map(drop))
    }

    /// Prints everything, and saves the bytes in it where that is wanted.
    pub(crate) fn show(&self, terminal: Terminal, to: Option<&Path>) -> Result<()> {
        let pieces = self.content.iter().filter(|block| is_binary(block)).count();
        if to.is_some() && pieces == 0 {
            terminal.warn("there is nothing to save: the result has no pictures, sounds or other bytes");
        }
        let data: Option<Value> = self.structured.and_then(|data| data.decode().ok());
        let said = self.says_it_as_text(data.as_ref());
        if let Some(raw) = self.structured.filter(|_| !said) {
            terminal.print(structured(raw, columns()))?;
        }
        let mut saver = Saver::new(to, pieces);
        // The same data as text is for clients that know no other.
        let repeats = |block: &&Content| {
            let json = |text: &str| serde_json::from_str::<Value>(text).ok();
            data.is_some() && block.as_text().and_then(json) == data
        };
        for block in self.content.iter().filter(|block| !repeats(block)) {
            show(terminal, block, &mut saver)?;
        }
        if self.content.is_empty() && self.structured.is_none() {
            terminal.note("the tool returned nothing".dimmed());
        }
        Ok(())
    }
}

impl Blocks<'_> {
    /// Whether the data is nothing but what the texts of the content say, in a wrapper, as some servers have it.
    fn says_it_as_text(&self, data: Option<&Value>) -> bool {
        let members = data.and_then(Value::as_object).filter(|members| members.len() == 1);
        let Some(value) = members.and_then(|members| members.values().next()) else { return false };
        let texts: Vec<&str> = self.content.iter().filter_map(|block| block.as_text()).collect();
        let is = |text: &str, value: &Value| match value {
            Value::String(string) => string == text,
            // A number or a list is as good as its JSON.
            other => serde_json::from_str::<Value>(text).is_ok_and(|text| text == *other),
        };
        if texts.iter().any(|text| is(text, value)) {
            return true;
        }
        // Some servers send a block for each item.
        let items = value.as_array().filter(|items| !items.is_empty() && items.len() == texts.len());
        items.is_some_and(|items| items.iter().zip(&texts).all(|(item, text)| is(text, item)))
    }
}

fn is_binary(block: &Content) -> bool {
    match block {
        Content::Image(_) | Content::Audio(_) => true,
        Content::Resource(embedded) => matches!(embedded.resource, ResourceContents::Blob(_)),
        _ => false,
    }
}

/// Saves or summarises a block of bytes.
fn binary(block: &Content, saver: &mut Saver) -> Result<Option<String>> {
    let piece = match block {
        Content::Image(image) => saver.piece("image", Some(&image.mime_type), &image.data)?,
        Content::Audio(audio) => saver.piece("audio", Some(&audio.mime_type), &audio.data)?,
        Content::Resource(embedded) => match &embedded.resource {
            ResourceContents::Blob(contents) => {
                let piece = saver.piece("resource", contents.mime_type.as_deref(), &contents.blob)?;
                format!("{piece}  {}", printable_line(&contents.uri))
            }
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(piece))
}

fn show(terminal: Terminal, block: &Content, saver: &mut Saver) -> Result<()> {
    match binary(block, saver) {
        Ok(Some(piece)) => return terminal.print(piece),
        Ok(None) => {}
        // What cannot be understood does not hide the rest.
        Err(failure) if failure.code() == Code::InvalidAnswer => {
            terminal.warn(failure);
            return Ok(());
        }
        Err(failure) => return Err(failure),
    }
    match block {
        Content::Text(block) => text(&block.text),
        Content::Resource(embedded) => match &embedded.resource {
            ResourceContents::Text(contents) => {
                terminal.print(format!("{} {}", "resource".cyan(), printable_line(&contents.uri)))?;
                text(&contents.text)
            }
            _ => Ok(()),
        },
        Content::ResourceLink(link) => {
            let name = link.title.as_ref().unwrap_or(&link.name);
            let name = format!("({})", printable_line(name));
            terminal.print(format!("{} {} {}", "link".cyan(), printable_line(&link.uri), name.dimmed()))
        }
        other => {
            let json = serde_json::to_string(other).unwrap_or_default();
            terminal.print(format!("{} {}", printable_line(other.kind()).cyan(), printable(&json)))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_said_twice_is_shown_once() {
        let said = |texts: &[&str], data: Value| {
            let content: Vec<Content> = texts.iter().map(|text| Content::text(*text)).collect();
            Blocks { content: &content, structured: None }.says_it_as_text(Some(&data))
        };
        assert!(said(&["5"], json!({ "result": 5 })));
        assert!(said(&["hello"], json!({ "result": "hello" })));
        assert!(said(&["[1, 2]"], json!({ "result": [1, 2] })));
        assert!(said(&["a", "2"], json!({ "result": ["a", 2] })));
        assert!(!said(&["a"], json!({ "result": ["a", "b"] })));
        assert!(!said(&["five"], json!({ "result": 5 })));
        assert!(!said(&[], json!({ "result": [] })));
        assert!(!said(&["5"], json!({ "a": 5, "b": 6 })));
    }
}
