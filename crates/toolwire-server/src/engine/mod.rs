//! For transports: how requests get in, and how their messages and answers get out.
//!
//! Handlers never see this. A transport parses a [`Message`](toolwire_protocol::Message), asks
//! [`Server::classify`] what it is, and starts a [`Call`] for it at a [`Seat`]: as a modern request that stands
//! alone, or as one of a legacy [`Session`].

mod call;
mod flights;
mod session;

pub use call::{Answered, Call, Seat};
pub(crate) use flights::{Flights, Refusal};
pub use session::Session;

use toolwire_protocol::{
    Message,
    classify::{HeaderView, LegacyView, Verdict, classify},
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
        let catalog = self.catalog();
        let legacy = match session {
            Some(session) => session.view(),
            None => self.without_session(),
        };
        classify(message, peek, http, &catalog.served, legacy)
    }

    /// What the ladder has to know of a client without a handshake.
    pub fn without_session(&self) -> LegacyView {
        if self.catalog().served.latest_legacy().is_some() { LegacyView::NoPeer } else { LegacyView::Off }
    }
}
