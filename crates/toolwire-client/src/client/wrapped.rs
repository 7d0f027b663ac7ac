//! Which tools put their results behind a member `result`, as far as lists of tools have said so.

use std::{
    collections::HashSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use toolwire_protocol::{codec::WRAPPED_RESULT, wire::Tool};

use crate::lock::lock;

/// The number of tools that are remembered.
const MAX_TOOLS: usize = 10_000;
/// The length that the name of a tool may have to be remembered.
const MAX_NAME_BYTES: usize = 256;

/// The tools whose output schema marks the wrapper.
#[derive(Debug, Default)]
pub(crate) struct WrappedTools {
    /// True if there are any, so that calls of other servers' tools look nothing up.
    any: AtomicBool,
    names: Mutex<HashSet<Box<str>>>,
}

impl WrappedTools {
    /// Learns from tools that pass by.
    pub(crate) fn learn(&self, tools: &[Tool]) {
        for tool in tools {
            let schema = tool.output_schema.as_ref();
            let marked =
                schema.and_then(|schema| schema.get(WRAPPED_RESULT)).is_some_and(|mark| *mark == true);
            if marked {
                self.add(&tool.name);
            } else if self.any.load(Ordering::Acquire) {
                lock(&self.names).remove(&*tool.name);
            }
        }
    }

    fn add(&self, name: &str) {
        let mut names = lock(&self.names);
        if name.len() <= MAX_NAME_BYTES && names.len() < MAX_TOOLS {
            names.insert(name.into());
            self.any.store(true, Ordering::Release);
        }
    }

    /// The tools have changed.
    pub(crate) fn forget(&self) {
        self.any.store(false, Ordering::Release);
        lock(&self.names).clear();
    }

    /// Returns whether results of the tool are wrapped.
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.any.load(Ordering::Acquire) && lock(&self.names).contains(tool)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn tool(name: &str, mark: &Value) -> Tool {
        let output = json!({"type": "object", WRAPPED_RESULT: mark});
        let tool = json!({"name": name, "inputSchema": {"type": "object"}, "outputSchema": output});
        serde_json::from_value(tool).unwrap()
    }

    #[test]
    fn the_last_list_counts_and_there_are_limits() {
        let tools = WrappedTools::default();
        tools.learn(&[tool("a", &json!(true)), tool("b", &json!(false)), tool("c", &json!("yes"))]);
        assert!(tools.has("a") && !tools.has("b") && !tools.has("c"));
        tools.learn(&[tool("a", &json!(null))]);
        assert!(!tools.has("a"));
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        tools.learn(&[tool(&long, &json!(true))]);
        assert!(!tools.has(&long));
        (0..MAX_TOOLS + 5).for_each(|n| tools.add(&n.to_string()));
        assert_eq!(lock(&tools.names).len(), MAX_TOOLS);
        tools.forget();
        assert!(!tools.has("1"));
    }
}
