//! Ways to a person: a browser, a line to paste, another device.

mod browser;
mod device;
mod listener;
mod page;
mod paste;

use std::{fmt, sync::Arc, time::Duration};

use super::{
    AuthError,
    authorize::{AuthorizationUrl, Callback},
    flow::Redirects,
};
use crate::fetch::BoxFuture;

pub use self::{
    browser::{Browser, open as open_browser},
    device::Device,
    paste::PasteBack,
};

/// How long a person has to answer: five minutes.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The ports of the loopback listener, in the order in which they are tried. They are below those that systems give out
/// by themselves, and all of them are registered at once, so that one registration lasts.
pub const LOOPBACK_PORTS: [u16; 4] = [17853, 17854, 17855, 17856];

/// Shows a page to a person and brings back where the browser was sent from there.
///
/// A web application or a gateway has its own: it gives its `https` redirect, and hands in the query that its route was
/// called with.
pub trait Login: fmt::Debug + Send + Sync + 'static {
    /// Gets ready for an answer, and says where the browser is to go with it. [`done`](Self::done) follows, whatever
    /// happens.
    fn prepare(&self) -> Result<Redirects, AuthError>;

    /// Shows the page, and waits for an answer that [belongs to it](AuthorizationUrl::is_answered_by).
    fn ask(&self, url: AuthorizationUrl) -> BoxFuture<'_, Result<Callback, Declined>>;

    /// The answer is not waited for any more.
    fn done(&self, redirects: &Redirects) {
        let _ = redirects;
    }
}

/// Nobody has logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declined {
    why: String,
}

impl Declined {
    /// For this reason, in words for a person.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into() }
    }
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Declined {}

/// How a person is asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Person {
    /// In a browser.
    Browser(Arc<dyn Login>),
    /// With another device (RFC 8628).
    Device(Arc<Device>),
}

impl<L: Login> From<L> for Person {
    fn from(login: L) -> Self {
        Self::Browser(Arc::new(login))
    }
}

impl From<Device> for Person {
    fn from(device: Device) -> Self {
        Self::Device(Arc::new(device))
    }
}

/// The redirects to this machine, of which this port is listened on.
fn loopback_redirects(port: u16) -> Redirects {
    Redirects::new(LOOPBACK_PORTS.map(loopback), loopback(port)).per_issuer()
}

/// The redirect to a port of this machine.
fn loopback(port: u16) -> String {
    format!("http://127.0.0.1:{port}/callback")
}
