//! Prompts: listing and filling them in.

use std::collections::BTreeMap;

use super::{CacheScope, Content, Icon, InputResponses, Meta, ResultType, Role, macros::wire_struct};

wire_struct! {
    /// A prompt or prompt template that the server offers.
    pub struct Prompt {
        /// Its name for programs.
        name: String,
        /// Its name for people, since 2025-06-18.
        title?: String,
        /// What it is for.
        description?: String,
        /// What can be filled in.
        arguments?: Vec<PromptArgument>,
        /// Pictures for a user interface, since 2025-11-25.
        icons?: Vec<Icon>,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// Something that can be filled into a prompt.
    pub struct PromptArgument {
        /// Its name for programs.
        name: String,
        /// Its name for people, since 2025-06-18.
        title?: String,
        /// What it is for.
        description?: String,
        /// Whether it must be given.
        required?: bool,
    }
}

wire_struct! {
    /// One message of a filled-in prompt.
    pub struct PromptMessage {
        /// Who says it.
        role: Role,
        /// What is said.
        content: Content,
    }
}

impl PromptMessage {
    /// A message of the user.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, content)
    }

    /// A message of the model.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

wire_struct! {
    /// The result of `prompts/list`.
    pub struct ListPromptsResult {
        /// The prompts on this page.
        prompts: Vec<Prompt>,
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
    /// The parameters of `prompts/get`.
    pub struct GetPromptRequestParams {
        /// The prompt to fill in.
        name: String,
        /// What to fill in.
        arguments?: BTreeMap<String, String>,
        /// Answers to what the server asked for, since 2026-07-28.
        input_responses as "inputResponses"?: InputResponses,
        /// What the server gave along with its questions, returned as it came.
        request_state as "requestState"?: String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The result of `prompts/get`.
    pub struct GetPromptResult {
        /// What the prompt is for.
        description?: String,
        /// The messages.
        messages: Vec<PromptMessage>,
        /// What kind of result it is.
        result_type as "resultType"?: ResultType,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}
