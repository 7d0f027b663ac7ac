//! For transports: how requests get in, and how their messages and answers get out.
//!
//! Handlers never see this. A transport parses a message, asks [`Server::receive`] what is to be done with it, and
//! starts a [`Call`] for a request. The call is the one engine: it takes its place on the ledgers, runs the handler,
//! ends it when it is cancelled or takes too long, and gives the answer. A transport only drives it and writes down
//! what it says.

mod call;
mod clock;
mod origin;
mod rounds;
mod session;
mod slow;

pub use call::{Arrival, Call, EncodedResponse, Messages, Outcome};
pub(crate) use clock::AskingTime;
pub use origin::{Incoming, RequestOrigin, join_answers};
pub use session::Session;
pub(crate) use slow::SlowRoutes;

pub use crate::admission::{Refusal, Requests};

use toolwire_protocol::{classify::Fault, peek::Peek};

use crate::Server;

impl Server {
    /// Checks the headers that mirror the arguments of a `tools/call`; `lookup` finds one by its lower-case
    /// name. An unknown tool has none to check.
    ///
    /// # Errors
    /// The fault to answer with, when headers and arguments do not agree.
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
        // Arguments that are no object are refused later, as what they are.
        let arguments = peek.arguments.as_deref().and_then(|raw| serde_json::from_slice(raw).ok());
        plan.check(&arguments.unwrap_or_default(), lookup)
            .map_err(|mismatch| Fault::HeaderMismatch(mismatch.to_string()))
    }

    /// Resolves when [`shutdown`](Self::shutdown) has been called.
    pub fn until_shutdown(&self) -> impl Future<Output = ()> + Send + use<> {
        let shutdown = self.shutting_down().clone();
        async move { shutdown.cancelled().await }
    }
}
