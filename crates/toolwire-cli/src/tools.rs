//! The tools of a server, even if some of them cannot be understood: one bad tool does not hide the others.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolwire::{
    Client,
    client::{Error, ErrorKind},
    wire::Tool,
};

/// How many pages a list may have.
const MAX_PAGES: usize = 1000;
/// How many tools are kept.
const MAX_TOOLS: usize = 100_000;

/// The tools of a server.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    pub(crate) good: Vec<Tool>,
    pub(crate) bad: Vec<BadTool>,
}

/// A tool that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadTool {
    /// What it is called, or which one it is.
    pub(crate) name: String,
    /// What is wrong with it.
    pub(crate) why: String,
}

/// Asks for all tools. Only if the list as a whole is not valid is it taken apart.
pub(crate) async fn all(client: &Client) -> Result<Tools, Error> {
    match client.all_tools().await {
        Ok(good) => Ok(Tools { good, bad: Vec::new() }),
        Err(error) if error.kind() == ErrorKind::InvalidResponse => apart(client).await.ok_or(error),
        Err(error) => Err(error),
    }
}

/// The list, tool by tool; nothing if it is not one at all.
async fn apart(client: &Client) -> Option<Tools> {
    let mut tools = Tools::default();
    let mut cursors = BTreeSet::new();
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let page: Value = client.raw().request("tools/list", params).await.ok()?.decode().ok()?;
        for (index, tool) in page.get("tools")?.as_array()?.iter().enumerate() {
            tools.add(index, tool);
        }
        if tools.good.len() + tools.bad.len() > MAX_TOOLS {
            return None;
        }
        match page.get("nextCursor").and_then(Value::as_str) {
            None => return (!tools.bad.is_empty()).then_some(tools),
            // A list in a circle is no list.
            Some(cursor) if !cursors.insert(cursor.to_owned()) => return None,
            Some(cursor) => params = json!({ "cursor": cursor }),
        }
    }
    None
}

impl Tools {
    fn add(&mut self, index: usize, tool: &Value) {
        match serde_json::from_value::<Tool>(tool.clone()) {
            Ok(tool) => self.good.push(tool),
            Err(error) => {
                let name = tool.get("name").and_then(Value::as_str);
                let name = name.map_or_else(|| format!("number {}", index + 1), str::to_owned);
                self.bad.push(BadTool { name, why: fault(tool).unwrap_or_else(|| error.to_string()) });
            }
        }
    }
}

/// The usual faults, in words.
fn fault(tool: &Value) -> Option<String> {
    let Some(members) = tool.as_object() else { return Some("it is not an object".to_owned()) };
    if !members.get("name").is_some_and(Value::is_string) {
        return Some("it has no name".to_owned());
    }
    match members.get("inputSchema") {
        None => return Some("it has no inputSchema".to_owned()),
        Some(schema) if !schema.is_object() => return Some("its inputSchema is not an object".to_owned()),
        Some(_) => {}
    }
    let output = members.get("outputSchema").filter(|schema| !schema.is_object() && !schema.is_null());
    output.map(|_| "its outputSchema is not an object".to_owned())
}
