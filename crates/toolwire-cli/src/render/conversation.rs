//! Conversations: the messages of prompts, and what servers want to say to a model.

use owo_colors::OwoColorize;
use toolwire::wire::{Content, ResourceContents, Role};

use super::{decode, size, wrapped};
use crate::terminal::{printable, printable_line};

/// How far messages are indented below the name of who speaks.
const INDENT: usize = 2;

/// One message: who speaks, and what is said.
pub(crate) fn message(role: Role, content: &[Content]) -> String {
    let who = match role {
        Role::User => "user".green().bold().to_string(),
        Role::Assistant => "assistant".blue().bold().to_string(),
    };
    let said: Vec<String> = content.iter().map(|block| wrapped(&spoken(block), INDENT)).collect();
    format!("{who}\n{}", said.join("\n"))
}

/// A block of a message in words.
fn spoken(block: &Content) -> String {
    let bytes = |data: &str| decode(data).map_or_else(|_| "broken".to_owned(), |bytes| size(bytes.len()));
    match block {
        Content::Text(block) => printable(&block.text),
        Content::Image(image) => {
            format!("[image {}, {}]", printable_line(&image.mime_type), bytes(&image.data))
        }
        Content::Audio(audio) => {
            format!("[audio {}, {}]", printable_line(&audio.mime_type), bytes(&audio.data))
        }
        Content::Resource(embedded) => match &embedded.resource {
            ResourceContents::Text(contents) => {
                format!("[resource {}]\n{}", printable_line(&contents.uri), printable(&contents.text))
            }
            ResourceContents::Blob(contents) => {
                format!("[resource {}, {}]", printable_line(&contents.uri), bytes(&contents.blob))
            }
            _ => "[resource]".to_owned(),
        },
        Content::ResourceLink(link) => format!("[link {}]", printable_line(&link.uri)),
        other => printable(&serde_json::to_string(other).unwrap_or_default()),
    }
}
