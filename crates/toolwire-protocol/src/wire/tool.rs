//! Tools: listing and calling them.

use super::{
    CacheScope, Content, Icon, InputResponses, JsonObject, Meta, ResultType, TaskMetadata,
    macros::{wire_enum, wire_struct},
};
use crate::RawJson;

wire_struct! {
    /// A tool the client can call.
    ///
    /// ```
    /// use toolwire_protocol::wire::{JsonObject, Tool};
    ///
    /// let schema: JsonObject = serde_json::from_str(r#"{"type":"object"}"#).unwrap();
    /// let tool = Tool::new("now", schema).title("What time is it?");
    /// assert_eq!(
    ///     serde_json::to_string(&tool).unwrap(),
    ///     r#"{"name":"now","title":"What time is it?","inputSchema":{"type":"object"}}"#,
    /// );
    /// ```
    pub struct Tool {
        /// Its name for programs.
        name: String,
        /// Its name for people, since 2025-06-18.
        title?: String,
        /// What it does, for the model.
        description?: String,
        /// The JSON Schema of its arguments, an object schema.
        input_schema as "inputSchema": JsonObject,
        /// The JSON Schema of its structured content, since 2025-06-18.
        output_schema as "outputSchema"?: JsonObject,
        /// Hints about how it behaves, since 2025-03-26.
        annotations?: ToolAnnotations,
        /// How it may be executed, in 2025-11-25 only.
        execution?: ToolExecution,
        /// Pictures for a user interface, since 2025-11-25.
        icons?: Vec<Icon>,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// Hints about how a tool behaves. They come from the server and prove nothing.
    pub struct ToolAnnotations {
        /// Its name for people.
        title?: String,
        /// It changes nothing.
        read_only_hint as "readOnlyHint"?: bool,
        /// It may destroy something; only meaningful when it is not read-only.
        destructive_hint as "destructiveHint"?: bool,
        /// Calling it again with the same arguments changes nothing more.
        idempotent_hint as "idempotentHint"?: bool,
        /// It deals with the world outside, such as the web.
        open_world_hint as "openWorldHint"?: bool,
    }
}

wire_struct! {
    /// How a tool may be executed.
    pub struct ToolExecution {
        /// Whether a call may or must become a task.
        task_support as "taskSupport"?: TaskSupport,
    }
}

wire_enum! {
    /// Whether a call of a tool may become a task, in 2025-11-25.
    #[non_exhaustive]
    pub enum TaskSupport {
        /// It must not, which is the default.
        Forbidden = "forbidden",
        /// The client decides.
        Optional = "optional",
        /// It must.
        Required = "required",
    }
}

wire_struct! {
    /// The result of `tools/list`.
    pub struct ListToolsResult {
        /// The tools on this page.
        tools: Vec<Tool>,
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
    /// The parameters of `tools/call`.
    pub struct CallToolRequestParams {
        /// The tool to call.
        name: String,
        /// The arguments, a JSON object.
        arguments?: RawJson,
        /// Asks for a task, in 2025-11-25 only.
        task?: TaskMetadata,
        /// Answers to what the server asked for, since 2026-07-28.
        input_responses as "inputResponses"?: InputResponses,
        /// What the server gave along with its questions, returned as it came.
        request_state as "requestState"?: String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The result of `tools/call`.
    ///
    /// A tool that failed says so here with `isError`; a JSON-RPC error means that it was not run.
    pub struct CallToolResult {
        /// What the tool returned, for the model.
        content: Vec<Content>,
        /// What it returned as data, since 2025-06-18; `null` is a value.
        structured_content as "structuredContent"??: RawJson,
        /// Whether the call failed.
        is_error as "isError"?: bool,
        /// What kind of result it is.
        result_type as "resultType"?: ResultType,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

impl CallToolResult {
    /// A failure with a message for the model.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new([Content::text(message)]).is_error(true)
    }
}
