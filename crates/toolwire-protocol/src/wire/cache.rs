//! How long a result may be kept, and by whom.

use super::{
    DiscoverResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    ReadResourceResult, macros::wire_enum,
};

wire_enum! {
    /// Who may share a cached result.
    #[expect(clippy::exhaustive_enums, reason = "whoever caches must be told about a third scope")]
    pub enum CacheScope {
        /// Anyone.
        Public = "public",
        /// Only the one it was made for.
        Private = "private",
    }
}

/// How long a result stays fresh and who may share it.
///
/// The default is the careful one: stale at once, and private.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "these two members are the whole of it")]
pub struct CacheHint {
    /// For how many milliseconds it stays fresh.
    pub ttl_ms: u64,
    /// Who may share it.
    pub scope: CacheScope,
}

impl CacheHint {
    /// Reads the two members as the specification wants it: what is absent or negative counts as zero,
    /// and without a scope the result is private.
    pub fn of(ttl_ms: Option<i64>, scope: Option<CacheScope>) -> Self {
        Self {
            ttl_ms: ttl_ms.and_then(|ttl| u64::try_from(ttl).ok()).unwrap_or(0),
            scope: scope.unwrap_or(CacheScope::Private),
        }
    }
}

impl Default for CacheHint {
    fn default() -> Self {
        Self::of(None, None)
    }
}

macro_rules! cacheable {
    ($($result:ident),+ $(,)?) => {
        $(impl $result {
            /// How long this result may be kept, and by whom.
            pub fn cache_hint(&self) -> CacheHint {
                CacheHint::of(self.ttl_ms, self.cache_scope)
            }

            /// Sets `ttlMs` and `cacheScope`.
            #[must_use]
            pub fn cached(self, hint: CacheHint) -> Self {
                self.ttl_ms(i64::try_from(hint.ttl_ms).unwrap_or(i64::MAX)).cache_scope(hint.scope)
            }
        })+
    };
}

cacheable! {
    DiscoverResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    ReadResourceResult,
}
