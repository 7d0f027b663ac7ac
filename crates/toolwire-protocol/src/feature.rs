//! What a revision has and another has not: one table, so that nobody else compares versions.
//!
//! What a method is and which revisions have it is in the table of [`Method`](crate::Method) and not repeated here.

use crate::Version;
use Version::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

macro_rules! features {
    ($($(#[$doc:meta])* $feature:ident = $first:ident ..= $last:ident;)+) => {
        /// Something that only some revisions have. Ask with [`Version::has`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Feature {
            $($(#[$doc])* $feature,)+
        }

        impl Feature {
            /// Every feature, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$feature),+];

            /// The first and the last revision that has it.
            #[inline]
            const fn span(self) -> (Version, Version) {
                match self {
                    $(Self::$feature => ($first, $last),)+
                }
            }
        }
    };
}

features! {
    /// A conversation starts with `initialize`, and both sides remember what was said then.
    Handshake = V2024_11_05 ..= V2025_11_25;
    /// The server may send requests of its own while it serves one.
    ServerRequests = V2024_11_05 ..= V2025_11_25;
    /// Several messages in one array.
    Batches = V2025_03_26 ..= V2025_03_26;
    /// A notification of progress may say what is being done.
    ProgressMessage = V2025_03_26 ..= V2026_07_28;
    /// A server says whether it completes; before, one had to try.
    CompletionsCapability = V2025_03_26 ..= V2026_07_28;
    /// `MCP-Protocol-Version` is sent with every HTTP request.
    VersionHeader = V2025_06_18 ..= V2026_07_28;
    /// The user may be asked with a form.
    Elicitation = V2025_06_18 ..= V2026_07_28;
    /// A tool may return structured content, which is an object.
    StructuredContent = V2025_06_18 ..= V2026_07_28;
    /// The user may be sent to a URL.
    UrlElicitation = V2025_11_25 ..= V2026_07_28;
    /// The server says when what was to be done at a URL has been done, and may ask for a URL by an error.
    ElicitationComplete = V2025_11_25 ..= V2025_11_25;
    /// A model that is asked may call tools.
    SamplingWithTools = V2025_11_25 ..= V2026_07_28;
    /// A call may become a task, which is part of the core and spelled its way.
    CoreTasks = V2025_11_25 ..= V2025_11_25;
    /// A server may close a stream of events before its end, and be polled.
    PollingStreams = V2025_11_25 ..= V2025_11_25;
    /// Every request stands alone and carries its own metadata, the level of log messages included.
    StatelessRequests = V2026_07_28 ..= V2026_07_28;
    /// A call may become a task if the extension for it was declared, which has its own spelling.
    TasksExtension = V2026_07_28 ..= V2026_07_28;
    /// A request may be answered by questions, and sent again with the answers.
    MultiRoundTrip = V2026_07_28 ..= V2026_07_28;
    /// Results say how long they may be kept.
    CachingHints = V2026_07_28 ..= V2026_07_28;
    /// A client that lacks scopes asks for those it has as well as for those that a challenge names.
    ScopeAccumulation = V2026_07_28 ..= V2026_07_28;
    /// Headers of an HTTP request mirror its body.
    MirroredHeaders = V2026_07_28 ..= V2026_07_28;
    /// Structured content may be anything, not only an object.
    AnyStructuredContent = V2026_07_28 ..= V2026_07_28;
    /// A missing capability of the client has an error code of its own.
    MissingCapabilityCode = V2026_07_28 ..= V2026_07_28;
}

impl Version {
    /// Whether this revision has `feature`.
    ///
    /// ```
    /// use toolwire_protocol::{Feature, Version};
    ///
    /// assert!(Version::V2025_03_26.has(Feature::Batches));
    /// assert!(!Version::V2025_06_18.has(Feature::Batches));
    /// ```
    #[inline]
    pub const fn has(self, feature: Feature) -> bool {
        let (first, last) = feature.span();
        first as u8 <= self as u8 && self as u8 <= last as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each cell of the table, written out: the revisions from the oldest to the newest.
    const CELLS: &[(Feature, &str)] = &[
        (Feature::Handshake, "xxxx."),
        (Feature::ServerRequests, "xxxx."),
        (Feature::Batches, ".x..."),
        (Feature::ProgressMessage, ".xxxx"),
        (Feature::CompletionsCapability, ".xxxx"),
        (Feature::VersionHeader, "..xxx"),
        (Feature::Elicitation, "..xxx"),
        (Feature::StructuredContent, "..xxx"),
        (Feature::UrlElicitation, "...xx"),
        (Feature::ElicitationComplete, "...x."),
        (Feature::SamplingWithTools, "...xx"),
        (Feature::CoreTasks, "...x."),
        (Feature::PollingStreams, "...x."),
        (Feature::StatelessRequests, "....x"),
        (Feature::TasksExtension, "....x"),
        (Feature::MultiRoundTrip, "....x"),
        (Feature::CachingHints, "....x"),
        (Feature::ScopeAccumulation, "....x"),
        (Feature::MirroredHeaders, "....x"),
        (Feature::AnyStructuredContent, "....x"),
        (Feature::MissingCapabilityCode, "....x"),
    ];

    #[test]
    fn each_revision_has_what_it_has() {
        assert_eq!(CELLS.iter().map(|(feature, _)| *feature).collect::<Vec<_>>(), Feature::ALL);
        for (feature, cells) in CELLS {
            let has = Version::ALL.map(|version| if version.has(*feature) { 'x' } else { '.' });
            assert_eq!(has.iter().collect::<String>(), *cells, "{feature:?}");
        }
    }

    /// The methods of the method table say the same where both know something.
    #[test]
    fn the_table_of_methods_agrees() {
        use crate::Method;
        for version in Version::ALL {
            for (method, feature) in [
                (Method::Initialize, Feature::Handshake),
                (Method::Ping, Feature::Handshake),
                (Method::Discover, Feature::StatelessRequests),
                (Method::ElicitationComplete, Feature::ElicitationComplete),
                (Method::ListTasks, Feature::CoreTasks),
                (Method::UpdateTask, Feature::TasksExtension),
                (Method::Elicit, Feature::Elicitation),
            ] {
                assert_eq!(method.info().exists_in(version), version.has(feature), "{method:?} {version}");
            }
        }
    }
}
