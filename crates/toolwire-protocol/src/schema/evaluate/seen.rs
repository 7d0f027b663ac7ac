//! Which properties and items the keywords of a subschema have evaluated.

use std::collections::BTreeSet;

use crate::schema::value::{count, lookup_weight, text_weight};

/// The annotations that `unevaluatedProperties` and `unevaluatedItems` look at.
#[derive(Debug, Default)]
pub(super) struct Seen<'i> {
    properties: BTreeSet<&'i str>,
    /// What comparing all of these once costs beyond one step each.
    weight: u64,
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
        if self.properties.insert(name) {
            self.weight += text_weight(name);
        }
    }

    /// What finding or adding a property costs, in steps.
    pub(super) fn lookup_weight(&self, name: &str) -> u64 {
        lookup_weight(name, self.properties.len())
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
        count(self.properties.len() + self.items.len()) + self.weight
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.all_properties |= other.all_properties;
        self.all_items |= other.all_items;
        self.prefix = self.prefix.max(other.prefix);
        // What is in both is counted twice, which only makes it dearer.
        self.weight += other.weight;
        self.properties.extend(other.properties);
        self.items.extend(other.items);
    }
}
