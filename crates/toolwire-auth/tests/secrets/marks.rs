//! Secrets that can be recognised, whole or in part, in whatever form they appear.

use std::sync::{LazyLock, Mutex, PoisonError};

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};

/// What is in every secret that this test makes up, several times, so that a part of one is recognised, too.
const MARK: &str = "mArK3d/S3cR3t+";

/// Secrets that others made up: tokens that were signed, keys, codes of the client. They are told by their pieces.
static LEARNED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A secret of which every part gives it away.
pub(crate) fn secret(kind: &str) -> String {
    format!("{MARK}{kind}{MARK}{MARK}")
}

/// Remembers a secret that somebody else made up.
pub(crate) fn learn(secret: &str) {
    // The first part of a signed token only says how it was signed.
    let telling = match secret.split_once('.') {
        Some((_, rest)) if secret.starts_with("eyJ") => rest,
        _ => secret,
    };
    if telling.len() >= PIECE && !telling.contains("mArK3d") {
        LEARNED.lock().unwrap_or_else(PoisonError::into_inner).push(telling.to_owned());
    }
}

/// How much of a secret counts as one.
const PIECE: usize = 16;

static FORMS: LazyLock<Vec<String>> = LazyLock::new(|| forms(MARK));

/// What a secret can look like.
fn forms(secret: &str) -> Vec<String> {
    let bytes = secret.as_bytes();
    let each =
        |one: fn(&u8) -> String, between: &str| bytes.iter().map(one).collect::<Vec<_>>().join(between);
    let mut forms = vec![
        secret.to_owned(),
        secret.chars().rev().collect(),
        url::form_urlencoded::byte_serialize(bytes).collect(),
        secret.replace('/', "%2F").replace('+', "%2B"),
        secret.replace('/', "%2f").replace('+', "%2b"),
        secret.replace('/', "\\/"),
        each(|byte| format!("{byte:02x}"), ""),
        each(|byte| format!("{byte:02X}"), ""),
        each(ToString::to_string, ", "),
        each(|byte| format!("0x{byte:02x}"), ", "),
    ];
    // In Base64 a text looks different by where it begins; what depends on its neighbours is left out.
    for before in 0..3 {
        let encoded = BASE64_STANDARD_NO_PAD.encode([&vec![0; before][..], bytes].concat());
        let inner: String = encoded[(before * 4).div_ceil(3)..encoded.len() - 2].to_owned();
        forms.push(inner.replace('+', "-").replace('/', "_"));
        forms.push(inner);
    }
    forms
}

/// What is in a text that must not be there, with what is around it.
pub(crate) fn leaked(text: &str) -> Option<String> {
    let learned = LEARNED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut pieces = learned.iter().flat_map(|secret| {
        secret
            .as_bytes()
            .chunks(PIECE)
            .filter(|piece| piece.len() == PIECE)
            .map(|piece| std::str::from_utf8(piece).unwrap())
    });
    let form = FORMS.iter().map(String::as_str).find(|form| text.contains(form));
    let found = form.or_else(|| pieces.find(|piece| text.contains(piece)))?;
    let line = text.lines().find(|line| line.contains(found)).unwrap_or(text);
    Some(format!("{found} in: {}", line.chars().take(2_000).collect::<String>()))
}

/// How many secrets others made up.
pub(crate) fn learned() -> usize {
    LEARNED.lock().unwrap_or_else(PoisonError::into_inner).len()
}

#[test]
fn secrets_are_found_in_every_form() {
    let whole = secret("x");
    let percent: String = url::form_urlencoded::byte_serialize(whole.as_bytes()).collect();
    let hex = whole.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    for text in [
        whole.clone(),
        percent,
        hex,
        format!("{:?}", whole.as_bytes()),
        format!("{:?}", bytes::Bytes::from(whole.clone())),
        serde_json::json!(whole).to_string(),
        BASE64_STANDARD_NO_PAD.encode(&whole),
        BASE64_STANDARD_NO_PAD.encode(format!("id:{whole}")),
        BASE64_STANDARD_NO_PAD.encode(format!("a:{whole}")),
        base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(format!("ab:{whole}")),
        whole[3..40].to_owned(),
    ] {
        assert!(leaked(&format!("a log line with {text} in it")).is_some(), "{text}");
    }
    assert!(leaked("a log line with nothing in it").is_none());
    learn("eyJhbGciOiJFUzI1NiJ9.0123456789abcdef0123456789abcdef.x");
    assert!(leaked("0123456789abcdef").is_some() && leaked("eyJhbGciOiJFUzI1NiJ9").is_none());
}
