//! The folders and files the client lets a server work on.

use super::{Meta, macros::wire_struct};

wire_struct! {
    /// A folder or file a server may work on.
    pub struct Root {
        /// Where it is, a `file://` URI.
        uri: String,
        /// Its name for people.
        name?: String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The result of `roots/list`.
    pub struct ListRootsResult {
        /// The roots.
        roots: Vec<Root>,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}
