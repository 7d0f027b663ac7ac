//! Logging in with another device.

use std::fmt;

use super::super::device::DeviceCode;

/// Shows a person the page and the code with which they log in on another device (RFC 8628).
pub struct Device {
    show: Box<dyn Fn(&DeviceCode) + Send + Sync>,
}

impl Device {
    /// `show` is called once for each login. The page that has the code in it is opened only if the person wants so.
    pub fn new(show: impl Fn(&DeviceCode) + Send + Sync + 'static) -> Self {
        Self { show: Box::new(show) }
    }

    pub(crate) fn show(&self, code: &DeviceCode) {
        (self.show)(code);
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Device")
    }
}
