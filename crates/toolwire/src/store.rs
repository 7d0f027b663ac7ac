//! Where a server keeps tasks, so that they outlive a request, a connection or the process.
//!
//! A store is chosen by a URL, so that the program leaves the choice to its operator:
//!
//! | URL | Feature | Use |
//! | --- | --- | --- |
//! | `memory:` | | bounded memory; gone with the process |
//! | `sqlite:PATH` | `store-sqlite` | a file, for the processes of one machine |
//! | `redis://HOST`, `rediss://HOST` | `store-redis` | Redis or Valkey, for replicas on several machines |
//! | `postgres://HOST/DATABASE`, `postgresql://HOST/DATABASE` | `store-postgres` | Postgres, for replicas on several machines |
//!
//! No store is on by default. The guide `docs/stores.md` has the options of each URL, the limits, and the behaviour of
//! a server whose store is slow, out of reach or full.
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
/// Whatever the URL is, no error repeats a password in it.
///
/// # Errors
/// When the scheme is unknown, when its feature is off, or when the store cannot be opened.
#[cfg_attr(
    not(any(feature = "store-sqlite", feature = "store-redis", feature = "store-postgres")),
    allow(clippy::unused_async, reason = "stores of other schemes wait")
)]
pub async fn open(url: &str) -> Result<Store, OpenError> {
    match scheme(url) {
        "memory" if url == "memory:" => Ok(Store::memory()),
        "memory" => {
            Err(OpenError::Failed(StoreError::corrupt("the URL of a store in memory is `memory:` alone")))
        }
        #[cfg(feature = "store-sqlite")]
        "sqlite" => toolwire_store_sqlite::open(url).await.map_err(OpenError::Failed),
        #[cfg(feature = "store-redis")]
        "redis" | "rediss" => toolwire_store_redis::open(url).await.map_err(OpenError::Failed),
        #[cfg(feature = "store-postgres")]
        "postgres" | "postgresql" => toolwire_store_postgres::open(url).await.map_err(OpenError::Failed),
        other => Err(match SCHEMES.iter().find(|(known, _)| *known == other) {
            Some((_, feature)) => OpenError::FeatureOff { scheme: other.to_owned(), feature },
            None => OpenError::UnknownScheme { scheme: other.to_owned() },
        }),
    }
}

/// Schemes of stores besides `memory`, each with the feature that it needs.
const SCHEMES: &[(&str, &str)] = &[
    ("sqlite", "store-sqlite"),
    ("redis", "store-redis"),
    ("rediss", "store-redis"),
    ("postgres", "store-postgres"),
    ("postgresql", "store-postgres"),
];

/// Returns the scheme of a URL, or nothing if there is none: other text may be a secret, and errors show the scheme.
fn scheme(url: &str) -> &str {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if scheme.bytes().all(is_plain) { scheme } else { "" }
}

/// Why a store was not opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no store with this scheme.
    UnknownScheme {
        /// The scheme; empty if the URL has none.
        scheme: String,
    },
    /// The program was built without this store.
    FeatureOff {
        /// The scheme.
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
                match scheme.as_str() {
                    "" => f.write_str("missing store scheme")?,
                    scheme => write!(f, "unknown store scheme `{scheme}`")?,
                }
                f.write_str("; supported: memory:")?;
                SCHEMES.iter().try_for_each(|(scheme, _)| write!(f, ", {scheme}:"))
            }
            Self::FeatureOff { scheme, feature } => write!(
                f,
                "a store with the scheme `{scheme}` needs the feature `{feature}` of the crate `toolwire`, which is off"
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

    /// Returns the whole text of an error, causes included.
    async fn refused(url: &str) -> String {
        let error = open(url).await.unwrap_err();
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        text
    }

    #[tokio::test]
    async fn an_unknown_scheme_is_answered_with_those_there_are() {
        const SUPPORTED: &str = "supported: memory:, sqlite:, redis:, rediss:, postgres:, postgresql:";
        assert!(open("memory:").await.is_ok());
        for (url, said) in [
            ("file:tasks.db", "unknown store scheme `file`"),
            ("SQLITE:x", "unknown store scheme `SQLITE`"),
            ("mysql://me:secret@host/tasks", "unknown store scheme `mysql`"),
            ("", "missing store scheme"),
            ("secret", "missing store scheme"),
            (":secret@host", "missing store scheme"),
            ("//secret@host:1", "missing store scheme"),
        ] {
            assert_eq!(refused(url).await, format!("{said}; {SUPPORTED}"), "{url}");
        }
        assert!(refused("memory:tasks").await.ends_with("is `memory:` alone"));
    }

    #[test]
    fn a_scheme_whose_feature_is_off_names_the_feature() {
        let off = OpenError::FeatureOff { scheme: "redis".into(), feature: "store-redis" };
        assert_eq!(
            off.to_string(),
            "a store with the scheme `redis` needs the feature `store-redis` of the crate `toolwire`, which is off"
        );
    }

    #[cfg(not(any(feature = "store-sqlite", feature = "store-redis", feature = "store-postgres")))]
    #[tokio::test]
    async fn every_scheme_but_memory_needs_a_feature() {
        for (scheme, feature) in SCHEMES {
            let said = refused(&format!("{scheme}://me:secret@127.0.0.1:1/x")).await;
            assert!(said.contains(feature) && !said.contains("secret"), "{said}");
        }
    }

    #[cfg(feature = "store-sqlite")]
    #[tokio::test]
    async fn a_file_that_cannot_be_made_is_an_error() {
        assert!(matches!(open("sqlite:/nowhere/at/all.db").await, Err(OpenError::Failed(_))));
    }

    #[cfg(feature = "store-redis")]
    #[tokio::test]
    async fn redis_is_opened_by_both_schemes_and_no_error_has_the_password() {
        // Nothing listens on this port; with TLS, the connection fails before the handshake.
        for url in ["redis://me:secret@127.0.0.1:1/0", "rediss://me:secret@127.0.0.1:1/0"] {
            let said = refused(url).await;
            assert!(said.contains("Redis cannot be reached") && !said.contains("secret"), "{said}");
        }
        let said = refused("redis://me:secret@127.0.0.1:1/name").await;
        assert!(said.contains("number of a database") && !said.contains("secret"), "{said}");
    }

    #[cfg(feature = "store-postgres")]
    #[tokio::test]
    async fn postgres_is_opened_by_both_schemes_and_no_error_has_the_password() {
        for url in ["postgres://me:secret@127.0.0.1:1/x", "postgresql://me:secret@127.0.0.1:1/x"] {
            let said = refused(url).await;
            assert!(said.contains("Postgres: ") && !said.contains("secret"), "{said}");
        }
        let said = refused("postgres://me:secret@127.0.0.1:1/x?migrate=maybe").await;
        assert!(said.contains("`migrate`") && !said.contains("secret"), "{said}");
    }
}
