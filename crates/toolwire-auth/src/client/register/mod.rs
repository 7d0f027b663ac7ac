//! Clients: which one asks, and how a new one is registered.

mod choose;
mod client;
mod document;
mod dynamic;

pub(super) use self::{choose::without_issuer, client::by_address};
pub use self::{
    choose::{Identity, choose, recorded},
    client::{AuthMethod, Client, ClientId, Registration, Source},
    document::ClientDocument,
    dynamic::{Refused, accept, request},
};
