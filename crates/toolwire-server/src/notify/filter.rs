//! What can have changed, and who wants to hear of it.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::ser::Error as _;
use toolwire_protocol::{
    Method,
    envelope::write_notification,
    wire::{Meta, NotificationParams, ResourceUpdatedNotificationParams, SubscriptionFilter},
};
use toolwire_store::TaskId;

use super::{Custom, TaskFilter};

/// Something that has changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    Tools,
    Prompts,
    Resources,
    Updated(String),
    /// A task, which whoever hears of it has to look at: there is nothing to tell before.
    Task(TaskId),
    Custom(Custom),
}

impl Change {
    /// The notification that tells a client of it, with `_meta` where that is wanted.
    pub(crate) fn message(self, meta: Option<Meta>) -> serde_json::Result<Bytes> {
        let method = match self {
            Self::Tools => Method::ToolListChanged,
            Self::Prompts => Method::PromptListChanged,
            Self::Resources => Method::ResourceListChanged,
            Self::Custom(custom) => return custom.message(meta),
            Self::Task(_) => return Err(serde_json::Error::custom("a task has to be looked at first")),
            Self::Updated(uri) => {
                let mut params = ResourceUpdatedNotificationParams::new(uri);
                params.meta = meta;
                return write_notification(&Method::ResourceUpdated.into(), &params);
            }
        };
        let mut params = NotificationParams::new();
        params.meta = meta;
        write_notification(&method.into(), &params)
    }
}

/// What a subscriber wants to hear of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) uris: BTreeSet<String>,
    pub(crate) custom: CustomFilter,
    pub(crate) tasks: TaskFilter,
}

/// Which notifications of a server's own a subscriber wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CustomFilter {
    All,
    Named(BTreeSet<String>),
}

impl Default for CustomFilter {
    fn default() -> Self {
        Self::Named(BTreeSet::new())
    }
}

impl Filter {
    /// What a legacy client gets without asking.
    pub(crate) fn unsolicited() -> Self {
        Self {
            tools: true,
            prompts: true,
            resources: true,
            uris: BTreeSet::new(),
            custom: CustomFilter::All,
            tasks: TaskFilter::default(),
        }
    }

    pub(crate) fn of(wanted: &SubscriptionFilter) -> Self {
        let on = |flag: Option<bool>| flag == Some(true);
        Self {
            tools: on(wanted.tools_list_changed),
            prompts: on(wanted.prompts_list_changed),
            resources: on(wanted.resources_list_changed),
            uris: wanted.resource_subscriptions.iter().flatten().cloned().collect(),
            custom: CustomFilter::Named(wanted.extra.iter().map(|(name, _)| name.to_owned()).collect()),
            tasks: TaskFilter::default(),
        }
    }

    pub(super) fn wants_custom(&self, method: &str) -> bool {
        match &self.custom {
            CustomFilter::All => true,
            CustomFilter::Named(names) => names.contains(method),
        }
    }

    /// What is subscribed to and covers a resource: itself, or what lies above it.
    pub(super) fn covering(&self, uri: &str) -> Option<&String> {
        self.uris.get(uri).or_else(|| self.uris.iter().find(|parent| is_below(uri, parent)))
    }

    pub(super) fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Updated(uri) => self.covering(uri).is_some(),
            Change::Custom(custom) => self.wants_custom(custom.method()),
            Change::Task(id) => self.tasks.has(id),
        }
    }
}

/// A subscription covers what lies below its URI: a directory's files, a document's parts.
fn is_below(uri: &str, parent: &str) -> bool {
    uri.strip_prefix(parent).is_some_and(|rest| parent.ends_with('/') || rest.starts_with(['/', '#']))
}
