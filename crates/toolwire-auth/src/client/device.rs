//! Asking a person with another device (RFC 8628).

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use super::{
    AuthError, AuthErrorKind, Step, discover,
    error::visible,
    token::{Refusal, seconds},
};
use crate::{Endpoint, Secret, fetch::Response};

/// How often a device asks if the issuer does not say.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(5);
/// The longest that a device waits between two questions.
pub const MAX_INTERVAL: Duration = Duration::from_secs(300);
/// The longest that a device waits for a person.
pub const MAX_WAIT: Duration = Duration::from_secs(3_600);
const MAX_CODE_BYTES: usize = 4 * 1024;
const MAX_USER_CODE_CHARS: usize = 64;

/// What a person has to see.
#[derive(Clone, PartialEq, Eq)]
pub struct DeviceCode {
    /// The page to open on any device.
    pub verification_uri: Endpoint,
    /// The same with the code in it, to be opened only if the person wants so.
    pub verification_uri_complete: Option<Endpoint>,
    /// The code to type there: visible ASCII.
    pub user_code: String,
    /// Until when.
    pub expires: SystemTime,
}

impl fmt::Debug for DeviceCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceCode").field("verification_uri", &self.verification_uri).finish_non_exhaustive()
    }
}

/// A device that waits for a person.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// What the token is asked for with.
    pub code: Secret,
    interval: Duration,
    expires: SystemTime,
}

/// Reads the answer of the device endpoint.
pub fn accept(
    response: &Response,
    endpoint: &Endpoint,
    now: SystemTime,
) -> Result<(DeviceCode, Waiting), AuthError> {
    let fail = |kind, detail: String| AuthError::new(kind, Step::Device, detail).at(endpoint);
    let document = super::token::document(response)
        .map_err(|refusal: Refusal| refusal.into_error(Step::Device, endpoint))?;
    let refused = |detail: String| fail(AuthErrorKind::MetadataRefused, detail);
    let text = |name: &'static str| {
        let missing = move || format!("the answer has no \"{name}\"");
        discover::text(&document, name).and_then(|found| found.ok_or_else(missing)).map_err(refused)
    };
    let page = |text: &str| Endpoint::parse(text).map_err(|why| refused(format!("the page to open {why}")));
    let (code, user_code) = (text("device_code")?, text("user_code")?);
    if code.is_empty() || code.len() > MAX_CODE_BYTES {
        return Err(refused("the code of the device cannot be used".to_owned()));
    }
    if user_code.is_empty() || user_code.chars().count() > MAX_USER_CODE_CHARS {
        return Err(refused("the code for the person cannot be shown".to_owned()));
    }
    let lasts = seconds(&document, "expires_in").map_err(refused)?;
    let lasts = lasts.ok_or_else(|| refused("the answer has no \"expires_in\"".to_owned()))?;
    let expires = now + Duration::from_secs(lasts).min(MAX_WAIT);
    let interval =
        seconds(&document, "interval").map_err(refused)?.map_or(DEFAULT_INTERVAL, Duration::from_secs);
    let complete = discover::text(&document, "verification_uri_complete").map_err(refused)?;
    let shown = DeviceCode {
        verification_uri: page(text("verification_uri")?)?,
        verification_uri_complete: complete.map(page).transpose()?,
        user_code: visible(user_code),
        expires,
    };
    let interval = interval.clamp(Duration::from_secs(1), MAX_INTERVAL);
    Ok((shown, Waiting { code: Secret::from(code), interval, expires }))
}

/// Why a device has to ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// The person has not decided yet.
    Pending,
    /// The same, and it asks too often.
    SlowDown,
    /// The network failed.
    Fault,
}

impl Waiting {
    /// How long to wait before the first question.
    pub fn first(&self, now: SystemTime) -> Result<Duration, AuthError> {
        self.left(now)
    }

    /// How long to wait before the next question, unless the code has expired.
    pub fn again(&mut self, why: Again, now: SystemTime) -> Result<Duration, AuthError> {
        self.interval = match why {
            Again::Pending => self.interval,
            Again::SlowDown => self.interval + Duration::from_secs(5),
            Again::Fault => self.interval * 2,
        }
        .min(MAX_INTERVAL);
        self.left(now)
    }

    fn left(&self, now: SystemTime) -> Result<Duration, AuthError> {
        if now + self.interval >= self.expires {
            let detail = "the code was not confirmed in time";
            return Err(AuthError::new(AuthErrorKind::DeviceExpired, Step::Device, detail));
        }
        Ok(self.interval)
    }
}
