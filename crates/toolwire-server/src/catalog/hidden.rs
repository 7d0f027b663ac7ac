//! What of a kind of routes is hidden from a viewer.

/// The positions of the routes that are hidden from a viewer, as a bit set. Viewers from whom the same is hidden share
/// their pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Hidden {
    /// Without zeros at the end, so that equal sets are equal values.
    words: Vec<u64>,
    len: usize,
}

const BITS: usize = u64::BITS as usize;

impl Hidden {
    /// Adds a position, which must not be in it.
    pub(super) fn add(&mut self, position: usize) {
        let word = position / BITS;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if let Some(word) = self.words.get_mut(word) {
            *word |= 1 << (position % BITS);
        }
        self.len += 1;
    }

    pub(super) fn has(&self, position: usize) -> bool {
        self.words.get(position / BITS).is_some_and(|word| word >> (position % BITS) & 1 == 1)
    }

    /// How many are hidden.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// What of a list comes from elsewhere: the listings of templates, behind the fixed resources.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    /// Whether it is not the same for everybody.
    pub(super) may_hide: bool,
    /// Whether it is hidden from this viewer.
    pub(super) is_hidden: bool,
}

/// What is left out of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct View {
    pub(super) hidden: Hidden,
    /// Whether what comes from elsewhere is left out.
    pub(super) without_tail: bool,
}

impl View {
    /// Whether nothing is left out.
    pub(super) const fn is_full(&self) -> bool {
        self.hidden.is_empty() && !self.without_tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_added_and_nothing_else() {
        let mut set = Hidden::default();
        assert!(set.is_empty() && !set.has(0) && !set.has(1_000_000));
        for position in [0, 63, 64, 200] {
            set.add(position);
        }
        let found: Vec<usize> = (0..300).filter(|position| set.has(*position)).collect();
        assert_eq!(found, [0, 63, 64, 200]);
        assert_eq!(set.len(), 4);
    }
}
