//! Resources: listing, reading and watching them.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
};

use super::{
    Annotations, CacheScope, Icon, InputResponses, Meta, ResultType, buffered::Buffered, macros::wire_struct,
    object::Key,
};

wire_struct! {
    /// A resource the server can read.
    pub struct Resource worded {
        /// Where it is.
        uri: String,
        /// Its name for programs.
        name: String,
        /// Its name for people, since 2025-06-18.
        title?: String,
        /// What it is, for the model.
        description?: String,
        /// Its media type.
        mime_type as "mimeType"?: String,
        /// Its size in bytes before any encoding.
        size?: u64,
        /// Pictures for a user interface, since 2025-11-25.
        icons?: Vec<Icon>,
        /// Who it is for.
        annotations?: Annotations,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

impl Resource {
    /// The resource at this URI, which is also its name until [`named`](Self::named) gives it another one.
    pub fn at(uri: impl Into<String>) -> Self {
        let uri = uri.into();
        Self::new(uri.clone(), uri)
    }

    /// The resource's name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

wire_struct! {
    /// A family of resources with a common URI template.
    pub struct ResourceTemplate worded {
        /// Where they are, as an RFC 6570 template.
        uri_template as "uriTemplate": String,
        /// Its name for programs.
        name: String,
        /// Its name for people, since 2025-06-18.
        title?: String,
        /// What they are, for the model.
        description?: String,
        /// Their media type, if all have the same.
        mime_type as "mimeType"?: String,
        /// Pictures for a user interface, since 2025-11-25.
        icons?: Vec<Icon>,
        /// Who they are for.
        annotations?: Annotations,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

impl ResourceTemplate {
    /// The resources at the URIs that fit this template, which is also its name until [`named`](Self::named) gives it
    /// another one.
    pub fn at(uri_template: impl Into<String>) -> Self {
        let uri_template = uri_template.into();
        Self::new(uri_template.clone(), uri_template)
    }

    /// The template's name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

wire_struct! {
    /// The contents of a resource that is text.
    pub struct TextResourceContents worded {
        /// Where it is.
        uri: String,
        /// Its media type.
        mime_type as "mimeType"?: String,
        /// The text.
        text: String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

impl TextResourceContents {
    /// The contents of the resource at this URI, which are empty until [`text`](Self::text) gives them.
    pub fn at(uri: impl Into<String>) -> Self {
        Self::new(uri, "")
    }

    /// The contents.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }
}

wire_struct! {
    /// The contents of a resource that is not text.
    pub struct BlobResourceContents worded {
        /// Where it is.
        uri: String,
        /// Its media type.
        mime_type as "mimeType"?: String,
        /// The bytes in base64.
        blob: String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

impl BlobResourceContents {
    /// The contents of the resource at this URI, which are empty until [`bytes`](Self::bytes) gives them.
    pub fn at(uri: impl Into<String>) -> Self {
        Self::new(uri, "")
    }

    /// The contents, which travel as Base64.
    #[must_use]
    pub fn bytes(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.blob = STANDARD.encode(bytes);
        self
    }
}

/// The contents of a resource: text or bytes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ResourceContents {
    /// It has a member `text`.
    Text(TextResourceContents),
    /// It has a member `blob`.
    Blob(BlobResourceContents),
}

impl ResourceContents {
    /// Text contents.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Text(TextResourceContents::new(uri, text))
    }

    /// Binary contents; the bytes are encoded in base64.
    pub fn blob(uri: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self::Blob(BlobResourceContents::new(uri, STANDARD.encode(bytes)))
    }

    /// Sets the media type.
    #[must_use]
    pub fn mime_type(self, mime_type: impl Into<String>) -> Self {
        match self {
            Self::Text(contents) => Self::Text(contents.mime_type(mime_type)),
            Self::Blob(contents) => Self::Blob(contents.mime_type(mime_type)),
        }
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(contents) => Some(&contents.text),
            Self::Blob(_) => None,
        }
    }

    /// Where the resource is.
    pub fn uri(&self) -> &str {
        match self {
            Self::Text(contents) => &contents.uri,
            Self::Blob(contents) => &contents.uri,
        }
    }
}

impl From<TextResourceContents> for ResourceContents {
    fn from(contents: TextResourceContents) -> Self {
        Self::Text(contents)
    }
}

impl From<BlobResourceContents> for ResourceContents {
    fn from(contents: BlobResourceContents) -> Self {
        Self::Blob(contents)
    }
}

impl Serialize for ResourceContents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(contents) => contents.serialize(serializer),
            Self::Blob(contents) => contents.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ResourceContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ContentsVisitor)
    }
}

struct ContentsVisitor;

impl<'de> Visitor<'de> for ContentsVisitor {
    type Value = ResourceContents;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("resource contents")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ResourceContents, A::Error> {
        let mut buffered = Buffered::default();
        while let Some(Key(key)) = map.next_key()? {
            match &*key {
                "text" => return buffered.finish(None, Some("text"), map).map(ResourceContents::Text),
                "blob" => return buffered.finish(None, Some("blob"), map).map(ResourceContents::Blob),
                _ => buffered.push(key, &mut map)?,
            }
        }
        Err(A::Error::custom("missing field `text` or `blob`"))
    }
}

wire_struct! {
    /// The result of `resources/list`.
    pub struct ListResourcesResult {
        /// The resources on this page.
        resources: Vec<Resource>,
        /// Where the next page starts; absent on the last one.
        next_cursor as "nextCursor"?: String,
        /// What kind of result it is.
        result_type as "resultType"?: ResultType,
        /// For how many milliseconds it stays fresh.
        ttl_ms as "ttlMs"?: i64,
        /// Who may share a cached copy.
        cache_scope as "cacheScope"?: CacheScope,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The result of `resources/templates/list`.
    pub struct ListResourceTemplatesResult {
        /// The templates on this page.
        resource_templates as "resourceTemplates": Vec<ResourceTemplate>,
        /// Where the next page starts; absent on the last one.
        next_cursor as "nextCursor"?: String,
        /// What kind of result it is.
        result_type as "resultType"?: ResultType,
        /// For how many milliseconds it stays fresh.
        ttl_ms as "ttlMs"?: i64,
        /// Who may share a cached copy.
        cache_scope as "cacheScope"?: CacheScope,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The parameters of `resources/read`.
    pub struct ReadResourceRequestParams {
        /// The resource to read.
        uri: String,
        /// Answers to what the server asked for, since 2026-07-28.
        input_responses as "inputResponses"?: InputResponses,
        /// What the server gave along with its questions, returned as it came.
        request_state as "requestState"?: String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The result of `resources/read`.
    pub struct ReadResourceResult {
        /// The contents: of the resource, or of those inside it.
        contents: Vec<ResourceContents>,
        /// What kind of result it is.
        result_type as "resultType"?: ResultType,
        /// For how many milliseconds it stays fresh.
        ttl_ms as "ttlMs"?: i64,
        /// Who may share a cached copy.
        cache_scope as "cacheScope"?: CacheScope,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The parameters of `resources/subscribe`, before 2026-07-28.
    pub struct SubscribeRequestParams {
        /// The resource to watch.
        uri: String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The parameters of `resources/unsubscribe`, before 2026-07-28.
    pub struct UnsubscribeRequestParams {
        /// The resource to watch no longer.
        uri: String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The parameters of `notifications/resources/updated`.
    pub struct ResourceUpdatedNotificationParams {
        /// The resource that changed; it may lie below the one that is watched.
        uri: String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The error data that names the resource which was not found.
    pub struct ResourceNotFoundData {
        /// The resource that was asked for.
        uri: String,
    }
}
