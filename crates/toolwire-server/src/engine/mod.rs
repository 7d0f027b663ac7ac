//! For transports: how requests get in, and how their messages and answers get out.
//!
//! Handlers never see this. A transport parses a [`Message`], asks
//! [`Server::classify`] what it is, and starts a [`Call`] for it at a [`Seat`]: as a modern request that stands
//! alone, or as one of a legacy [`Session`].

mod call;
mod flights;
mod rounds;
mod session;

pub use call::{Answered, Call, Seat};
pub(crate) use flights::{Flights, Refusal};
pub use session::Session;

use toolwire_protocol::{
    Message,
    classify::{Fault, HeaderView, LegacyView, Verdict, classify},
    peek::Peek,
    wire::JsonObject,
};

use crate::Server;

impl Server {
    /// Says what a message is and whether it may pass: the ladder, for what this server offers now.
    pub fn classify(
        &self,
        message: &Message,
        peek: &Peek,
        http: Option<&HeaderView<'_>>,
        session: Option<&Session>,
    ) -> Verdict {
        let legacy = match session {
            Some(session) => session.view(),
            None => self.without_session(),
        };
        self.classify_as(message, peek, http, legacy)
    }

    /// The same for a transport that keeps its sessions itself and knows best what is behind a message.
    pub fn classify_as(
        &self,
        message: &Message,
        peek: &Peek,
        http: Option<&HeaderView<'_>>,
        legacy: LegacyView,
    ) -> Verdict {
        classify(message, peek, http, self.catalog().served(self.has_legacy()), legacy)
    }

    /// Checks the headers that mirror the arguments of a `tools/call`; `lookup` finds one by its lower-case
    /// name. An unknown tool has none to check.
    ///
    /// # Errors
    /// The fault to answer with, when headers and arguments do not agree, or the arguments cannot be read.
    pub fn check_param_headers<'h>(
        &self,
        peek: &Peek,
        lookup: impl Fn(&str) -> Option<&'h str>,
    ) -> Result<(), Fault> {
        let catalog = self.catalog();
        let route = peek.name.as_deref().and_then(|name| catalog.tools.get(name));
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
        let shutdown = self.shutting_down().clone();
        async move { shutdown.cancelled().await }
    }

    /// What the ladder has to know of a client without a handshake.
    pub fn without_session(&self) -> LegacyView {
        let legacy = self.catalog().served(self.has_legacy()).latest_legacy();
        if legacy.is_some() { LegacyView::NoPeer } else { LegacyView::Off }
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
            server.check_param_headers(&Peek::of(&params.into()), |_| header)
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
            assert!(Message::parse_and_peek(&text.into()).is_err(), "{junk}");
        }
    }
}
