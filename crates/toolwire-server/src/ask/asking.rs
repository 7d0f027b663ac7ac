//! How questions reach the caller of one request.

use toolwire_protocol::{Feature, MethodName, Version};

use super::Asks;
use crate::engine::RequestOrigin;

/// How questions reach the caller. It is chosen when a call starts, and nobody behind it asks for the protocol version.
#[derive(Clone, Debug)]
pub(crate) enum Asking {
    /// They are the result of the call. The client comes back with the answers, and the handler runs again.
    Rounds,
    /// They are requests on the stream of the call, and the handler waits for the answers.
    Live(Asks),
    /// They are questions of a task, which waits for the answers without its request.
    Task,
    /// Not at all, and why.
    Closed(&'static str),
}

impl Asking {
    pub(crate) fn of(origin: &RequestOrigin, version: Version, method: &MethodName) -> Self {
        if version.has(Feature::MultiRoundTrip) {
            let rounds = method.known().is_some_and(|method| method.info().multi_round_trip);
            return if rounds { Self::Rounds } else { Self::Closed(ONLY_THREE) };
        }
        match origin {
            RequestOrigin::Session(session) if version.has(Feature::ServerRequests) => {
                Self::Live(session.asks())
            }
            _ => Self::Closed(NO_SESSION),
        }
    }
}

const ONLY_THREE: &str = "only tools/call, prompts/get and resources/read can ask";
const NO_SESSION: &str = "this client has no session to ask in";

#[cfg(test)]
mod tests {
    use toolwire_protocol::Method;

    use super::*;

    #[test]
    fn a_request_that_stands_alone_asks_in_rounds_or_not_at_all() {
        let asking = |version, method: Method| {
            let origin = match version {
                Version::V2026_07_28 => RequestOrigin::Modern(version),
                _ => RequestOrigin::Sessionless(version),
            };
            Asking::of(&origin, version, &method.into())
        };
        for method in [Method::CallTool, Method::GetPrompt, Method::ReadResource] {
            assert!(matches!(asking(Version::V2026_07_28, method), Asking::Rounds), "{method:?}");
        }
        assert!(matches!(asking(Version::V2026_07_28, Method::Complete), Asking::Closed(ONLY_THREE)));
        assert!(matches!(asking(Version::V2025_11_25, Method::CallTool), Asking::Closed(NO_SESSION)));
    }
}
