//! What a `$ref` means: always a place in this document, or else nothing we would fetch.

use super::{Compiler, Fault, Site};
use crate::schema::{
    keyword::step,
    node::{NodeId, Rule},
    uri, words,
};

/// A reference that waits until all of the document is known.
#[derive(Debug)]
pub(super) struct Pending<'d> {
    site: Site<'d>,
    /// The place of the rule in its node.
    rule: usize,
    keyword: &'static str,
    reference: &'d str,
}

impl<'d> Compiler<'d> {
    /// Keeps the place for what `keyword` refers to.
    pub(super) fn refer(&mut self, site: Site<'d>, keyword: &'static str) -> Result<(), Fault<'d>> {
        let Some(reference) = site.text(keyword)? else { return Ok(()) };
        let Some(node) = self.nodes.get_mut(site.id.0) else { return Ok(()) };
        self.pending.push(Pending { site, rule: node.rules.len(), keyword, reference });
        // Until it is resolved, and for good when it leaves the document, it is not known.
        node.rules.push(Rule::Unknown);
        Ok(())
    }

    pub(super) fn resolve(&mut self, pending: &Pending<'d>) -> Result<(), Fault<'d>> {
        let (relative, fragment) = uri::split_fragment(pending.reference);
        self.spend(pending.reference.len(), pending.site, pending.keyword)?;
        let resource = if relative.is_empty() {
            self.resources.get(pending.site.resource).map(|resource| resource.first)
        } else {
            let uri = self.join(pending.site, pending.keyword, relative)?;
            self.by_uri.get(uri.as_str()).copied()
        };
        let Some(resource) = resource else {
            self.skip(words::shortened(pending.reference));
            return Ok(());
        };
        let fragment = uri::decode(fragment.unwrap_or_default());
        let target = if fragment.is_empty() || fragment.starts_with('/') {
            self.pointed_at(resource, &fragment)?
        } else {
            self.resources.get(resource).and_then(|resource| resource.anchors.get(&*fragment)).copied()
        };
        let Some(target) = target else {
            let reason = format!("{} is not in this document", words::quoted(pending.reference));
            return Err(pending.site.wrong(pending.keyword, reason));
        };
        let is_dynamic = pending.keyword == "$dynamicRef"
            && self
                .resources
                .get(resource)
                .is_some_and(|it| it.dynamic_anchors.get(&fragment) == Some(&target));
        let resolved =
            if is_dynamic { Rule::DynamicRef { target, anchor: fragment } } else { Rule::Ref(target) };
        if let Some(rule) =
            self.nodes.get_mut(pending.site.id.0).and_then(|node| node.rules.get_mut(pending.rule))
        {
            *rule = resolved;
        }
        Ok(())
    }

    /// The subschema at a pointer inside a resource.
    fn pointed_at(&mut self, resource: usize, fragment: &str) -> Result<Option<NodeId>, Fault<'d>> {
        let Some(mut at) = self.resources.get(resource).map(|resource| resource.root) else {
            return Ok(None);
        };
        let mut around = resource;
        for token in fragment.split('/').skip(1) {
            let Some(below) = step(at, token) else { return Ok(None) };
            at = below;
            // On the way the pointer may enter a resource inside this one.
            let known = self.known(at).and_then(|id| self.nodes.get(id.0));
            around = known.map_or(around, |node| node.resource);
        }
        self.subschema(at, around).map(Some)
    }
}
