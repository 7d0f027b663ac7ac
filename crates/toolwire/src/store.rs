//! Where a server keeps what must outlive a request, a connection or the process.
//!
//! A store is chosen by a URL, so that a program can leave the choice to whoever runs it:
//!
//! | URL | feature | what it is for |
//! | --- | --- | --- |
//! | `memory:` | | bounded memory; gone with the process |
//! | `sqlite:PATH` | `store-sqlite` | a file, for one machine |
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> toolwire::Result<()> {
//! let store = toolwire::store::open("memory:").await?;
//! assert!(!store.is_durable());
//! # Ok(())
//! # }
//! ```

use std::{error::Error, fmt};

pub use toolwire_store::{
    Advance, Answer, Answered, Bus, Cancelled, Cause, Claim, Claimed, Created, Entry, Event, EventLog,
    Finish, Head, Hub, KeyId, Lease, Life, LogKey, LogState, NewHead, NewLease, NewTask, NodeId, NonceStore,
    NotAnId, Op, OpenQuestion, Outcome, Owner, Park, Quota, Renewed, SessionKey, SessionRecord, SessionStore,
    Slice, Store, StoreError, TaskHead, TaskId, TaskNote, TaskRequest, TaskStore, TaskView, Token, Topic,
    Wake, Wakes, limits, memory, pause_before_next,
};
#[cfg(feature = "store-sqlite")]
pub use toolwire_store_sqlite as sqlite;

/// Opens the store that a URL names.
///
/// # Errors
/// When there is no store with this scheme, its feature is not on, or it cannot be opened.
#[cfg_attr(
    not(feature = "store-sqlite"),
    allow(clippy::unused_async, reason = "stores of other schemes wait")
)]
pub async fn open(url: &str) -> Result<Store, OpenError> {
    let scheme = url.split(':').next().unwrap_or_default();
    match scheme {
        "memory" if url == "memory:" => Ok(Store::memory()),
        #[cfg(feature = "store-sqlite")]
        "sqlite" => toolwire_store_sqlite::open(url).await.map_err(OpenError::Failed),
        // Further backends are added here, and with their features to `FEATURES`.
        _ => Err(match FEATURES.iter().find(|(known, _)| *known == scheme) {
            Some((_, feature)) => OpenError::FeatureOff { scheme: scheme.to_owned(), feature },
            None => OpenError::UnknownScheme { scheme: scheme.to_owned() },
        }),
    }
}

/// The schemes of all stores that there are, and what each needs to be turned on.
const FEATURES: &[(&str, &str)] = &[("sqlite", "store-sqlite")];

/// Why a store was not opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no store with this scheme.
    UnknownScheme {
        /// What the URL begins with.
        scheme: String,
    },
    /// The program was built without this store.
    FeatureOff {
        /// What the URL begins with.
        scheme: String,
        /// The feature of the crate `toolwire` that has to be on.
        feature: &'static str,
    },
    /// The store could not be opened.
    Failed(StoreError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownScheme { scheme } => {
                write!(f, "{scheme:?} is not the scheme of a store: there are memory:")?;
                FEATURES.iter().try_for_each(|(scheme, _)| write!(f, ", {scheme}:"))
            }
            Self::FeatureOff { scheme, feature } => write!(
                f,
                "stores of the scheme {scheme}: need the feature {feature:?} of the crate toolwire, which is off"
            ),
            Self::Failed(_) => f.write_str("the store cannot be opened"),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => Some(error),
            Self::UnknownScheme { .. } | Self::FeatureOff { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_scheme_that_is_not_known_or_not_built_in_is_told() {
        assert!(open("memory:").await.is_ok());
        for wrong in ["", "memory:x", "file:tasks.db", "tasks.db", "SQLITE:x"] {
            let error = open(wrong).await.unwrap_err().to_string();
            assert!(error.ends_with("there are memory:, sqlite:"), "{error}");
        }
        let off = OpenError::FeatureOff { scheme: "sqlite".into(), feature: "store-sqlite" };
        assert_eq!(
            off.to_string(),
            "stores of the scheme sqlite: need the feature \"store-sqlite\" of the crate toolwire, which is off"
        );
        #[cfg(not(feature = "store-sqlite"))]
        assert_eq!(open("sqlite:tasks.db").await.unwrap_err().to_string(), off.to_string());
        #[cfg(feature = "store-sqlite")]
        assert!(matches!(open("sqlite:/nowhere/at/all.db").await, Err(OpenError::Failed(_))));
    }
}
