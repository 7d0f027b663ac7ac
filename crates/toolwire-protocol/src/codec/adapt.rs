//! What each revision does not have, or has differently.

use serde_json::{Map, Value};

use crate::{
    ErrorCode, Feature, RawJson, RpcError, Version,
    Version::{V2025_03_26, V2025_06_18, V2025_11_25},
    schema::is_object_root,
    wire::{
        CallToolResult, CompleteResult, Content, DiscoverResult, EmptyResult, GetPromptResult,
        Implementation, InitializeResult, InputRequiredResult, JsonObject, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListTasksResult, ListToolsResult, Prompt,
        ReadResourceResult, Resource, ResourceTemplate, ServerCapabilities, SubscriptionsListenResult,
        TASKS_EXTENSION, Tool,
    },
};

/// Turns a value of the neutral model into what one revision can say.
pub trait Adapt {
    /// Removes and replaces what `version` does not have.
    fn adapt(&mut self, version: Version);
}

/// What everything in a list has: a title, metadata and icons, each since another revision.
macro_rules! adapt_names {
    ($listed:expr, $version:expr) => {
        if $version < V2025_06_18 {
            $listed.title = None;
            $listed.meta = None;
        }
        if $version < V2025_11_25 {
            $listed.icons = None;
        }
    };
}

impl Adapt for Tool {
    fn adapt(&mut self, version: Version) {
        adapt_names!(self, version);
        if version < V2025_03_26 {
            self.annotations = None;
        }
        if !version.has(Feature::StructuredContent) {
            self.output_schema = None;
        }
        if !version.has(Feature::CoreTasks) {
            self.execution = None;
        }
        if !version.has(Feature::AnyStructuredContent) {
            self.output_schema = self.output_schema.take().map(wrap_output_schema);
        }
    }
}

/// The member of an output schema that marks structured content as put behind a member `result`. FastMCP began with it.
#[doc(hidden)]
pub const WRAPPED_RESULT: &str = "x-fastmcp-wrap-result";

/// Before 2026-07-28 structured content was an object; any other schema is put behind a member `result`.
pub fn wrap_output_schema(schema: JsonObject) -> JsonObject {
    if is_object_root(&schema) {
        return schema;
    }
    let mut schema = Value::Object(schema);
    move_references(&mut schema);
    let mut wrapped = Map::new();
    // References to definitions are relative to the root, so the definitions have to stay there.
    if let Some(definitions) = schema.as_object_mut().and_then(|schema| schema.remove("$defs")) {
        wrapped.insert("$defs".into(), definitions);
    }
    let mut properties = Map::new();
    properties.insert("result".into(), schema);
    wrapped.insert("type".into(), "object".into());
    wrapped.insert("properties".into(), properties.into());
    wrapped.insert("required".into(), Value::Array(vec!["result".into()]));
    wrapped.insert(WRAPPED_RESULT.into(), true.into());
    wrapped
}

/// What refers to the root, or to something below it that is not a definition, has to follow it.
fn move_references(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (keyword, value) in members {
                match value {
                    Value::String(target) if keyword == "$ref" => {
                        if target == "#" || (target.starts_with("#/") && !target.starts_with("#/$defs/")) {
                            target.insert_str(1, "/properties/result");
                        }
                    }
                    // What stands in these is data, not schema.
                    _ if matches!(keyword.as_str(), "const" | "enum" | "default" | "examples") => {}
                    value => move_references(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(move_references),
        _ => {}
    }
}

/// Brings the structured content of a result in line with what `version` was told of the tool's output schema: where
/// that is wrapped, so is every value, also one that happens to be an object.
pub fn adapt_to_output_schema(result: &mut CallToolResult, schema: &JsonObject, version: Version) {
    if !version.has(Feature::AnyStructuredContent)
        && !is_object_root(schema)
        && let Some(content) = &mut result.structured_content
    {
        *content = wrap_structured_content(content);
    }
}

/// Puts structured content behind a member `result`, to match [`wrap_output_schema`].
fn wrap_structured_content(content: &RawJson) -> RawJson {
    // The wrapped text is an object around valid JSON.
    RawJson::assembled(format!("{{\"result\":{}}}", content.text())).unwrap_or_else(|_| content.clone())
}

impl Adapt for CallToolResult {
    fn adapt(&mut self, version: Version) {
        self.content.adapt(version);
        if !version.has(Feature::StructuredContent) {
            self.structured_content = None;
        } else if !version.has(Feature::AnyStructuredContent)
            && let Some(content) = self.structured_content.as_mut().filter(|content| !content.is_object())
        {
            *content = wrap_structured_content(content);
        }
    }
}

impl Adapt for Vec<Content> {
    fn adapt(&mut self, version: Version) {
        if version < V2025_11_25 {
            for content in self {
                content.adapt(version);
            }
        }
    }
}

impl Adapt for Content {
    fn adapt(&mut self, version: Version) {
        let text = match self {
            Self::Audio(audio) if version < V2025_03_26 => {
                format!("[audio of type {}, {} bytes in base64]", audio.mime_type, audio.data.len())
            }
            Self::ResourceLink(link) if version < V2025_06_18 => {
                format!("[resource {}: {}]", link.name, link.uri)
            }
            Self::ResourceLink(link) => {
                link.icons = None;
                return;
            }
            _ => return,
        };
        *self = Self::text(text);
    }
}

impl Adapt for Prompt {
    fn adapt(&mut self, version: Version) {
        adapt_names!(self, version);
        if version < V2025_06_18 {
            self.arguments.iter_mut().flatten().for_each(|argument| argument.title = None);
        }
    }
}

impl Adapt for Resource {
    fn adapt(&mut self, version: Version) {
        adapt_names!(self, version);
    }
}

impl Adapt for ResourceTemplate {
    fn adapt(&mut self, version: Version) {
        adapt_names!(self, version);
    }
}

impl Adapt for Implementation {
    fn adapt(&mut self, version: Version) {
        if version < V2025_06_18 {
            self.title = None;
        }
        if version < V2025_11_25 {
            self.icons = None;
            self.description = None;
            self.website_url = None;
        }
    }
}

impl Adapt for ServerCapabilities {
    fn adapt(&mut self, version: Version) {
        if !version.has(Feature::CompletionsCapability) {
            self.completions = None;
        }
        adapt_tasks(self, version);
    }
}

/// Tasks are announced by a capability in one revision and by an extension in the next. Within the SDK they are the
/// capability.
fn adapt_tasks(capabilities: &mut ServerCapabilities, version: Version) {
    let tasks = capabilities.tasks.take();
    if version.has(Feature::CoreTasks) {
        capabilities.tasks = tasks;
    } else if version.has(Feature::TasksExtension) {
        if tasks.is_some() {
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.entry(TASKS_EXTENSION.to_owned()).or_default();
        }
        return;
    }
    // A revision without the extension has its own tasks, or none.
    if let Some(extensions) = &mut capabilities.extensions {
        extensions.remove(TASKS_EXTENSION);
        if extensions.is_empty() {
            capabilities.extensions = None;
        }
    }
}

impl Adapt for InitializeResult {
    fn adapt(&mut self, version: Version) {
        self.capabilities.adapt(version);
        self.server_info.adapt(version);
    }
}

impl Adapt for DiscoverResult {
    fn adapt(&mut self, version: Version) {
        self.capabilities.adapt(version);
    }
}

impl Adapt for GetPromptResult {
    fn adapt(&mut self, version: Version) {
        self.messages.iter_mut().for_each(|message| message.content.adapt(version));
    }
}

impl Adapt for ListToolsResult {
    fn adapt(&mut self, version: Version) {
        self.tools.iter_mut().for_each(|tool| tool.adapt(version));
    }
}

impl Adapt for ListPromptsResult {
    fn adapt(&mut self, version: Version) {
        self.prompts.iter_mut().for_each(|prompt| prompt.adapt(version));
    }
}

impl Adapt for ListResourcesResult {
    fn adapt(&mut self, version: Version) {
        self.resources.iter_mut().for_each(|resource| resource.adapt(version));
    }
}

impl Adapt for ListResourceTemplatesResult {
    fn adapt(&mut self, version: Version) {
        self.resource_templates.iter_mut().for_each(|template| template.adapt(version));
    }
}

macro_rules! the_same_in_every_revision {
    ($($result:ty),+ $(,)?) => {$(
        impl Adapt for $result {
            fn adapt(&mut self, _: Version) {}
        }
    )+};
}

the_same_in_every_revision!(
    ReadResourceResult,
    CompleteResult,
    EmptyResult,
    SubscriptionsListenResult,
    InputRequiredResult,
    ListTasksResult,
);

/// The error as `version` numbers it. Within the SDK a missing resource is always
/// [`ErrorCode::RESOURCE_NOT_FOUND`], which the modern era must not send.
#[must_use]
pub fn adapt_error(version: Version, mut error: RpcError) -> RpcError {
    if version.is_modern() && error.code == ErrorCode::RESOURCE_NOT_FOUND {
        error.code = ErrorCode::INVALID_PARAMS;
    }
    error
}
