//! What belongs to no area: empty parameters and results, pages, roles, and the word that tells one
//! kind of result from another.

use super::{
    Meta,
    macros::{wire_enum, wire_struct},
};

wire_struct! {
    /// The parameters of a request that has none of its own: `ping`, `server/discover`, `roots/list`.
    pub struct RequestParams {
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The parameters of a notification that has none of its own, such as
    /// `notifications/tools/list_changed`.
    pub struct NotificationParams {
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The parameters of every list request.
    pub struct PaginatedRequestParams {
        /// Where the page starts. An empty string is a cursor like any other.
        cursor?: String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// A result without members of its own: an acknowledgement.
    pub struct EmptyResult {
        /// What kind of result it is.
        result_type as "resultType"?: ResultType,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_enum! {
    /// Who is speaking in a conversation with a model.
    #[expect(clippy::exhaustive_enums, reason = "a conversation has two sides")]
    pub enum Role {
        /// The person, or whoever asks.
        User = "user",
        /// The model.
        Assistant = "assistant",
    }
}

wire_enum! {
    /// What kind of result this is, since 2026-07-28. Absent means complete.
    pub open enum ResultType {
        /// The request is done.
        Complete = "complete",
        /// The server needs answers first: an [`InputRequiredResult`](super::InputRequiredResult).
        InputRequired = "input_required",
        /// The work goes on as a task: a [`CreateTaskResult`](super::CreateTaskResult).
        Task = "task",
    }
}
