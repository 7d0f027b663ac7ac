//! From a schema document to a [`Program`].
//!
//! The document is walked once; references are collected on the way and resolved afterwards, when every
//! `$id` and anchor is known. A reference may also point at a place the walk did not take for a schema,
//! which is then walked too.

mod keywords;
mod pattern;
mod reference;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    rc::Rc,
};

use serde_json::{Map, Value};

use self::reference::Pending;
use super::{
    MAX_COMPILED_BYTES, MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS, SchemaError,
    keyword::{pointer_to, push_token},
    node::{Node, NodeId, Program, Rule},
    uri, value, words,
};

/// What is wrong, and where; its pointer is only worked out when it leaves the compiler, because pointers
/// kept for each subschema could be far larger than the document.
#[derive(Debug)]
struct Fault<'d> {
    at: &'d Value,
    keyword: String,
    reason: String,
}

/// A part of the document with a base URI of its own: the whole, or below an `$id`.
#[derive(Debug)]
struct Resource<'d> {
    /// Shared with the table of all URIs.
    uri: Rc<str>,
    /// The first resource that has this URI, which is the one that references mean.
    first: usize,
    root: &'d Value,
    anchors: HashMap<&'d str, NodeId>,
    dynamic_anchors: BTreeMap<String, NodeId>,
    /// Until draft-07, `$ref` hid every keyword next to it.
    ref_hides_siblings: bool,
}

/// Compiles one document.
#[derive(Debug)]
pub(super) struct Compiler<'d> {
    document: &'d Value,
    nodes: Vec<Node>,
    /// The compiled subschemas by the address of their value in the document.
    by_place: HashMap<usize, NodeId>,
    resources: Vec<Resource<'d>>,
    by_uri: HashMap<Rc<str>, usize>,
    pending: Vec<Pending<'d>>,
    skipped: BTreeSet<String>,
    tracks: bool,
    /// Whether `format` is asserted.
    formats: bool,
    pattern_bytes: usize,
    /// How much of [`MAX_COMPILED_BYTES`] is left.
    bytes_left: usize,
}

/// One subschema object while it is compiled.
#[derive(Debug, Clone, Copy)]
struct Site<'d> {
    schema: &'d Value,
    keywords: &'d Map<String, Value>,
    resource: usize,
    id: NodeId,
}

impl<'d> Compiler<'d> {
    pub(super) fn new(document: &'d Value) -> Self {
        Self {
            document,
            nodes: Vec::new(),
            by_place: HashMap::new(),
            resources: Vec::new(),
            by_uri: HashMap::new(),
            pending: Vec::new(),
            skipped: BTreeSet::new(),
            tracks: false,
            formats: false,
            pattern_bytes: 0,
            bytes_left: MAX_COMPILED_BYTES,
        }
    }

    pub(super) fn asserting_formats(mut self) -> Self {
        self.formats = true;
        self
    }

    /// The program, and what could not be checked.
    pub(super) fn run(mut self) -> Result<(Program, Vec<String>), SchemaError> {
        if value::is_deeper_than(self.document, MAX_SCHEMA_DEPTH) {
            let reason = format!("nested deeper than {MAX_SCHEMA_DEPTH} levels");
            return Err(SchemaError::new("", reason));
        }
        if let Err(fault) = self.document() {
            let mut pointer = pointer_to(self.document, fault.at);
            if !fault.keyword.is_empty() {
                push_token(&mut pointer, &fault.keyword);
            }
            return Err(SchemaError::new(pointer, fault.reason));
        }
        let dynamic_anchors = self.resources.into_iter().map(|resource| resource.dynamic_anchors).collect();
        let program = Program { nodes: self.nodes, dynamic_anchors, tracks: self.tracks };
        Ok((program, self.skipped.into_iter().collect()))
    }

    fn document(&mut self) -> Result<(), Fault<'d>> {
        self.add_resource("".into(), self.document, false);
        self.subschema(self.document, 0)?;
        while let Some(pending) = self.pending.pop() {
            self.resolve(&pending)?;
        }
        Ok(())
    }

    /// Compiles the subschema `schema`, unless it already is.
    ///
    /// Recursive, which the depth of the document bounds.
    fn subschema(&mut self, schema: &'d Value, resource: usize) -> Result<NodeId, Fault<'d>> {
        if let Some(known) = self.known(schema) {
            return Ok(known);
        }
        let wrong = |reason| Err(Fault { at: schema, keyword: String::new(), reason });
        if self.nodes.len() >= MAX_SUBSCHEMAS {
            return wrong(format!("more than {MAX_SUBSCHEMAS} subschemas"));
        }
        let id = NodeId(self.nodes.len());
        self.nodes.push(Node { resource, rules: Vec::new() });
        self.by_place.insert(place(schema), id);
        match schema {
            Value::Bool(true) => {}
            Value::Bool(false) => self.add_rule(id, Rule::Never),
            Value::Object(keywords) => {
                let mut site = Site { schema, keywords, resource, id };
                site.resource = self.identify(site)?;
                if let Some(node) = self.nodes.get_mut(id.0) {
                    node.resource = site.resource;
                }
                self.keywords(site)?;
            }
            other => {
                return wrong(format!("a schema is an object or a boolean, not {}", words::named(other)));
            }
        }
        Ok(id)
    }

    fn known(&self, schema: &Value) -> Option<NodeId> {
        self.by_place.get(&place(schema)).copied()
    }

    /// Reads `$schema`, `$id` and the anchors, and says which resource the subschema belongs to.
    fn identify(&mut self, site: Site<'d>) -> Result<usize, Fault<'d>> {
        let mut resource = site.resource;
        let hidden = self.hides_siblings(resource) && site.keywords.contains_key("$ref");
        if let Some(id) = site.text("$id")?.filter(|_| !hidden) {
            match id.strip_prefix('#') {
                // How draft-07 spelled an anchor.
                Some(anchor) => self.add_anchor(resource, anchor, site.id),
                None => resource = self.enter_resource(site, id)?,
            }
        }
        if let Some(dialect) = site.text("$schema")? {
            let old = ["/draft-03/", "/draft-04/", "/draft-06/", "/draft-07/"];
            if let Some(resource) = self.resources.get_mut(resource) {
                resource.ref_hides_siblings = old.iter().any(|draft| dialect.contains(draft));
            }
        }
        if let Some(anchor) = site.text("$anchor")? {
            self.add_anchor(resource, anchor, site.id);
        }
        if let Some(anchor) = site.text("$dynamicAnchor")? {
            self.spend(anchor.len(), site, "$dynamicAnchor")?;
            self.add_anchor(resource, anchor, site.id);
            if let Some(resource) = self.resources.get_mut(resource) {
                resource.dynamic_anchors.insert(anchor.to_owned(), site.id);
            }
        }
        Ok(resource)
    }

    /// The resource that begins at `site` because of its `$id`.
    fn enter_resource(&mut self, site: Site<'d>, id: &str) -> Result<usize, Fault<'d>> {
        let uri: Rc<str> = self.join(site, "$id", uri::split_fragment(id).0)?.into();
        if std::ptr::eq(site.schema, self.document) {
            // The root already has its resource, which only gets its name now.
            if let Some(root) = self.resources.first_mut() {
                root.uri = Rc::clone(&uri);
            }
            self.by_uri.insert(uri, 0);
            return Ok(0);
        }
        let old = self.hides_siblings(site.resource);
        Ok(self.add_resource(uri, site.schema, old))
    }

    /// Resolves `reference`, which has no fragment, against the base of `site`.
    ///
    /// Joining reads all of both, so both are paid for, and before: what comes of it may be very short.
    fn join(&mut self, site: Site<'d>, keyword: &str, reference: &str) -> Result<String, Fault<'d>> {
        let bytes = self.base(site.resource).len().saturating_add(reference.len());
        self.spend(bytes, site, keyword)?;
        Ok(uri::join(self.base(site.resource), reference))
    }

    /// What references in a resource are relative to.
    fn base(&self, resource: usize) -> &str {
        self.resources.get(resource).map_or("", |resource| &resource.uri)
    }

    fn add_resource(&mut self, uri: Rc<str>, root: &'d Value, ref_hides_siblings: bool) -> usize {
        let place = self.resources.len();
        let first = *self.by_uri.entry(Rc::clone(&uri)).or_insert(place);
        let (anchors, dynamic_anchors) = (HashMap::new(), BTreeMap::new());
        self.resources.push(Resource { uri, first, root, anchors, dynamic_anchors, ref_hides_siblings });
        place
    }

    fn add_anchor(&mut self, resource: usize, anchor: &'d str, id: NodeId) {
        if let Some(resource) = self.resources.get_mut(resource) {
            resource.anchors.insert(anchor, id);
        }
    }

    /// Takes `bytes` from the budget for what `keyword` needs, before it is done.
    fn spend(&mut self, bytes: usize, site: Site<'d>, keyword: &str) -> Result<(), Fault<'d>> {
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                Ok(())
            }
            None => Err(site.wrong(
                keyword,
                format!("the schema is too costly: its names, constants and URIs take more than MAX_COMPILED_BYTES ({MAX_COMPILED_BYTES}) bytes"),
            )),
        }
    }

    fn hides_siblings(&self, resource: usize) -> bool {
        self.resources.get(resource).is_some_and(|resource| resource.ref_hides_siblings)
    }

    fn add_rule(&mut self, id: NodeId, rule: Rule) {
        if let Some(node) = self.nodes.get_mut(id.0) {
            let place = node.rules.partition_point(|other| other.comes_last() <= rule.comes_last());
            node.rules.insert(place, rule);
        }
    }

    fn skip(&mut self, what: String) {
        self.skipped.insert(what);
    }

    /// The subschema below one keyword.
    fn child(&mut self, site: Site<'d>, keyword: &str) -> Result<Option<NodeId>, Fault<'d>> {
        let Some(schema) = site.keywords.get(keyword) else { return Ok(None) };
        self.subschema(schema, site.resource).map(Some)
    }

    /// The subschemas in the array below one keyword.
    fn children(&mut self, site: Site<'d>, keyword: &str) -> Result<Option<Vec<NodeId>>, Fault<'d>> {
        let Some(list) = site.array(keyword)? else { return Ok(None) };
        if list.is_empty() && keyword != "items" {
            return Err(site.wrong(keyword, "must have at least one schema"));
        }
        list.iter().map(|schema| self.subschema(schema, site.resource)).collect::<Result<_, _>>().map(Some)
    }

    /// The subschemas in the object below one keyword.
    fn members(&mut self, site: Site<'d>, keyword: &str) -> Result<Vec<(&'d String, NodeId)>, Fault<'d>> {
        let members = site.object(keyword)?.into_iter().flatten();
        members
            .map(|(name, schema)| {
                self.spend(name.len(), site, keyword)?;
                Ok((name, self.subschema(schema, site.resource)?))
            })
            .collect()
    }
}

/// What tells one value of the document from another.
fn place(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}
