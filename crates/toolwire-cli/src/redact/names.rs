//! What gives a secret away: the name that it has, or its own shape.

/// Parts of names that say that the value is a secret; compared without case, `-` and `_`.
const SECRET_PARTS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "privatekey",
    "accesskey",
    "bearer",
];
/// Whole names that say so.
const SECRET_NAMES: [&str; 5] = ["pass", "pwd", "auth", "pin", "signature"];
/// Names that only look like it.
const HARMLESS: [&str; 3] = ["progresstoken", "bearerenv", "bearertokenenvvar"];

/// How the tokens of well-known services begin.
const TOKEN_STARTS: [&str; 25] = [
    "sk-",
    "sk_",
    "pk_live_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
    "npm_",
    "pypi-",
    "hf_",
    "lin_api_",
    "ntn_",
    "figd_",
    "ya29.",
];
/// How long such a token is at least.
const MIN_KNOWN_TOKEN: usize = 12;
/// How long a word of mixed letters and digits is at least, to be taken for a token.
const MIN_MIXED_TOKEN: usize = 32;
/// How many letters and digits it has at least.
const MIN_OF_EACH: usize = 4;

/// Whether a name says that the value is a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    // `maxTokens` and its like count words.
    !HARMLESS.contains(&plain.as_str())
        && !plain.ends_with("tokens")
        && (SECRET_NAMES.contains(&plain.as_str()) || SECRET_PARTS.iter().any(|part| plain.contains(part)))
}

/// What names end with that say something about a secret, and are none: `COOKIE_DOMAIN`, `TOKEN_URL`, `SECRET_NAME`.
const DESCRIPTIONS: [&str; 16] = [
    "url", "uri", "host", "domain", "path", "file", "dir", "name", "user", "region", "type", "mode",
    "enabled", "ttl", "port", "header",
];

/// Whether a name is about a secret, so that its value need not be hidden wherever it turns up.
pub(super) fn is_description(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let last = name.rsplit(['_', '-']).next().unwrap_or_default();
    name != last && DESCRIPTIONS.contains(&last)
}

/// Whether a value is nothing but a variable that is yet to be filled in: it shows where a secret will go, and is none.
pub(super) fn is_placeholder(value: &str) -> bool {
    let inner = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| !inner.contains(['$', '}']) && !inner.contains(":-"))
}

/// Whether a word looks like a token, whatever it is called.
pub(super) fn is_token(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+=.".contains(c);
    if !word.chars().all(plain) {
        return false;
    }
    let known = TOKEN_STARTS.iter().any(|start| word.starts_with(start));
    if known && word.len() >= MIN_KNOWN_TOKEN && word.contains(|c: char| c.is_ascii_digit()) {
        return true;
    }
    let count = |which: fn(&u8) -> bool| word.bytes().filter(which).count() >= MIN_OF_EACH;
    let mixed = count(u8::is_ascii_digit) && count(u8::is_ascii_alphabetic);
    // What has dots is a file or a host.
    word.len() >= MIN_MIXED_TOKEN && mixed && !word.contains('.')
}
