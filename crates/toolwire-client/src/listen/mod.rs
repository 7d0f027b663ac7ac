//! Hearing of changes: one way for both eras.
//!
//! A modern server is asked with `subscriptions/listen` and acknowledges; a legacy one is asked for single
//! resources with `resources/subscribe` and tells about its lists without being asked.

mod hub;
mod listener;

pub use listener::{ListenBuilder, Listener};

pub(crate) use hub::Hub;
pub(crate) use listener::task_news;

/// Something changed on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources or resource templates.
    Resources,
    /// The resource with this URI. It may lie below the one that is listened to.
    Updated(String),
    /// Changes may have been missed: look at everything again.
    Resync,
    /// Nothing more will come.
    Ended(EndReason),
}

/// Why a [`Listener`] has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// The server ended the subscription in order, and it was not to be renewed or the connection ended, too.
    Graceful,
    /// The server gave the subscription up, and asking again could not help or was not wanted.
    Lost(String),
    /// The connection is over; the text says why.
    Closed(String),
}
