//! Whether two members of an object have the same name, and whether one has a name that is not for peers.
//!
//! Most messages have few names, none of them with escapes: those are compared while they are passed, without
//! allocating anything. Where that is not enough, the text is walked through once more.

use std::borrow::Cow;

use super::{Flaw, Malformed, Scanner};

/// How many names are kept, those of all open objects together.
const ROOM: usize = 24;

/// The names that the open objects have so far. Before those of an object stands what was the base before it.
#[derive(Debug)]
pub(super) struct Names {
    kept: [Name; ROOM],
    used: usize,
    /// Where the names of the innermost object start.
    base: usize,
    /// Whether there were names that could not be compared. Then nothing is kept any more.
    unsure: bool,
}

/// Where a name starts in its text, and how long it is.
#[derive(Clone, Copy, Debug)]
struct Name {
    start: u32,
    length: u32,
}

impl Names {
    pub(super) const fn new(text: &str) -> Self {
        Self { unsure: text.len() > u32::MAX as usize, ..Self::not_compared() }
    }

    /// Keeps none.
    pub(super) const fn not_compared() -> Self {
        Self { kept: [Name { start: 0, length: 0 }; ROOM], used: 0, base: 0, unsure: true }
    }

    pub(super) const fn are_unsure(&self) -> bool {
        self.unsure
    }

    #[inline]
    pub(super) fn open(&mut self) {
        if !self.unsure {
            self.push(self.base, 0);
            self.base = self.used;
        }
    }

    #[inline]
    pub(super) fn close(&mut self) {
        if !self.unsure {
            self.used = self.base.saturating_sub(1);
            self.base = self.kept.get(self.used).map_or(0, |before| before.start as usize);
        }
    }

    /// Adds a name that stands at this place in `text`; `false` if the innermost object has it already.
    #[inline]
    pub(super) fn add(&mut self, text: &[u8], (start, end): (usize, usize), escaped: bool) -> bool {
        // With an escape there are several ways to write a name.
        if self.unsure || escaped {
            self.unsure = true;
            return true;
        }
        let length = end - start;
        for other in self.kept.get(self.base..self.used).unwrap_or_default() {
            if other.length as usize == length && other.equals(text, start) {
                return false;
            }
        }
        self.push(start, length);
        true
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "texts beyond that are not kept track of")]
    fn push(&mut self, start: usize, length: usize) {
        match self.kept.get_mut(self.used) {
            Some(slot) => {
                *slot = Name { start: start as u32, length: length as u32 };
                self.used += 1;
            }
            None => self.unsure = true,
        }
    }
}

impl Name {
    /// Whether the name of the same length that starts at `start` is this one.
    fn equals(self, text: &[u8], start: usize) -> bool {
        let (own, length) = (self.start as usize, self.length as usize);
        text.get(own..own + length) == text.get(start..start + length)
    }
}

/// How names begin by which serde_json tells itself, in the first member of an object, that this is not an object:
/// `{"$serde_json::private::RawValue":"[1]"}` is decoded as `[1]`. Whoever looks at the text sees something else.
const RESERVED: &str = "$serde_json::private::";

/// Whether a peer must not use this name.
pub(super) fn is_reserved(name: &str) -> bool {
    name.starts_with(RESERVED)
}

/// The first flaw in the names of a text that is JSON.
///
/// It takes time by the length of the text and the logarithm of the number of its names, whatever they are.
#[cold]
pub(super) fn flaw(text: &str) -> Option<Flaw> {
    let mut scanner = Scanner::without_flaws(text);
    let mut found = None;
    // The walk is broken off at the first one, so it then ends as if something were wrong.
    let _ = search(&mut scanner, &mut found);
    found
}

/// Recursive, which the depth of the text bounds.
fn search(scanner: &mut Scanner<'_>, found: &mut Option<Flaw>) -> Result<(), Malformed> {
    match scanner.peek() {
        Some(b'[') => scanner.array(|scanner| search(scanner, found)),
        Some(b'{') => {
            let mut names: Vec<Cow<'_, str>> = Vec::new();
            scanner.object(|scanner, name| {
                let name = name.text().ok_or(Malformed)?;
                if is_reserved(&name) {
                    *found = Some(Flaw::Reserved(name.as_ref().into()));
                    return Err(Malformed);
                }
                names.push(name);
                search(scanner, found)
            })?;
            names.sort_unstable();
            let twins = names.windows(2).find_map(|pair| match pair {
                [one, other] if one == other => Some(one),
                _ => None,
            });
            twins.map_or(Ok(()), |name| {
                *found = Some(Flaw::Duplicate(name.as_ref().into()));
                Err(Malformed)
            })
        }
        _ => scanner.value().map(drop),
    }
}
