//! Listening for changes in the modern era.

use super::{Meta, ResultType, macros::wire_struct};

wire_struct! {
    /// Which changes to hear of.
    pub struct SubscriptionFilter {
        /// The list of tools.
        tools_list_changed as "toolsListChanged"?: bool,
        /// The list of prompts.
        prompts_list_changed as "promptsListChanged"?: bool,
        /// The list of resources.
        resources_list_changed as "resourcesListChanged"?: bool,
        /// Single resources, by URI.
        resource_subscriptions as "resourceSubscriptions"?: Vec<String>,
        /// Single tasks, by id; part of the tasks extension.
        task_ids as "taskIds"?: Vec<String>,
    }
}

wire_struct! {
    /// The parameters of `subscriptions/listen`.
    pub struct SubscriptionsListenRequestParams {
        /// Which changes to hear of.
        notifications: SubscriptionFilter,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The result of `subscriptions/listen`, which comes only when the server ends the stream in order.
    pub struct SubscriptionsListenResult {
        /// What kind of result it is.
        result_type as "resultType"?: ResultType,
        /// Metadata, with the subscription's id.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The parameters of `notifications/subscriptions/acknowledged`, the first message on a listen stream.
    pub struct SubscriptionsAcknowledgedNotificationParams {
        /// The changes the server will tell of: what was asked for, or less.
        notifications: SubscriptionFilter,
        /// Metadata, with the subscription's id.
        meta as "_meta"?: Meta,
    }
}
