//! What well-known hosts and models can take, as their makers say.

use std::time::Duration;

/// The longest name of a tool that OpenAI and Anthropic take; letters, digits, `_` and `-` only.
pub(super) const MAX_NAME: usize = 64;

/// The longest description of a tool that OpenAI takes, in characters.
pub(super) const MAX_DESCRIPTION: usize = 1024;

/// How many tools Cursor gives to a model, of all servers together.
pub(super) const CURSOR_TOOLS: usize = 40;

/// How many tools OpenAI and VS Code take.
pub(super) const OPENAI_TOOLS: usize = 128;

/// A catalog that is worth a remark, in estimated tokens.
pub(super) const LARGE_CATALOG: usize = 10_000;

/// A catalog that leaves little room for anything else: some hosts refuse single results of this size.
pub(super) const HUGE_CATALOG: usize = 25_000;

/// A start that is worth a remark; the shortest deadlines of hosts are not much longer.
pub(super) const SLOW_START: Duration = Duration::from_secs(5);

/// Where programs are found that were started from a desktop, without the settings of a shell.
pub(super) const DESKTOP_PATH: [&str; 7] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/sbin", "/opt/homebrew/bin"];

/// The formats that all of the large models know.
pub(super) const USUAL_FORMATS: [&str; 10] =
    ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"];

/// Whether every known host takes this name for a tool.
pub(super) fn is_good_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain)
}

/// How many tokens a text of this many bytes is, roughly.
pub(super) const fn tokens(bytes: usize) -> usize {
    bytes.div_ceil(4)
}
