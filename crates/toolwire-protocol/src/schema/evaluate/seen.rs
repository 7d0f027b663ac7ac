//! Which properties and items the keywords of a subschema have evaluated.

use std::collections::BTreeSet;

/// The annotations that `unevaluatedProperties` and `unevaluatedItems` look at.
#[derive(Debug, Default)]
pub(super) struct Seen<'i> {
    properties: BTreeSet<&'i str>,
    all_properties: bool,
    /// All items before this one.
    prefix: usize,
    items: BTreeSet<usize>,
    all_items: bool,
}

impl<'i> Seen<'i> {
    pub(super) fn everything(&mut self) {
        self.all_properties = true;
        self.all_items = true;
    }

    pub(super) fn property(&mut self, name: &'i str) {
        self.properties.insert(name);
    }

    pub(super) fn every_property(&mut self) {
        self.all_properties = true;
    }

    pub(super) fn has_property(&self, name: &str) -> bool {
        self.all_properties || self.properties.contains(name)
    }

    pub(super) fn item(&mut self, index: usize) {
        self.items.insert(index);
    }

    pub(super) fn items_before(&mut self, end: usize) {
        self.prefix = self.prefix.max(end);
    }

    pub(super) fn every_item(&mut self) {
        self.all_items = true;
    }

    pub(super) fn has_item(&self, index: usize) -> bool {
        self.all_items || index < self.prefix || self.items.contains(&index)
    }

    /// How much merging this costs, in steps.
    pub(super) fn size(&self) -> u64 {
        crate::schema::value::count(self.properties.len() + self.items.len())
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.all_properties |= other.all_properties;
        self.all_items |= other.all_items;
        self.prefix = self.prefix.max(other.prefix);
        self.properties.extend(other.properties);
        self.items.extend(other.items);
    }
}
