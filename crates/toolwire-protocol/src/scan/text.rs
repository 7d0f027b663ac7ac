//! What stands between the quotes of a string.

use std::borrow::Cow;

use super::Malformed;

/// So many times eight bytes a string is looked at word by word; what is longer is worth the vector instructions.
const SHORT_WORDS: usize = 16;

/// A string as it stands between its quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quoted<'a> {
    pub(super) inner: &'a str,
    pub(super) escaped: bool,
}

impl<'a> Quoted<'a> {
    /// The text it stands for; `None` if an escape stands for no character, as a lone surrogate does.
    #[inline]
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        if self.escaped { self.unescaped().map(Cow::Owned) } else { Some(Cow::Borrowed(self.inner)) }
    }

    #[cold]
    fn unescaped(self) -> Option<String> {
        serde_json::from_slice(format!("\"{}\"", self.inner).as_bytes()).ok()
    }
}

/// How many bytes stand for themselves, up to a quote, a backslash or a control character.
pub(super) fn plain(rest: &[u8]) -> usize {
    let (words, last) = rest.as_chunks::<8>();
    for (position, word) in words.iter().enumerate() {
        if position == SHORT_WORDS {
            let passed = 8 * position;
            return passed + plain_long(rest.get(passed..).unwrap_or_default());
        }
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            return 8 * position + (special.trailing_zeros() / 8) as usize;
        }
    }
    8 * words.len() + last.iter().position(|byte| is_special(*byte)).unwrap_or(last.len())
}

/// The same for what is known to be long, with the vector instructions that the compiler finds for it.
fn plain_long(rest: &[u8]) -> usize {
    let run = rest.get(..memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len())).unwrap_or_default();
    let smallest = run.iter().copied().fold(u8::MAX, u8::min);
    if smallest < 0x20 {
        run.iter().position(|byte| is_special(*byte)).unwrap_or_default()
    } else {
        run.len()
    }
}

const fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..=0x1f)
}

/// Looks at eight bytes at once. The highest bit of the first special one is set; those behind it may be wrong.
const fn special(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // Only a quote and the control characters are less than 0x21 once their second bit is flipped.
    let quotes_and_controls = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
    let backslashes = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (quotes_and_controls | backslashes) & !word & HIGH
}

/// The length of an escape, whose backslash stands before `rest`, and whether it stands for a whole character.
pub(super) fn escape(rest: &[u8]) -> Result<(usize, bool), Malformed> {
    match rest {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Ok((2, true)),
        [b'u', rest @ ..] => match code_unit(rest)? {
            0xD800..=0xDBFF => match rest.get(4..) {
                // The other half has to follow at once.
                Some([b'\\', b'u', rest @ ..]) if matches!(code_unit(rest), Ok(0xDC00..=0xDFFF)) => {
                    Ok((12, true))
                }
                _ => Ok((6, false)),
            },
            0xDC00..=0xDFFF => Ok((6, false)),
            _ => Ok((6, true)),
        },
        _ => Err(Malformed),
    }
}

/// Reads four hexadecimal digits.
fn code_unit(rest: &[u8]) -> Result<u32, Malformed> {
    let digits = rest.first_chunk::<4>().ok_or(Malformed)?;
    digits.iter().try_fold(0, |unit, digit| {
        char::from(*digit).to_digit(16).map(|digit| unit << 4 | digit).ok_or(Malformed)
    })
}
