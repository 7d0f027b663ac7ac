//! A cursor over JSON text that finds where values stand, and builds none of them.
//!
//! A message is walked through once, by this: everything later decoded of it is a slice that is known to be
//! well-formed. `serde_json` can do the same with raw values, but only one level at a time, and each level costs
//! another pass: three of them, and 14,000 instructions, for a modern call that takes 6,200 here. What a value means,
//! and whether text has escapes that stand for no character, is for whoever decodes it.

use std::borrow::Cow;

/// So many times eight bytes a string is looked at word by word; what is longer is worth the vector instructions.
const SHORT_WORDS: usize = 16;

/// The text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A place in a JSON text.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// A string as it stands between its quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quoted<'a> {
    inner: &'a str,
    escaped: bool,
}

impl<'a> Quoted<'a> {
    /// The text it stands for; `None` if an escape stands for no character, as a lone surrogate does.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        if self.escaped {
            return serde_json::from_slice(format!("\"{}\"", self.inner).as_bytes()).ok().map(Cow::Owned);
        }
        Some(Cow::Borrowed(self.inner))
    }
}

impl<'a> Scanner<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The first byte of what comes next, past white space.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Whether only white space is left.
    pub(crate) fn is_done(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Passes an object, stopping at each member: `member` gets its name and has to pass its value.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Quoted<'a>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.take(b'{')?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let name = self.name()?;
            member(self, name)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(Malformed),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// What `pass` passes, as text.
    pub(crate) fn span(
        &mut self,
        pass: impl FnOnce(&mut Self) -> Result<(), Malformed>,
    ) -> Result<&'a str, Malformed> {
        self.peek();
        let start = self.at;
        pass(self)?;
        self.text.get(start..self.at).ok_or(Malformed)
    }

    /// Passes one value of any kind.
    pub(crate) fn value(&mut self) -> Result<&'a str, Malformed> {
        self.span(Self::skip)
    }

    fn skip(&mut self) -> Result<(), Malformed> {
        let mut open = Open::default();
        loop {
            if self.begin(&mut open)? {
                continue;
            }
            // A value has ended, and with it maybe some of those that it stands in.
            loop {
                let Some(object) = open.innermost() else { return Ok(()) };
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if object {
                            self.name()?;
                        }
                        break;
                    }
                    Some(b'}') if object => {}
                    Some(b']') if !object => {}
                    _ => return Err(Malformed),
                }
                self.at += 1;
                open.pop();
            }
        }
    }

    /// Passes a value, or the beginning of one with others in it. Says whether it was such a beginning.
    fn begin(&mut self, open: &mut Open) -> Result<bool, Malformed> {
        match self.peek() {
            Some(b'"') => self.string().map(|_| false),
            Some(b'-' | b'0'..=b'9') => self.number().map(|()| false),
            Some(b'{') => {
                self.at += 1;
                if self.passes(b'}') {
                    return Ok(false);
                }
                open.push(true);
                self.name().map(|_| true)
            }
            Some(b'[') => {
                self.at += 1;
                if self.passes(b']') {
                    return Ok(false);
                }
                open.push(false);
                Ok(true)
            }
            Some(b't') => self.literal("true").map(|()| false),
            Some(b'f') => self.literal("false").map(|()| false),
            Some(b'n') => self.literal("null").map(|()| false),
            _ => Err(Malformed),
        }
    }

    /// Passes the name of a member and the colon behind it.
    fn name(&mut self) -> Result<Quoted<'a>, Malformed> {
        self.peek();
        let name = self.string()?;
        self.take(b':')?;
        Ok(name)
    }

    /// Passes a string, which must begin right here.
    pub(crate) fn string(&mut self) -> Result<Quoted<'a>, Malformed> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        if bytes.get(start) != Some(&b'"') {
            return Err(Malformed);
        }
        let mut at = start + 1;
        let mut escaped = false;
        loop {
            at += plain(bytes.get(at..).unwrap_or_default());
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at += escape(bytes.get(at + 1..).unwrap_or_default())?,
                _ => return Err(Malformed),
            }
            escaped = true;
        }
        self.at = at + 1;
        let inner = self.text.get(start + 1..at).ok_or(Malformed)?;
        Ok(Quoted { inner, escaped })
    }

    fn number(&mut self) -> Result<(), Malformed> {
        let negative = self.next_is(b'-');
        self.at += usize::from(negative);
        if self.next_is(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.next_is(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if self.next_is(b'e') || self.next_is(b'E') {
            self.at += 1;
            let signed = self.next_is(b'+') || self.next_is(b'-');
            self.at += usize::from(signed);
            self.digits()?;
        }
        // Another digit behind a leading zero falls through to here, and fits nothing that may follow.
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Malformed> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let count = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        self.at += count;
        if count == 0 { Err(Malformed) } else { Ok(()) }
    }

    fn literal(&mut self, word: &str) -> Result<(), Malformed> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(Malformed);
        }
        self.at += word.len();
        Ok(())
    }

    fn next_is(&self, byte: u8) -> bool {
        self.text.as_bytes().get(self.at) == Some(&byte)
    }

    fn passes(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn take(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.passes(byte) { Ok(()) } else { Err(Malformed) }
    }
}

/// How many bytes stand for themselves, up to a quote, a backslash or a control character.
fn plain(rest: &[u8]) -> usize {
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
    const fn zeros(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word
    }
    let quotes = zeros(word ^ (ONES * b'"' as u64));
    let backslashes = zeros(word ^ (ONES * b'\\' as u64));
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    (quotes | backslashes | controls) & HIGH
}

/// The length of an escape, whose backslash stands before `rest`.
fn escape(rest: &[u8]) -> Result<usize, Malformed> {
    match rest {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Ok(2),
        [b'u', a, b, c, d, ..] if [a, b, c, d].into_iter().all(u8::is_ascii_hexdigit) => Ok(6),
        _ => Err(Malformed),
    }
}

/// The arrays and objects that are open, one bit each: set for an object. Depth costs next to nothing, so that
/// whoever decodes the value can refuse it with a better answer.
#[derive(Default)]
struct Open {
    /// The innermost ones, up to 64.
    bits: u64,
    /// Those around them, 64 each.
    outer: Vec<u64>,
    depth: usize,
}

impl Open {
    fn push(&mut self, object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(object);
        self.depth += 1;
    }

    fn innermost(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.bits & 1 == 1)
    }

    fn pop(&mut self) {
        self.bits >>= 1;
        self.depth = self.depth.saturating_sub(1);
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.bits = self.outer.pop().unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests;
