//! Who is speaking: the program on either side.

use super::macros::{wire_enum, wire_struct};

wire_struct! {
    /// The program that implements a client or a server.
    pub struct Implementation worded {
        /// Its name for programs.
        name: String,
        /// Its name for people, since 2025-06-18.
        title?: String,
        /// Its version.
        version: String,
        /// What it is, since 2025-11-25.
        description?: String,
        /// Where to read about it, since 2025-11-25.
        website_url as "websiteUrl"?: String,
        /// Pictures for a user interface, since 2025-11-25.
        icons?: Vec<Icon>,
    }
}

impl Implementation {
    /// A program of this name, of version 0.0.0 until [`version`](Self::version) says otherwise.
    pub fn named(name: impl Into<String>) -> Self {
        Self::new(name, "0.0.0")
    }

    /// The program's version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }
}

wire_struct! {
    /// A picture for a user interface, since 2025-11-25.
    pub struct Icon {
        /// Where it is: an HTTP URL or a `data:` URI.
        src: String,
        /// Its media type, where the source does not say it.
        mime_type as "mimeType"?: String,
        /// The sizes it is good for, such as `48x48` or `any`.
        sizes?: Vec<String>,
        /// The background it is made for.
        theme?: IconTheme,
    }
}

wire_enum! {
    /// The background an icon is made for.
    pub open enum IconTheme {
        /// A light one.
        Light = "light",
        /// A dark one.
        Dark = "dark",
    }
}
