//! For transports: how requests get in, and how their messages and answers get out.
//!
//! Handlers never see this. A transport parses a [`Message`], asks
//! [`Server::classify`] what it is, and starts a [`Call`] for it at a [`Seat`]: as a modern request that stands
//! alone, or as one of a legacy [`Session`].

mod accept;
mod call;
mod flights;
mod rounds;
mod session;

pub use accept::{Acceptor, ConnectionPermit};
pub use call::{Answered, Call, Seat};
pub(crate) use flights::{Flights, Refusal};
pub use session::Session;

use toolwire_protocol::{
    Message,
    classify::{Fault, HeaderView, LegacyView, Verdict, classify},
    peek::Peek,
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

    /// What the ladder has to know of a client without a handshake.
    pub fn without_session(&self) -> LegacyView {
        let legacy = self.catalog().served(self.has_legacy()).latest_legacy();
        if legacy.is_some() { LegacyView::NoPeer } else { LegacyView::Off }
    }
}
