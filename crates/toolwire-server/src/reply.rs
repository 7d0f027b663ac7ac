//! The answer to a request, still neutral: the codec makes bytes of it for the caller's revision.

use std::sync::Arc;

use toolwire_protocol::{
    RawJson,
    wire::{
        CallToolResult, CompleteResult, CreateTaskResult, GetPromptResult, InputRequiredResult,
        ReadResourceResult, SubscriptionsListenResult,
    },
};

use crate::{ask::NeedInput, output::Failure};

/// The result of a request. Layers may look at it and change it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Reply {
    /// `tools/call`
    CallTool(CallToolResult),
    /// `prompts/get`
    GetPrompt(GetPromptResult),
    /// `resources/read`
    ReadResource(ReadResourceResult),
    /// `completion/complete`
    Complete(CompleteResult),
    /// The end of `subscriptions/listen`
    Listen(SubscriptionsListenResult),
    /// Questions that have to be answered first, as a handler has returned them.
    NeedInput(NeedInput),
    /// The same on its way to a modern client.
    InputRequired(InputRequiredResult),
    /// The work goes on as a task.
    Task(Box<CreateTaskResult>),
    /// A custom method: any object.
    Custom(RawJson),
    /// Nothing but success.
    Empty,
    /// The error of a handler. The route makes of it what the caller may know, so that no layer sees this.
    #[doc(hidden)]
    Failed(Failure),
    /// A list or a description of the server, serialised when it last changed.
    Prepared(Prepared),
}

/// A result that was serialised ahead of time, for the revision that asked.
#[derive(Clone, Debug)]
pub struct Prepared(pub(crate) Arc<[u8]>);
