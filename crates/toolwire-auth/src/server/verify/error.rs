//! Why a verifier cannot be used, or does not say who a token stands for.

use std::{borrow::Cow, error::Error, fmt, time::Duration};

/// Why a verifier cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError(Cow<'static, str>);

impl SettingError {
    /// An error with this message.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for SettingError {}

/// Why a verifier does not say who a token stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "either the token is at fault or it is not")]
pub enum VerifyError {
    /// The token is not valid: answered 401.
    Invalid(Invalid),
    /// Whoever knows cannot be asked now: answered 503, and no client drops its token.
    Unavailable(Unavailable),
}

/// A token is not valid. The reason is for the log of the server: clients are told only that it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(Cow<'static, str>);

impl Invalid {
    /// Which check failed. It must not repeat anything of the token.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self(reason.into())
    }
}

/// Nobody can say now whether a token is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    reason: Cow<'static, str>,
    retry_after: Duration,
}

impl Unavailable {
    /// How long clients are asked to wait unless the issuer has said something else.
    const RETRY_AFTER: Duration = Duration::from_secs(5);

    /// What does not answer.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { reason: reason.into(), retry_after: Self::RETRY_AFTER }
    }

    /// When to try again. Default: after 5 seconds.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = delay;
        self
    }

    pub(crate) fn delay(&self) -> Duration {
        self.retry_after
    }
}

impl From<Invalid> for VerifyError {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<Unavailable> for VerifyError {
    fn from(unavailable: Unavailable) -> Self {
        Self::Unavailable(unavailable)
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(invalid) => invalid.fmt(f),
            Self::Unavailable(unavailable) => unavailable.fmt(f),
        }
    }
}

impl Error for Invalid {}
impl Error for Unavailable {}
impl Error for VerifyError {}
