//! The wire model: every type, parameter, result and notification of all five revisions.
//!
//! There is one neutral model, the union over the revisions, in the words of the specification. What a
//! revision does not have is an optional member that stays absent; adding, stripping and renaming for a
//! peer is the work of the era codecs and not done here.
//!
//! All structs behave alike. `new` takes the required members, each optional one has a setter, unknown
//! members are kept in `extra`, a member that occurs twice is refused, and an error names the member it
//! is about. Values that are only passed on, such as a tool's arguments, stay [`RawJson`](crate::RawJson).

mod base;
mod buffered;
mod cache;
mod cancel;
mod capabilities;
mod completion;
mod content;
mod discover;
mod elicitation;
mod extra;
mod implementation;
mod initialize;
mod input;
mod keyed;
mod logging;
mod macros;
pub mod meta;
mod number;
mod object;
mod one_or_many;
mod progress;
mod prompt;
mod resource;
mod root;
mod sampling;
mod string_enum;
mod subscription;
mod task;
mod tool;

#[cfg(test)]
mod tests;

pub(crate) use task::{write_result, write_some};

pub use self::{
    base::{EmptyResult, NotificationParams, PaginatedRequestParams, RequestParams, ResultType, Role},
    cache::{CacheHint, CacheScope},
    cancel::CancelledNotificationParams,
    capabilities::{
        CapabilityMap, ClientCapabilities, ClientTaskRequests, ClientTasksCapability, ElicitationCapability,
        ElicitationTaskRequests, MissingRequiredClientCapabilityData, PromptsCapability, ResourcesCapability,
        RootsCapability, SamplingCapability, SamplingTaskRequests, ServerCapabilities, ServerTaskRequests,
        ServerTasksCapability, TASKS_EXTENSION, ToolTaskRequests, ToolsCapability,
    },
    completion::{
        CompleteRequestParams, CompleteResult, Completion, CompletionArgument, CompletionContext,
        CompletionReference, PromptReference, ResourceTemplateReference,
    },
    content::{
        Annotations, AudioContent, Content, EmbeddedResource, ImageContent, ResourceLink, TextContent,
        ToolResultContent, ToolUseContent,
    },
    discover::{DiscoverResult, UnsupportedProtocolVersionData},
    elicitation::{
        BooleanSchema, ElicitAction, ElicitFormMode, ElicitRequestFormParams, ElicitRequestParams,
        ElicitRequestUrlParams, ElicitResult, ElicitationCompleteNotificationParams, EnumOption,
        LegacyTitledEnumSchema, NumberKind, NumberSchema, PrimitiveSchemaDefinition, RequestedSchema,
        StringFormat, StringSchema, TitledItems, TitledMultiSelectEnumSchema, TitledSingleSelectEnumSchema,
        UntitledItems, UntitledMultiSelectEnumSchema, UntitledSingleSelectEnumSchema,
        UrlElicitationRequiredData,
    },
    extra::Extra,
    implementation::{Icon, IconTheme, Implementation},
    initialize::{InitializeRequestParams, InitializeResult},
    input::{InputRequest, InputRequests, InputRequiredResult, InputResponses},
    keyed::Keyed,
    logging::{LoggingLevel, LoggingMessageNotificationParams, SetLevelRequestParams},
    meta::Meta,
    number::Number,
    one_or_many::OneOrMany,
    progress::ProgressNotificationParams,
    prompt::{
        GetPromptRequestParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage,
    },
    resource::{
        BlobResourceContents, ListResourceTemplatesResult, ListResourcesResult, ReadResourceRequestParams,
        ReadResourceResult, Resource, ResourceContents, ResourceNotFoundData, ResourceTemplate,
        ResourceUpdatedNotificationParams, SubscribeRequestParams, TextResourceContents,
        UnsubscribeRequestParams,
    },
    root::{ListRootsResult, Root},
    sampling::{
        CreateMessageRequestParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences,
        SamplingMessage, StopReason, ToolChoice, ToolChoiceMode,
    },
    subscription::{
        SubscriptionFilter, SubscriptionsAcknowledgedNotificationParams, SubscriptionsListenRequestParams,
        SubscriptionsListenResult,
    },
    task::{
        CreateTaskResult, DetailedTask, ListTasksResult, RelatedTaskMetadata, Task, TaskMetadata,
        TaskRequestParams, TaskStatus, UpdateTaskRequestParams,
    },
    tool::{
        CallToolRequestParams, CallToolResult, ListToolsResult, TaskSupport, Tool, ToolAnnotations,
        ToolExecution,
    },
};

/// A JSON object of any shape.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;
