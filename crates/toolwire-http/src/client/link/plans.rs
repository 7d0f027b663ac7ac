//! Which arguments of which tools travel in headers, learned from every list of tools that passes.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use toolwire_protocol::{Params, headers::HeaderPlan};

use super::core::lock;

/// The plans of the tools that have one.
#[derive(Debug)]
pub(in crate::client) struct Plans {
    by_name: Mutex<HashMap<String, Plan>>,
    limit: usize,
    /// Whether a list was seen, or cannot be.
    listed: AtomicBool,
    /// Held while the list is read on behalf of a call, so that only one call does so.
    pub(super) listing: tokio::sync::Mutex<()>,
}

/// What is to be done with the arguments of a tool.
#[derive(Clone, Debug)]
pub(super) enum Plan {
    /// These travel in headers.
    Mirror(Arc<HeaderPlan>),
    /// What the server wants cannot be done, so the tool must not be called.
    Invalid(Arc<str>),
}

/// A page of a list of tools, as far as it matters here.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow, default)]
    tools: Vec<&'a RawValue>,
    #[serde(rename = "nextCursor", default)]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Described {
    #[serde(rename = "inputSchema", default)]
    schema: Map<String, Value>,
}

impl Plans {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            by_name: Mutex::default(),
            limit,
            listed: AtomicBool::new(false),
            listing: tokio::sync::Mutex::default(),
        }
    }

    /// Whether a list has to be read before this tool can be called.
    pub(super) fn may_not_know(&self, tool: &str) -> bool {
        !self.listed.load(Ordering::Acquire) && !lock(&self.by_name).contains_key(tool)
    }

    /// There is no list to learn from.
    pub(super) fn give_up(&self) {
        self.listed.store(true, Ordering::Release);
    }

    /// Somebody else may see other tools.
    pub(in crate::client) fn forget(&self) {
        self.listed.store(false, Ordering::Release);
        lock(&self.by_name).clear();
    }

    pub(super) fn plan(&self, tool: &str) -> Option<Plan> {
        lock(&self.by_name).get(tool).cloned()
    }

    /// Learns from the result of `tools/list`, and gives it back without the tools that must not be called.
    pub(super) fn learn(&self, result: Params) -> Params {
        let Ok(page) = serde_json::from_str::<Page<'_>>(result.text()) else { return result };
        self.give_up();
        let (mut kept, mut dropped) = (Vec::with_capacity(page.tools.len()), false);
        for raw in page.tools {
            match serde_json::from_str::<Named>(raw.get()) {
                Ok(named) if !self.learn_tool(&named.name, raw) => dropped = true,
                _ => kept.push(raw),
            }
        }
        if !dropped {
            return result;
        }
        let rewritten = without_the_others(result.text(), &kept);
        rewritten.unwrap_or(result)
    }

    /// Learns about one tool, and says whether it may be called.
    fn learn_tool(&self, name: &str, raw: &RawValue) -> bool {
        let plan = plan_of(raw);
        if let Some(Plan::Invalid(why)) = &plan {
            tracing::warn!(tool = name, %why, "a tool is left out, because it cannot be called over HTTP");
        }
        let good = !matches!(plan, Some(Plan::Invalid(_)));
        let mut plans = lock(&self.by_name);
        match plan {
            None => {
                plans.remove(name);
            }
            Some(_) if plans.len() >= self.limit && !plans.contains_key(name) => {
                tracing::warn!(tool = name, limit = self.limit, "too many tools to remember their headers");
            }
            Some(plan) => {
                plans.insert(name.to_owned(), plan);
            }
        }
        good
    }
}

/// The plan of a tool, if it has one.
fn plan_of(raw: &RawValue) -> Option<Plan> {
    // Most tools have no annotation. One written with escapes would not be found by its name.
    if !raw.get().contains("x-mcp-header") && !raw.get().contains("\\u") {
        return None;
    }
    let described: Described = serde_json::from_str(raw.get()).ok()?;
    match HeaderPlan::compile(&described.schema) {
        Ok(plan) if plan.is_empty() => None,
        Ok(plan) => Some(Plan::Mirror(Arc::new(plan))),
        Err(error) => Some(Plan::Invalid(error.to_string().into())),
    }
}

/// The same result with these tools only; everything else in it stays what it is.
fn without_the_others(result: &str, kept: &[&RawValue]) -> Option<Params> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Member<'a> {
        Tools(&'a [&'a RawValue]),
        Other(&'a RawValue),
    }

    let members: Vec<(String, &RawValue)> = members(result)?;
    let members = members.iter().map(|(key, raw)| {
        let member = if key == "tools" { Member::Tools(kept) } else { Member::Other(raw) };
        (key, member)
    });
    Params::of(&InOrder(members.collect())).ok()
}

/// The members of an object in their order.
fn members(text: &str) -> Option<Vec<(String, &RawValue)>> {
    use serde::de::{Deserializer as _, MapAccess, Visitor};

    struct Members;

    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de RawValue)>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }

    serde_json::Deserializer::from_str(text).deserialize_map(Members).ok()
}

/// An object whose members are written in this order.
struct InOrder<K, V>(Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for InOrder<K, V> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// Whether a page has the tool, and where the next page is.
pub(super) fn look_for(tool: &str, result: &Params) -> (bool, Option<String>) {
    let Ok(page) = serde_json::from_str::<Page<'_>>(result.text()) else { return (false, None) };
    let is_it =
        |raw: &&RawValue| serde_json::from_str::<Named>(raw.get()).is_ok_and(|named| named.name == tool);
    (page.tools.iter().any(is_it), page.next)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, annotation: &Value) -> Value {
        json!({ "name": name, "inputSchema": { "type": "object",
            "properties": { "region": { "type": "string", "x-mcp-header": annotation } } } })
    }

    fn learn(plans: &Plans, result: &Value) -> Value {
        serde_json::from_str(plans.learn(Params::of(result).unwrap()).text()).unwrap()
    }

    #[test]
    fn tools_that_cannot_be_called_are_left_out_and_nothing_else_changes() {
        let plans = Plans::new(10);
        let text = format!(
            r#"{{"z":1.50,"tools":[{},{{"name":"plain","inputSchema":{{}},"more":[ ]}},{}],"ttlMs":5,"a":{{}}}}"#,
            tool("good", &json!("Region")),
            tool("bad", &json!("no good"))
        );
        let result = plans.learn(Params::of(&RawValue::from_string(text.clone()).unwrap()).unwrap());
        let bad = format!(",{}", tool("bad", &json!("no good")));
        assert_eq!(result.text(), text.replace(&bad, ""));
        assert!(matches!(plans.plan("good"), Some(Plan::Mirror(_))));
        assert!(matches!(plans.plan("bad"), Some(Plan::Invalid(_))));
        assert!(plans.plan("plain").is_none());
    }

    #[test]
    fn a_later_list_is_the_one_that_counts() {
        let plans = Plans::new(10);
        assert!(plans.may_not_know("a"));
        learn(&plans, &json!({ "tools": [tool("a", &json!("bad name"))] }));
        assert!(!plans.may_not_know("a") && !plans.may_not_know("b"));
        learn(&plans, &json!({ "tools": [tool("a", &json!("Good"))] }));
        assert!(matches!(plans.plan("a"), Some(Plan::Mirror(_))));
        learn(&plans, &json!({ "tools": [{ "name": "a" }] }));
        assert!(plans.plan("a").is_none());
    }

    #[test]
    fn an_annotation_hidden_by_escapes_is_found() {
        let plans = Plans::new(10);
        let text = r#"{"tools":[{"name":"a","inputSchema":{"properties":{"b":{"x-mcp\u002dheader":""}}}}]}"#;
        let result = plans.learn(Params::of(&RawValue::from_string(text.to_owned()).unwrap()).unwrap());
        assert_eq!(result.text(), r#"{"tools":[]}"#);
    }

    #[test]
    fn the_number_of_plans_is_limited() {
        let plans = Plans::new(2);
        let tools: Vec<_> = (0..5).map(|n| tool(&format!("t{n}"), &json!("A"))).collect();
        let result = learn(&plans, &json!({ "tools": tools }));
        assert_eq!(result["tools"].as_array().unwrap().len(), 5);
        assert_eq!(lock(&plans.by_name).len(), 2);
    }

    #[test]
    fn what_is_no_list_is_left_alone() {
        let plans = Plans::new(2);
        for result in
            [json!({ "tools": 1 }), json!([]), json!(null), json!({ "tools": [1, { "name": 2 }, null] })]
        {
            assert_eq!(learn(&plans, &result), result);
        }
    }
}
