//! Reading and writing the union: the member `type` says which struct it is.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
};

use super::Content;
use crate::wire::{
    buffered::Buffered,
    object::{Key, in_field},
};

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(block) => block.serialize(serializer),
            Self::Image(block) => block.serialize(serializer),
            Self::Audio(block) => block.serialize(serializer),
            Self::Resource(block) => block.serialize(serializer),
            Self::ResourceLink(block) => block.serialize(serializer),
            Self::ToolUse(block) => block.serialize(serializer),
            Self::ToolResult(block) => block.serialize(serializer),
            Self::Other(object) => object.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a content block")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        // Nearly everyone writes `type` first; whatever comes before it waits until it is known.
        let mut buffered = Buffered::default();
        while let Some(Key(key)) = map.next_key()? {
            if key == "type" {
                return read_rest(buffered, map);
            }
            buffered.push(key, &mut map)?;
        }
        Err(A::Error::missing_field("type"))
    }
}

fn read_rest<'de, A: MapAccess<'de>>(buffered: Buffered, mut map: A) -> Result<Content, A::Error> {
    let Key(kind) = map.next_value().map_err(|error| in_field("type", &error))?;
    let tag = Some("type");
    match &*kind {
        "text" => buffered.finish(tag, None, map).map(Content::Text),
        "image" => buffered.finish(tag, None, map).map(Content::Image),
        "audio" => buffered.finish(tag, None, map).map(Content::Audio),
        "resource" => buffered.finish(tag, None, map).map(Content::Resource),
        "resource_link" => buffered.finish(tag, None, map).map(Content::ResourceLink),
        "tool_use" => buffered.finish(tag, None, map).map(Content::ToolUse),
        "tool_result" => buffered.finish(tag, None, map).map(Content::ToolResult),
        _ => buffered.into_object(("type", kind.into_owned()), map).map(Content::Other),
    }
}
