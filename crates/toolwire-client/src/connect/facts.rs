//! What the version of the protocol that is spoken has. It is decided here, once, so that nobody else has to know which
//! version it is.

use toolwire_protocol::{Feature, Method, Version};

/// What can be relied on in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Facts {
    /// Results say of what type they are, so that one may ask for input instead of being complete.
    pub(crate) result_types: bool,
    /// Results say for how long they may be kept.
    pub(crate) cache_hints: bool,
    /// The server may send requests of its own.
    pub(crate) server_requests: bool,
    /// Changes are asked for by a request that stays open. Otherwise the server tells of its lists by itself, and is
    /// asked to watch single resources.
    pub(crate) listen_requests: bool,
    /// The client can tell that its roots have changed.
    pub(crate) roots_changes: bool,
    /// The server is told once which log messages to send, and not with each request.
    pub(crate) log_level_is_set: bool,
    /// The server says whether it has completions; the first version had them, but no way to say so.
    pub(crate) completions_are_declared: bool,
    /// A request can say that it may become a task, whichever side sends it.
    pub(crate) core_tasks: bool,
    /// A call becomes a task when the server likes, if the client declares that it can follow one.
    pub(crate) tasks_extension: bool,
}

impl Facts {
    pub(crate) fn of(version: Version) -> Self {
        Self {
            result_types: version.has(Feature::MultiRoundTrip),
            cache_hints: version.has(Feature::CachingHints),
            server_requests: version.has(Feature::ServerRequests),
            listen_requests: Method::Listen.info().from_client(version),
            roots_changes: Method::RootsListChanged.info().from_client(version),
            log_level_is_set: Method::SetLevel.info().from_client(version),
            completions_are_declared: version.has(Feature::CompletionsCapability),
            core_tasks: version.has(Feature::CoreTasks),
            tasks_extension: version.has(Feature::TasksExtension),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_of_the_versions() {
        let first = Facts::of(Version::V2024_11_05);
        let legacy = Facts::of(Version::V2025_11_25);
        let modern = Facts::of(Version::V2026_07_28);
        assert!(!first.completions_are_declared && legacy.completions_are_declared);
        assert_eq!(Facts { completions_are_declared: true, core_tasks: true, ..first }, legacy);
        assert!(legacy.server_requests && legacy.roots_changes && legacy.log_level_is_set);
        assert!(!legacy.listen_requests && !legacy.result_types && !legacy.cache_hints);
        let opposite = Facts {
            result_types: true,
            cache_hints: true,
            server_requests: false,
            listen_requests: true,
            roots_changes: false,
            log_level_is_set: false,
            completions_are_declared: true,
            core_tasks: false,
            tasks_extension: true,
        };
        assert_eq!(modern, opposite);
    }
}
