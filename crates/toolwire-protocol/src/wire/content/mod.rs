//! Content blocks: what tools return, prompts contain and models say.
//!
//! One enum covers all revisions and all places. Which kinds a revision or a place allows is for the
//! codec and the handlers to check: `tool_use` and `tool_result` belong to sampling only.

mod union;

#[cfg(test)]
mod tests;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    BlobResourceContents, Icon, JsonObject, Meta, Number, ResourceContents, Role, TextResourceContents,
    macros::wire_struct,
};
use crate::RawJson;

/// One block of content.
///
/// ```
/// use toolwire_protocol::wire::Content;
///
/// let block = Content::image(b"...", "image/png");
/// assert_eq!(
///     serde_json::to_string(&block).unwrap(),
///     r#"{"type":"image","data":"Li4u","mimeType":"image/png"}"#,
/// );
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// `text`: plain text.
    Text(TextContent),
    /// `image`: a picture in base64.
    Image(ImageContent),
    /// `audio`: a sound in base64, since 2025-03-26.
    Audio(AudioContent),
    /// `resource`: a resource with its contents.
    Resource(EmbeddedResource),
    /// `resource_link`: a resource to be read separately, since 2025-06-18.
    ResourceLink(ResourceLink),
    /// `tool_use`: the model asks for a tool call, in sampling since 2025-11-25.
    ToolUse(ToolUseContent),
    /// `tool_result`: the answer to a `tool_use`, in sampling since 2025-11-25.
    ToolResult(ToolResultContent),
    /// A kind that this version of the model does not know; `type` is a member of the object.
    Other(JsonObject),
}

impl Content {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// A picture; the bytes are encoded in base64.
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(STANDARD.encode(bytes), mime_type))
    }

    /// A sound; the bytes are encoded in base64.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(STANDARD.encode(bytes), mime_type))
    }

    /// A resource with its contents.
    pub fn resource(contents: impl Into<ResourceContents>) -> Self {
        Self::Resource(EmbeddedResource::new(contents))
    }

    /// A pointer to a resource.
    pub fn resource_link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::ResourceLink(ResourceLink::new(uri, name))
    }

    /// A model's wish to call a tool.
    pub fn tool_use(id: impl Into<String>, name: impl Into<String>, input: impl Into<RawJson>) -> Self {
        Self::ToolUse(ToolUseContent::new(id, name, input))
    }

    /// The answer to a model's wish to call a tool.
    pub fn tool_result(tool_use_id: impl Into<String>, content: impl Into<Vec<Self>>) -> Self {
        Self::ToolResult(ToolResultContent::new(tool_use_id, content))
    }

    /// The text, if this is a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// The word in `type`.
    pub fn kind(&self) -> &str {
        match self {
            Self::Text(_) => "text",
            Self::Image(_) => "image",
            Self::Audio(_) => "audio",
            Self::Resource(_) => "resource",
            Self::ResourceLink(_) => "resource_link",
            Self::ToolUse(_) => "tool_use",
            Self::ToolResult(_) => "tool_result",
            Self::Other(object) => object.get("type").and_then(|kind| kind.as_str()).unwrap_or_default(),
        }
    }
}

wire_struct! {
    /// Who a piece of content is for and how much it matters.
    pub struct Annotations {
        /// Whom it is meant for.
        audience?: Vec<Role>,
        /// How important it is, from 0 (entirely optional) to 1 (as good as required).
        priority?: Number,
        /// When it was last changed, as an ISO 8601 time; since 2025-06-18.
        last_modified as "lastModified"?: String,
    }
}

wire_struct! {
    /// Text given to or by a model.
    pub struct TextContent tag "type" = "text" {
        /// The text.
        text: String,
        /// Who it is for.
        annotations?: Annotations,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// A picture given to or by a model.
    pub struct ImageContent tag "type" = "image" {
        /// The picture in base64.
        data: String,
        /// Its media type.
        mime_type as "mimeType": String,
        /// Who it is for.
        annotations?: Annotations,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// A sound given to or by a model.
    pub struct AudioContent tag "type" = "audio" {
        /// The sound in base64.
        data: String,
        /// Its media type.
        mime_type as "mimeType": String,
        /// Who it is for.
        annotations?: Annotations,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The contents of a resource inside a prompt or a tool result.
    pub struct EmbeddedResource tag "type" = "resource" {
        /// The contents.
        resource: ResourceContents,
        /// Who it is for.
        annotations?: Annotations,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// A resource the server can read, mentioned in a prompt or a tool result.
    pub struct ResourceLink tag "type" = "resource_link" {
        /// Where it is.
        uri: String,
        /// Its name for programs.
        name: String,
        /// Its name for people.
        title?: String,
        /// What it is.
        description?: String,
        /// Its media type.
        mime_type as "mimeType"?: String,
        /// Its size in bytes before any encoding.
        size?: u64,
        /// Pictures for a user interface.
        icons?: Vec<Icon>,
        /// Who it is for.
        annotations?: Annotations,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// A model's request to call a tool.
    pub struct ToolUseContent tag "type" = "tool_use" {
        /// What the matching [`ToolResultContent`] refers to.
        id: String,
        /// The tool to call.
        name: String,
        /// The arguments, a JSON object.
        input: RawJson,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// What a tool call that the model asked for has returned.
    pub struct ToolResultContent tag "type" = "tool_result" {
        /// The id of the [`ToolUseContent`].
        tool_use_id as "toolUseId": String,
        /// What the tool returned.
        content: Vec<Content>,
        /// What it returned as data; `null` is a value.
        structured_content as "structuredContent"??: RawJson,
        /// Whether the call failed.
        is_error as "isError"?: bool,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

macro_rules! into_content {
    ($($variant:ident($block:ident)),+) => {
        $(impl From<$block> for Content {
            fn from(block: $block) -> Self {
                Self::$variant(block)
            }
        })+
    };
}

into_content! {
    Text(TextContent), Image(ImageContent), Audio(AudioContent), Resource(EmbeddedResource),
    ResourceLink(ResourceLink), ToolUse(ToolUseContent), ToolResult(ToolResultContent)
}

impl From<TextResourceContents> for Content {
    fn from(contents: TextResourceContents) -> Self {
        Self::resource(contents)
    }
}

impl From<BlobResourceContents> for Content {
    fn from(contents: BlobResourceContents) -> Self {
        Self::resource(contents)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}
