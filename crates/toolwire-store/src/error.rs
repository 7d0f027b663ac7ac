//! Why a store could not do what it was asked to.

use std::{error::Error, fmt, sync::Arc};

/// Why an operation of a store failed. Unless a variant says otherwise, nothing was changed.
///
/// It can be cloned, because stores write for several callers at once and tell all of them the same.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The store could not be reached, or did not answer in time. Whether a write has happened is not known; repeating
    /// it does no harm.
    Unavailable(Cause),
    /// A write came from somebody who no longer holds the lease: the task was claimed by another node, was cancelled,
    /// has ended or is gone; or the log has another writer or is gone. It must not be repeated.
    Lost,
    /// Somebody else was faster: what is stored is not what the caller expected. It has to read again.
    Conflict,
    /// There is no room for more. Says of what.
    Full(&'static str),
    /// A value is larger than a store takes. Nothing of the call was written, and repeating it does not help.
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// What it may have, in bytes unless `what` says otherwise.
        limit: usize,
    },
    /// What the store has cannot be read. Somebody has to look at it; repeating does not help.
    Corrupt(Cause),
}

impl StoreError {
    /// The store could not be reached.
    pub fn unavailable(cause: impl Into<Cause>) -> Self {
        Self::Unavailable(cause.into())
    }

    /// What is stored cannot be read.
    pub fn corrupt(cause: impl Into<Cause>) -> Self {
        Self::Corrupt(cause.into())
    }

    /// Whether the same call may succeed later. Then its outcome is unknown: a write may have happened.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(_) => f.write_str("the store cannot be reached"),
            Self::Lost => f.write_str("somebody else has taken this over, or it has ended"),
            Self::Conflict => f.write_str("the stored record has changed meanwhile"),
            Self::Full(what) => write!(f, "there is no room for more {what}"),
            Self::TooLarge { what, limit } => write!(f, "{what} is larger than the limit of {limit}"),
            Self::Corrupt(_) => f.write_str("what is stored cannot be read"),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unavailable(cause) | Self::Corrupt(cause) => Some(&*cause.0),
            Self::Lost | Self::Conflict | Self::Full(_) | Self::TooLarge { .. } => None,
        }
    }
}

/// What is behind an error of a store. It displays as what it was made of.
///
/// ```
/// use toolwire_store::{Cause, StoreError};
///
/// let error = StoreError::unavailable("no answer within 5 s");
/// assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "no answer within 5 s");
/// ```
#[derive(Clone)]
pub struct Cause(Arc<dyn Error + Send + Sync>);

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Cause {
    fn from(error: E) -> Self {
        Self(error.into().into())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
