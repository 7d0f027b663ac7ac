//! A cursor over JSON text that finds where values stand, and builds none of them.
//!
//! A message is walked through once, by this: everything later decoded of it is a slice that is known to be
//! well-formed. `serde_json` can do the same with raw values, but only one level at a time, and each level costs
//! another pass: three of them, and 14,000 instructions, for a modern call that takes 6,200 here.
//!
//! **There is one grammar.** What passes here is what `serde_json` decodes into a `Value`, no more and no less, except
//! that no object, at any depth, may have two members of the same name. So whoever decodes a slice of a message later
//! cannot fail for the text alone, and no two readers of a message can see different things in it. Text that is JSON
//! but beyond that has a [`Flaw`], which is noted and not thrown, so that the id of its message can still be read.

mod flaw;
mod names;
mod text;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub(crate) use flaw::Flaw;
use names::Names;
pub(crate) use text::Quoted;
use text::{escape, plain};

/// How deep a text may be nested, which is how deep `serde_json` decodes.
pub(crate) const MAX_DEPTH: usize = 127;

/// A number of so many characters and without an exponent is less than the largest `f64`.
const SAFE_NUMBER_CHARS: usize = 300;

/// The text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Checks that `text` is one JSON value without a flaw.
pub(crate) fn check(text: &str) -> Result<(), Flaw> {
    let mut scanner = Scanner::new(text);
    let whole = scanner.value().is_ok() && scanner.is_done();
    scanner.flaw(whole).map_or(Ok(()), Err)
}

/// A place in a JSON text.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// How many arrays and objects are open.
    depth: usize,
    /// The names of the members of the objects that are open.
    names: Names,
    /// The first flaw.
    flaw: Option<Flaw>,
}

impl<'a> Scanner<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0, names: Names::new(text), flaw: None }
    }

    /// The same for a walk on which nobody asks for a flaw, so that names need not be compared.
    pub(crate) const fn without_flaws(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0, names: Names::not_compared(), flaw: None }
    }

    /// The first byte of what comes next, past white space.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if *byte > b' ' || !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
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

    /// What is wrong with the text although it is JSON. It has been passed as a `whole`, or else only a flaw that has
    /// kept it from being passed is told.
    pub(crate) fn flaw(&mut self, whole: bool) -> Option<Flaw> {
        let flaw = self.flaw.take();
        if !whole {
            return flaw.filter(|flaw| *flaw == Flaw::TooDeep);
        }
        if flaw.is_none() && self.names.are_unsure() {
            return names::flaw(self.text);
        }
        flaw
    }

    #[cold]
    fn note(&mut self, flaw: Flaw) {
        self.flaw.get_or_insert(flaw);
    }

    /// Goes one level deeper.
    fn enter(&mut self) -> Result<(), Malformed> {
        if self.depth == MAX_DEPTH {
            // Whoever looks at each level for itself does so only in what is not too deep.
            self.flaw = Some(Flaw::TooDeep);
            return Err(Malformed);
        }
        self.depth += 1;
        Ok(())
    }

    /// Passes an object, stopping at each member: `member` gets its name and has to pass its value.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Quoted<'a>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.take(b'{')?;
        self.enter()?;
        if !self.passes(b'}') {
            self.names.open();
            loop {
                let (start, end, escaped) = self.name()?;
                let name = self.quoted(start, end, escaped)?;
                member(self, name)?;
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b'}') => break,
                    _ => return Err(Malformed),
                }
            }
            self.at += 1;
            self.names.close();
        }
        self.depth -= 1;
        Ok(())
    }

    /// Passes an array, stopping at each item, which `item` has to pass.
    pub(crate) fn array(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.take(b'[')?;
        self.enter()?;
        if !self.passes(b']') {
            loop {
                item(self)?;
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b']') => break,
                    _ => return Err(Malformed),
                }
            }
            self.at += 1;
        }
        self.depth -= 1;
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
        let outside = self.depth;
        let mut open = Open::default();
        loop {
            if self.begin(&mut open)? {
                continue;
            }
            // A value has ended, and with it maybe some of those that it stands in.
            loop {
                if self.depth == outside {
                    return Ok(());
                }
                let object = open.innermost_is_object();
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if object {
                            self.name()?;
                        }
                        break;
                    }
                    Some(b'}') if object => self.names.close(),
                    Some(b']') if !object => {}
                    _ => return Err(Malformed),
                }
                self.at += 1;
                self.depth -= 1;
                open.pop();
            }
        }
    }

    /// Passes a value, or the beginning of one with others in it. Says whether it was such a beginning.
    fn begin(&mut self, open: &mut Open) -> Result<bool, Malformed> {
        match self.peek() {
            Some(b'"') => self.pass_string().map(|_| false),
            Some(b'-' | b'0'..=b'9') => self.number().map(|()| false),
            Some(b'{' | b'[') if self.depth == MAX_DEPTH => self.pass_deep().map(|()| false),
            Some(b'{') => {
                self.at += 1;
                self.depth += 1;
                if self.passes(b'}') {
                    self.depth -= 1;
                    return Ok(false);
                }
                open.push(true);
                self.names.open();
                self.name().map(|_| true)
            }
            Some(b'[') => {
                self.at += 1;
                self.depth += 1;
                if self.passes(b']') {
                    self.depth -= 1;
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

    /// Passes what is too deep, so that whatever comes behind it can still be read: the id of a message, above all. As
    /// nobody will decode it, only its end is looked for.
    #[cold]
    fn pass_deep(&mut self) -> Result<(), Malformed> {
        self.note(Flaw::TooDeep);
        let mut open = 0_usize;
        loop {
            match self.peek().ok_or(Malformed)? {
                b'"' => drop(self.pass_string()?),
                b'{' | b'[' => {
                    open += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    open = open.saturating_sub(1);
                    self.at += 1;
                }
                // The first bytes of characters beyond ASCII are as good as any: they are passed one by one.
                _ => self.at += 1,
            }
            if open == 0 {
                return Ok(());
            }
        }
    }

    /// Passes the name of a member and the colon behind it. Says where the name starts and ends.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a call of its own costs each message some 5 % of its instructions"
    )]
    fn name(&mut self) -> Result<(usize, usize, bool), Malformed> {
        self.peek();
        let start = self.at + 1;
        let escaped = self.pass_string()?;
        let end = self.at - 1;
        if !self.names.add(self.text.as_bytes(), (start, end), escaped) {
            self.note_duplicate(start, end);
        }
        if self.text.as_bytes().get(start) == Some(&b'$') {
            self.note_reserved(start, end);
        }
        self.take(b':')?;
        Ok((start, end, escaped))
    }

    #[cold]
    fn note_duplicate(&mut self, start: usize, end: usize) {
        let name = self.text.get(start..end).unwrap_or_default();
        self.note(Flaw::Duplicate(name.into()));
    }

    #[cold]
    fn note_reserved(&mut self, start: usize, end: usize) {
        let name = self.text.get(start..end).unwrap_or_default();
        if names::is_reserved(name) {
            self.note(Flaw::Reserved(name.into()));
        }
    }

    /// Passes a string, which must begin right here.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Quoted<'a>, Malformed> {
        let start = self.at + 1;
        let escaped = self.pass_string()?;
        self.quoted(start, self.at - 1, escaped)
    }

    #[inline]
    fn quoted(&self, start: usize, end: usize, escaped: bool) -> Result<Quoted<'a>, Malformed> {
        let inner = self.text.get(start..end).ok_or(Malformed)?;
        Ok(Quoted { inner, escaped })
    }

    /// Passes a string, which must begin right here, and says whether it has escapes.
    fn pass_string(&mut self) -> Result<bool, Malformed> {
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) != Some(&b'"') {
            return Err(Malformed);
        }
        let mut at = self.at + 1;
        let mut escaped = false;
        loop {
            at += plain(bytes.get(at..).unwrap_or_default());
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    let (length, whole) = escape(bytes.get(at + 1..).unwrap_or_default())?;
                    if !whole {
                        self.note(Flaw::LoneSurrogate);
                    }
                    at += length;
                }
                _ => return Err(Malformed),
            }
            escaped = true;
        }
        self.at = at + 1;
        Ok(escaped)
    }

    fn number(&mut self) -> Result<(), Malformed> {
        let start = self.at;
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
        let exponent = self.next_is(b'e') || self.next_is(b'E');
        if exponent {
            self.at += 1;
            let signed = self.next_is(b'+') || self.next_is(b'-');
            self.at += usize::from(signed);
            self.digits()?;
        }
        if exponent || self.at - start > SAFE_NUMBER_CHARS {
            self.weigh_number(start);
        }
        // Another digit behind a leading zero falls through to here, and fits nothing that may follow.
        Ok(())
    }

    /// Lets `serde_json` say whether it can hold the number: the edge of the range depends on how it calculates.
    #[cold]
    fn weigh_number(&mut self, start: usize) {
        let number = self.text.get(start..self.at).unwrap_or_default();
        if serde_json::from_str::<Value>(number).is_err() {
            self.note(Flaw::NumberOutOfRange);
        }
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

/// The arrays and objects that one value has open, one bit each: set for an object. [`MAX_DEPTH`] of them fit.
#[derive(Default)]
struct Open(u128);

impl Open {
    fn push(&mut self, object: bool) {
        self.0 = self.0 << 1 | u128::from(object);
    }

    fn innermost_is_object(&self) -> bool {
        self.0 & 1 == 1
    }

    fn pop(&mut self) {
        self.0 >>= 1;
    }
}
