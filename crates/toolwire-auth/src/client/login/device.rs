//! Logging in with another device.

use std::fmt;

use super::super::device::DeviceCode;
use crate::fetch::BoxFuture;

type Confirm = Box<dyn Fn(DeviceCode) -> BoxFuture<'static, bool> + Send + Sync>;

/// Shows a person the page and the code with which they log in on another device (RFC 8628).
pub struct Device {
    show: Box<dyn Fn(&DeviceCode) + Send + Sync>,
    confirm: Option<Confirm>,
}

impl Device {
    /// Creates a login that calls `show` once, with the code, the page, and the issuer and server that they are for. The page
    /// that has the code in it is opened only if the person wants so.
    pub fn new(show: impl Fn(&DeviceCode) + Send + Sync + 'static) -> Self {
        Self { show: Box::new(show), confirm: None }
    }

    /// Asks first whether to go on, where the page is on another site than the issuer
    /// ([`DeviceCode::is_on_another_site`]). A login that is not gone on with shows no code and fails as declined.
    #[must_use]
    pub fn confirm<F, R>(mut self, confirm: F) -> Self
    where
        F: Fn(DeviceCode) -> R + Send + Sync + 'static,
        R: Future<Output = bool> + Send + 'static,
    {
        self.confirm = Some(Box::new(move |code| Box::pin(confirm(code))));
        self
    }

    /// Returns whether it was shown.
    pub(crate) async fn show(&self, code: &DeviceCode) -> bool {
        if let Some(confirm) = self.confirm.as_ref().filter(|_| code.is_on_another_site())
            && !confirm(code.clone()).await
        {
            return false;
        }
        (self.show)(code);
        true
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Device")
    }
}
