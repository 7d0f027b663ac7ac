//! For transports: how requests get in, and how their messages and answers get out.
//!
//! Handlers never see this. A transport parses a message, asks [`Server::receive`] what is to be done with it, and
//! starts a [`Call`] for a request. The call is the one engine: it takes its place on the ledgers, runs the handler,
//! ends it when it is cancelled or takes too long, and gives the answer. A transport only drives it and writes down
//! what it says.

mod accept;
mod call;
mod clock;
mod detached;
mod ends_at;
mod origin;
pub(crate) mod rounds;
mod session;
mod slow;

pub use accept::{Acceptor, ConnectionPermit};
pub use call::{Arrival, Call, EncodedResponse, Messages, Outcome};
pub(crate) use clock::AskingTime;
pub use detached::DetachedRun;
pub use ends_at::EndsAt;
pub use origin::{Incoming, RequestOrigin, join_answers};
pub use session::{Delivery, Session};
pub(crate) use slow::SlowRoutes;

pub use crate::{
    admission::{Refusal, Requests, no_room},
    tasks::TaskPlace,
};

use toolwire_protocol::{classify::Fault, peek::Peek, wire::JsonObject};

use crate::{Principal, Server};

impl Server {
    /// Checks the headers that mirror the arguments of a `tools/call`; `lookup` finds one by its lower-case
    /// name. An unknown tool has none to check, nor has one that does not exist for the caller.
    ///
    /// # Errors
    /// The fault to answer with, when headers and arguments do not agree, or the arguments cannot be read.
    pub fn check_param_headers<'h>(
        &self,
        peek: &Peek,
        principal: Option<&Principal>,
        lookup: impl Fn(&str) -> Option<&'h str>,
    ) -> Result<(), Fault> {
        let catalog = self.catalog();
        let route = peek.name.as_deref().and_then(|name| catalog.tools.get(name, &self.viewer(principal)));
        let Some(plan) = route.map(|route| &route.input.header_plan).filter(|plan| !plan.is_empty()) else {
            return Ok(());
        };
        // What cannot be read cannot be compared either: it is refused, never taken for absent.
        if let Some(fault) = &peek.fault {
            return Err(Fault::InvalidParams(fault.to_string()));
        }
        let arguments = match peek.arguments.as_deref() {
            Some(raw) => serde_json::from_slice(raw)
                .map_err(|error| Fault::InvalidParams(format!("the arguments cannot be read: {error}")))?,
            None => JsonObject::new(),
        };
        plan.check(&arguments, lookup).map_err(|mismatch| Fault::HeaderMismatch(mismatch.to_string()))
    }

    /// Resolves when [`shutdown`](Self::shutdown) has been called.
    pub fn until_shutdown(&self) -> impl Future<Output = ()> + Send + use<> {
        self.start_tasks();
        let shutdown = self.shutting_down().clone();
        async move { shutdown.cancelled().await }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool;

    #[test]
    fn arguments_that_cannot_be_read_are_never_taken_for_absent() {
        let schema =
            json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
        let server =
            Server::builder("t", "1").tool(tool("t", || async {}).input_schema(schema)).build().unwrap();
        let check = |params: &str, header: Option<&'static str>| {
            let params = toolwire_protocol::RawJson::parse(params).unwrap();
            server.check_param_headers(&Peek::of(&params.into()), None, |_| header)
        };
        assert_eq!(check(r#"{"name":"t","arguments":{"region":"eu"}}"#, Some("eu")), Ok(()));
        assert_eq!(check(r#"{"name":"t"}"#, None), Ok(()));
        assert_eq!(check(r#"{"name":"t","arguments":null}"#, None), Ok(()));
        for (params, header) in [
            (r#"{"name":"t","arguments":{"region":"eu"}}"#, None),
            (r#"{"name":"t","arguments":{"region":"eu"}}"#, Some("us")),
            (r#"{"name":"t"}"#, Some("eu")),
        ] {
            let fault = check(params, header).unwrap_err();
            assert!(matches!(fault, Fault::HeaderMismatch(_)), "{params}: {fault:?}");
        }
        for arguments in ["[]", "[{\"region\":\"eu\"}]", "7", "\"x\"", "true"] {
            let fault = check(&format!(r#"{{"name":"t","arguments":{arguments}}}"#), None).unwrap_err();
            assert!(matches!(fault, Fault::InvalidParams(_)), "{arguments}: {fault:?}");
        }
        // Text that could not be decoded does not come so far.
        for junk in ["1e999", "\"\\ud800\"", "{\"y\":1,\"y\":2}"] {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{"region":"eu","x":{junk}}}}}}}"#
            );
            assert!(toolwire_protocol::Message::parse_and_peek(&text.into()).is_err(), "{junk}");
        }
    }
}
