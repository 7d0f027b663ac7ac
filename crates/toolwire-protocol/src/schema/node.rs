//! The compiled form of a schema: an arena of nodes, each a list of rules.

use std::collections::BTreeMap;

use regex_lite::Regex;
use serde_json::{Number, Value};

use super::format::Format;

/// The place of a node in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeId(pub(super) usize);

/// A whole compiled document; its root is the first node.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) nodes: Vec<Node>,
    /// For each schema resource of the document, its dynamic anchors.
    pub(super) dynamic_anchors: Vec<BTreeMap<String, NodeId>>,
    /// Whether any keyword asks which properties or items were evaluated.
    pub(super) tracks: bool,
}

static ANYTHING: Node = Node { resource: 0, rules: Vec::new() };

impl Program {
    pub(super) const ROOT: NodeId = NodeId(0);

    pub(super) fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id.0).unwrap_or(&ANYTHING)
    }
}

/// One subschema.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The schema resource it belongs to, for `$dynamicRef`.
    pub(super) resource: usize,
    pub(super) rules: Vec<Rule>,
}

impl Node {
    pub(super) fn is_never(&self) -> bool {
        matches!(self.rules.as_slice(), [Rule::Never])
    }
}

/// What one keyword, or a group of keywords that belong together, demands.
#[derive(Debug)]
pub(super) enum Rule {
    /// The schema `false`.
    Never,
    /// Something we cannot check, so that it accepts anything.
    Unknown,
    Type(Types),
    Const(Constant),
    Enum(Vec<Constant>),
    Number(Bound, Number),
    Text(TextRules),
    Array(Box<ArrayRules>),
    Object(Box<ObjectRules>),
    Ref(NodeId),
    DynamicRef {
        target: NodeId,
        anchor: String,
    },
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If {
        test: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    DependentSchemas(Vec<(String, NodeId)>),
    UnevaluatedItems(NodeId),
    UnevaluatedProperties(NodeId),
}

impl Rule {
    /// Whether the rule looks at what the other rules of its node evaluated.
    pub(super) fn comes_last(&self) -> bool {
        matches!(self, Self::UnevaluatedItems(_) | Self::UnevaluatedProperties(_))
    }
}

/// The values of `type`, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NAMES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

    /// Adds the type of this name, or says that there is none.
    pub(super) fn insert(&mut self, name: &str) -> bool {
        let place = Self::NAMES.iter().position(|known| *known == name);
        if let Some(place) = place {
            self.0 |= 1 << place;
        }
        place.is_some()
    }

    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .into_iter()
            .enumerate()
            .filter(move |(place, _)| self.0 & (1 << place) != 0)
            .map(|(_, n)| n)
    }

    pub(super) fn accepts(self, value: &Value) -> bool {
        let mask = match value {
            Value::Null => 0b000_0001,
            Value::Bool(_) => 0b000_0010,
            Value::Number(number) if super::number::is_integer(number) => 0b000_1100,
            Value::Number(_) => 0b000_1000,
            Value::String(_) => 0b001_0000,
            Value::Array(_) => 0b010_0000,
            Value::Object(_) => 0b100_0000,
        };
        self.0 & mask != 0
    }
}

/// A value of `const` or `enum`, with what one comparison costs.
#[derive(Debug)]
pub(super) struct Constant {
    pub(super) value: Value,
    pub(super) weight: u64,
}

/// Which limit a number has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Minimum,
    ExclusiveMinimum,
    Maximum,
    ExclusiveMaximum,
    MultipleOf,
}

/// A lower and an upper limit of a count.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Range {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
}

impl Range {
    pub(super) fn is_open(self) -> bool {
        self.min.is_none() && self.max.is_none()
    }

    pub(super) fn holds(self, count: u64) -> bool {
        self.min.is_none_or(|min| count >= min) && self.max.is_none_or(|max| count <= max)
    }
}

/// The keywords of strings.
#[derive(Debug)]
pub(super) struct TextRules {
    pub(super) length: Range,
    pub(super) pattern: Option<Pattern>,
    pub(super) format: Option<Format>,
}

/// A regular expression, or the memory that there was one we cannot run.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) source: String,
    /// None when the engine does not know the syntax.
    pub(super) regex: Option<Regex>,
    /// What two bytes of text cost, in steps.
    pub(super) weight: u64,
}

/// The keywords of arrays.
#[derive(Debug, Default)]
pub(super) struct ArrayRules {
    pub(super) length: Range,
    pub(super) unique: bool,
    pub(super) prefix: Vec<NodeId>,
    pub(super) rest: Option<NodeId>,
    pub(super) contains: Option<Contains>,
}

/// `contains` with its two counts.
#[derive(Debug)]
pub(super) struct Contains {
    pub(super) item: NodeId,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

/// The keywords of objects.
#[derive(Debug, Default)]
pub(super) struct ObjectRules {
    pub(super) size: Range,
    pub(super) required: Vec<String>,
    pub(super) properties: BTreeMap<String, NodeId>,
    pub(super) patterns: Vec<(Pattern, NodeId)>,
    pub(super) additional: Option<NodeId>,
    pub(super) names: Option<NodeId>,
    pub(super) dependent_required: Vec<(String, Vec<String>)>,
}
