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
use crate::{Endpoint, Issuer, Origins, Secret, fetch::Response};

/// How often a device asks if the issuer does not say.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(5);
/// The longest that a device waits between two questions.
pub const MAX_INTERVAL: Duration = Duration::from_secs(300);
/// The longest that a device waits for a person.
pub const MAX_WAIT: Duration = Duration::from_secs(3_600);
const MAX_CODE_BYTES: usize = 4 * 1024;
const MAX_USER_CODE_CHARS: usize = 64;

/// The code and the page of a login with another device, to be shown to the user.
///
/// The page may be a genuine one of a provider that the user trusts while the code is that of an attacker, which gets the
/// tokens once the user confirms (RFC 8628, 5.4). Only the names of the issuer and of the server tell, so show them.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceCode {
    /// The issuer that gave the code, and gets the confirmation.
    pub issuer: Issuer,
    /// The server to log in to, which named the issuer unless the application did.
    pub server: Endpoint,
    /// The page to open on any device.
    pub verification_uri: Endpoint,
    /// The same with the code in it, to be opened only if the person wants so.
    pub verification_uri_complete: Option<Endpoint>,
    /// The code to type there: visible ASCII.
    pub user_code: String,
    /// Until when.
    pub expires: SystemTime,
}

impl DeviceCode {
    /// Returns whether a page to open is on another site than the issuer: its host is neither that of the issuer nor a
    /// domain above or below it. Some providers have such pages, and so has an attacker who passes a code on.
    pub fn is_on_another_site(&self) -> bool {
        self.page_on_another_site().is_some()
    }

    /// Returns the first page to open that is on another site than the issuer.
    #[doc(hidden)]
    pub fn page_on_another_site(&self) -> Option<&Endpoint> {
        let issuer = Endpoint::parse_trusting(self.issuer.as_str(), &Origins::none()).ok();
        let is_foreign = |page: &&Endpoint| issuer.as_ref().is_none_or(|issuer| !page.same_site(issuer));
        let pages = [Some(&self.verification_uri), self.verification_uri_complete.as_ref()];
        pages.into_iter().flatten().find(is_foreign)
    }
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

/// Reads the answer of the device endpoint of an issuer, for a login to a server.
pub fn accept(
    response: &Response,
    endpoint: &Endpoint,
    issuer: &Issuer,
    server: &Endpoint,
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
        issuer: issuer.clone(),
        server: server.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_not_of_the_issuers_site_is_noticed() {
        for (issuer, page, whole, expected) in [
            ("https://login.example", "https://login.example/go", None, false),
            ("https://login.example/tenant", "https://login.example:8443/go", None, false),
            ("https://accounts.login.example", "https://login.example/go", None, false),
            ("https://login.example", "https://www.login.example/go", None, false),
            (
                "https://login.example",
                "https://login.example/go",
                Some("https://LOGIN.example/go?code=x"),
                false,
            ),
            ("https://login.example", "https://login.example/go", Some("https://other.example/go"), true),
            ("https://evil.example", "https://login.example/go", None, true),
            ("https://evillogin.example", "https://login.example/go", None, true),
            ("https://login.example", "https://evillogin.example/go", None, true),
            ("https://192.0.2.1", "https://2.1/go", None, true),
            ("http://127.0.0.1:1", "http://127.0.0.1:2/go", None, false),
            ("http://127.0.0.1:1", "http://localhost:1/go", None, true),
        ] {
            let at = |text: &str| Endpoint::parse(text).unwrap();
            let code = DeviceCode {
                issuer: Issuer::parse(issuer).unwrap(),
                server: at("https://files.example/mcp"),
                verification_uri: at(page),
                verification_uri_complete: whole.map(at),
                user_code: "ABCD".to_owned(),
                expires: SystemTime::UNIX_EPOCH,
            };
            assert_eq!(code.is_on_another_site(), expected, "{issuer} {page} {whole:?}");
            let named = whole.filter(|_| expected).unwrap_or(page);
            assert_eq!(code.page_on_another_site(), expected.then(|| at(named)).as_ref(), "{issuer} {page}");
        }
    }
}
