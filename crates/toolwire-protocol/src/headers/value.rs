use std::{borrow::Cow, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// A header value that stands for no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidHeaderValue {
    /// It has characters that no header may have.
    Characters,
    /// It is marked as Base64 but is not: wrong alphabet or padding.
    Base64,
    /// The decoded bytes are not UTF-8.
    Utf8,
}

/// Writes `value` so that it can travel in a header: as it is, or in Base64 between two markers.
///
/// ```
/// use toolwire_protocol::headers::encode_value;
///
/// assert_eq!(encode_value("us-west1"), "us-west1");
/// assert_eq!(encode_value("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
/// ```
pub fn encode_value(value: &str) -> Cow<'_, str> {
    if is_plain(value) {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(format!("{PREFIX}{}{SUFFIX}", STANDARD.encode(value)))
    }
}

/// Reads a header value back.
///
/// A value is encoded when it has both markers; with one of them it stands for itself. White space around
/// the value is not part of it.
pub fn decode_value(header: &str) -> Result<Cow<'_, str>, InvalidHeaderValue> {
    let header = trim(header);
    let encoded = header.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    if let Some(encoded) = encoded {
        let bytes = STANDARD.decode(encoded).map_err(|_| InvalidHeaderValue::Base64)?;
        return String::from_utf8(bytes).map(Cow::Owned).map_err(|_| InvalidHeaderValue::Utf8);
    }
    if header.bytes().all(|byte| is_plain_byte(byte) || byte == b'\t') {
        Ok(Cow::Borrowed(header))
    } else {
        Err(InvalidHeaderValue::Characters)
    }
}

/// Removes the white space that HTTP allows around a value.
pub(super) fn trim(header: &str) -> &str {
    header.trim_matches([' ', '\t'])
}

fn is_plain(value: &str) -> bool {
    let looks_encoded = value.starts_with(PREFIX) && value.ends_with(SUFFIX);
    let is_padded = value.starts_with(' ') || value.ends_with(' ');
    value.bytes().all(is_plain_byte) && !looks_encoded && !is_padded
}

fn is_plain_byte(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

impl fmt::Display for InvalidHeaderValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Characters => "it has characters that a header may not have",
            Self::Base64 => "it is not padded Base64 of the standard alphabet",
            Self::Utf8 => "it does not decode to UTF-8",
        })
    }
}

impl std::error::Error for InvalidHeaderValue {}
