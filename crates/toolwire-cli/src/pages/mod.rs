//! The offline pages: one for every code that this program prints, and for those that servers answer with.
//!
//! A page is a Markdown file beside this one. It is named here, once, or it does not exist.

#[cfg(test)]
mod tests;

use crate::terminal::closest;

/// What is known about a code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// What is typed after `toolwire explain`.
    pub(crate) code: &'static str,
    text: &'static str,
}

/// Pages that belong together.
#[derive(Debug)]
pub(crate) struct Chapter {
    pub(crate) title: &'static str,
    pub(crate) pages: &'static [Page],
}

/// Declares the chapters: each page by its code, and by its file where that has another name.
macro_rules! chapters {
    ($($title:literal: $($code:literal $(in $file:literal)?,)*;)*) => {
        /// All pages.
        pub(crate) const CHAPTERS: &[Chapter] = &[$(Chapter {
            title: $title,
            pages: &[$(Page { code: $code, text: chapters!(@text $code $($file)?) },)*],
        },)*];
    };
    (@text $code:literal) => { include_str!(concat!($code, ".md")) };
    (@text $code:literal $file:literal) => { include_str!($file) };
}

chapters! {
    "What this program says":
        "other", "io", "config-broken", "rpc-error", "not-supported", "unanswerable", "unhealthy",
        "message-too-large", "too-deep", "task-expired", "task-cancelled",
        "usage",
        "unknown-server", "switched-off", "unknown-name", "auth-needed", "forbidden", "not-trusted",
        "spawn-failed", "unreachable",
        "connection-closed", "timeout", "not-mcp", "no-common-version", "tool-error", "invalid-arguments",
        "invalid-answer", "input-required", "interrupted",;
    "What toolwire doctor finds":
        "program-not-found", "program-not-executable", "interpreter-missing", "directory-missing",
        "exits-at-once", "junk-on-stdout", "slow-start", "dies-on-discover", "path-differs", "legacy-only",
        "modern-only", "dns-failed", "connection-refused", "tls-certificate", "tls-mismatch", "proxy-in-use",
        "host-refused", "wrong-path", "method-refused", "web-page", "redirected", "sse-only",
        "server-failing", "rate-limited", "list-failed", "list-endless", "schema-invalid",
        "schema-not-object", "schema-not-portable", "schema-unusual", "hidden-text", "description-suspicious", "tool-name", "duplicate-name",
        "too-many-tools", "description-missing", "description-long", "argument-undescribed",
        "annotations-missing", "catalog-large", "nothing-offered",;
    "What is wrong with a login":
        "login-expired", "login-refused", "scope-missing", "challenge-unreadable", "resource-metadata-missing",
        "resource-mismatch", "issuer-mismatch", "issuer-slash", "issuer-metadata-missing", "pkce-missing",
        "registration-impossible", "metadata-refused", "resource-refused", "clock-wrong", "credentials-exposed",;
    "What servers say of their tasks":
        "task-abandoned", "no-such-revision", "store-unreachable",;
    "What servers answer (JSON-RPC)":
        "-32700" in "rpc-32700.md", "-32600" in "rpc-32600.md", "-32601" in "rpc-32601.md",
        "-32602" in "rpc-32602.md", "-32603" in "rpc-32603.md", "-32000" in "rpc-32000.md",
        "-32001" in "rpc-32001.md", "-32002" in "rpc-32002.md", "-32020" in "rpc-32020.md",
        "-32021" in "rpc-32021.md", "-32022" in "rpc-32022.md", "-32042" in "rpc-32042.md",
        "-1" in "rpc-1.md",;
    "What servers answer (HTTP)":
        "http-400", "http-401", "http-403", "http-404", "http-405", "http-406", "http-413", "http-415",
        "http-421", "http-429", "http-5xx",;
    "How this program ends":
        "exit-0", "exit-1", "exit-2", "exit-3", "exit-4", "exit-5", "exit-6", "exit-7", "exit-130",;
}

impl Page {
    /// What the code means, in a few words.
    pub(crate) fn title(&self) -> &'static str {
        let heading = self.text.lines().next().unwrap_or_default();
        heading.split_once(": ").map_or(heading, |(_, title)| title)
    }

    /// The page in Markdown.
    pub(crate) const fn markdown(&self) -> &'static str {
        self.text
    }
}

/// Every page there is.
pub(crate) fn all() -> impl Iterator<Item = &'static Page> {
    CHAPTERS.iter().flat_map(|chapter| chapter.pages)
}

/// The page of a code, in any of the ways that people write it: `-32601`, `rpc-32601`, `401`, `HTTP 401`, `exit 4`.
pub(crate) fn find(code: &str) -> Option<&'static Page> {
    let code = code.trim().to_ascii_lowercase().replace([' ', '_'], "-");
    let code = code.trim_matches(|c| matches!(c, '[' | ']' | '`' | ':'));
    let named = |code: &str| all().find(|page| page.code == code);
    named(code).or_else(|| {
        let number = code.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim_start_matches('-');
        let number = number.trim_start_matches("status-").trim_start_matches("error-");
        let value: u32 = number.parse().ok()?;
        match value {
            _ if code.starts_with("rpc") => named(&format!("-{value}")),
            // All signals have the page of the best known.
            129 | 131 | 143 if !code.starts_with("http") => named("exit-130"),
            0..=130 if !code.starts_with("http") => named(&format!("exit-{value}")),
            500..=599 => named("http-5xx"),
            400..=499 => named(&format!("http-{value}")),
            32000..=32768 => named(&format!("-{value}")),
            _ => None,
        }
    })
}

/// The codes that are written much like this one, the closest first, or else those whose titles have the word.
pub(crate) fn close_to(code: &str) -> Vec<&'static str> {
    const MOST: usize = 3;
    let close = closest(code, all().map(|page| page.code));
    if !close.is_empty() || code.is_empty() {
        return close;
    }
    let word = code.to_lowercase();
    let about = all().filter(|page| page.title().to_lowercase().contains(&word));
    about.map(|page| page.code).take(MOST).collect()
}
