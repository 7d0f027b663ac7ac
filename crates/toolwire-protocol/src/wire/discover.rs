//! Finding out what a server of the modern era is.

use super::{CacheScope, Meta, ResultType, ServerCapabilities, macros::wire_struct};

wire_struct! {
    /// The result of `server/discover`.
    pub struct DiscoverResult {
        /// The revisions the server speaks.
        supported_versions as "supportedVersions": Vec<String>,
        /// What the server can do.
        capabilities: ServerCapabilities,
        /// How to use the server, for the model.
        instructions?: String,
        /// What kind of result it is.
        result_type as "resultType"?: ResultType,
        /// For how many milliseconds it stays fresh.
        ttl_ms as "ttlMs"?: i64,
        /// Who may share a cached copy.
        cache_scope as "cacheScope"?: CacheScope,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The error data that names the revisions a server speaks.
    pub struct UnsupportedProtocolVersionData {
        /// The revisions it speaks.
        supported: Vec<String>,
        /// The revision that was asked for.
        requested: String,
    }
}
