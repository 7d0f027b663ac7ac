//! Asking the client's model.

use super::{
    Content, JsonObject, Meta, Number, OneOrMany, Role, TaskMetadata, Tool,
    macros::{wire_enum, wire_struct},
};

wire_struct! {
    /// The parameters of `sampling/createMessage`.
    pub struct CreateMessageRequestParams {
        /// The conversation so far.
        messages: Vec<SamplingMessage>,
        /// What the server would like of the model.
        model_preferences as "modelPreferences"?: ModelPreferences,
        /// The system prompt the server would like.
        system_prompt as "systemPrompt"?: String,
        /// Whose context to include.
        include_context as "includeContext"?: IncludeContext,
        /// How much the model may vary.
        temperature?: Number,
        /// The most tokens to sample.
        max_tokens as "maxTokens": u64,
        /// Texts at which the model stops.
        stop_sequences as "stopSequences"?: Vec<String>,
        /// Anything for the model's provider.
        metadata?: JsonObject,
        /// Tools the model may ask for, since 2025-11-25.
        tools?: Vec<Tool>,
        /// How the model chooses among them, since 2025-11-25.
        tool_choice as "toolChoice"?: ToolChoice,
        /// Asks for a task, in 2025-11-25 only.
        task?: TaskMetadata,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// One message of a conversation with a model.
    pub struct SamplingMessage {
        /// Who says it.
        role: Role,
        /// What is said: one block, or since 2025-11-25 several.
        content: OneOrMany<Content>,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

impl SamplingMessage {
    /// A message of the user.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, OneOrMany::One(content.into()))
    }

    /// A message of the model.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, OneOrMany::One(content.into()))
    }
}

wire_struct! {
    /// What a server would like of the model; the client decides.
    pub struct ModelPreferences {
        /// Names to look for, the most wanted first.
        hints?: Vec<ModelHint>,
        /// How much low cost matters, from 0 to 1.
        cost_priority as "costPriority"?: Number,
        /// How much speed matters, from 0 to 1.
        speed_priority as "speedPriority"?: Number,
        /// How much intelligence matters, from 0 to 1.
        intelligence_priority as "intelligencePriority"?: Number,
    }
}

wire_struct! {
    /// A name, or part of one, to look for.
    pub struct ModelHint {
        /// Part of the name of a model or a family.
        name?: String,
    }
}

wire_enum! {
    /// Whose context to include in the conversation.
    #[non_exhaustive]
    pub enum IncludeContext {
        /// No one's.
        None = "none",
        /// That of the server that asks.
        ThisServer = "thisServer",
        /// That of all servers.
        AllServers = "allServers",
    }
}

wire_struct! {
    /// How the model chooses among the tools.
    pub struct ToolChoice {
        /// The mode; absent means automatic.
        mode?: ToolChoiceMode,
    }
}

wire_enum! {
    /// Whether the model uses tools.
    #[non_exhaustive]
    pub enum ToolChoiceMode {
        /// It decides.
        Auto = "auto",
        /// It must use at least one.
        Required = "required",
        /// It must not use any.
        None = "none",
    }
}

wire_struct! {
    /// The result of `sampling/createMessage`.
    pub struct CreateMessageResult worded {
        /// Who says it.
        role: Role,
        /// What is said: one block, or since 2025-11-25 several.
        content: OneOrMany<Content>,
        /// The model that said it.
        model: String,
        /// Why it stopped.
        stop_reason as "stopReason"?: StopReason,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

impl CreateMessageResult {
    /// What the assistant said. [`by`](Self::by) names the model.
    pub fn said(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, OneOrMany::One(content.into()), "")
    }

    /// The model that said it.
    #[must_use]
    pub fn by(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self
    }
}

wire_enum! {
    /// Why a model stopped.
    pub open enum StopReason {
        /// It had said everything.
        EndTurn = "endTurn",
        /// It came to a stop sequence.
        StopSequence = "stopSequence",
        /// It had no tokens left.
        MaxTokens = "maxTokens",
        /// It wants to use a tool.
        ToolUse = "toolUse",
    }
}
