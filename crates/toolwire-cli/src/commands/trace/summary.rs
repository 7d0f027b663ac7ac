//! Messages in a few words.

use serde_json::Value;

use crate::terminal::printable_line;

/// How much of a text goes into a summary; lines are cut shorter than this.
const MAX_TEXT_CHARS: usize = 300;

/// A request or notification: its method, and what matters of its parameters.
pub(super) fn request(method: &str, params: &Value) -> String {
    let about = parameters(method, params);
    if about.is_empty() { one_line(method) } else { format!("{} {about}", one_line(method)) }
}

fn parameters(method: &str, params: &Value) -> String {
    let string = |name: &str| one_line(params.get(name).and_then(Value::as_str).unwrap_or_default());
    match method {
        "initialize" => words([string("protocolVersion"), implementation(params.get("clientInfo"))]),
        "server/discover" => implementation(meta(params, "clientInfo")),
        "tools/call" | "prompts/get" => words([string("name"), json(params.get("arguments"))]),
        "resources/read"
        | "resources/subscribe"
        | "resources/unsubscribe"
        | "notifications/resources/updated" => string("uri"),
        "completion/complete" => {
            let of = ["/ref/name", "/ref/uri"].iter().find_map(|path| params.pointer(path)?.as_str());
            let argument = |name| params.get("argument").and_then(|it| it.get(name)).and_then(Value::as_str);
            let typed =
                format!("{}={}", argument("name").unwrap_or("?"), argument("value").unwrap_or_default());
            words([one_line(of.unwrap_or_default()), one_line(&typed)])
        }
        "elicitation/create" => words([quoted(params.get("message")), string("url")]),
        "sampling/createMessage" => {
            let last = params.get("messages").and_then(Value::as_array).and_then(|messages| messages.last());
            last.map(|message| quoted(message.pointer("/content/text"))).unwrap_or_default()
        }
        "logging/setLevel" => string("level"),
        "notifications/message" => words([string("level"), json(params.get("data"))]),
        "notifications/progress" => progress(params),
        "notifications/cancelled" => words([json(params.get("requestId")), string("reason")]),
        "subscriptions/listen" | "notifications/subscriptions/acknowledged" => {
            json(params.get("notifications"))
        }
        _ => json(Some(params)),
    }
}

/// The result of a request.
pub(super) fn result(method: &str, result: &Value) -> String {
    let list = |name: &str, noun: &str, label: &str| {
        let items = result.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let label_of = |item: &Value| item.get(label).and_then(Value::as_str).map(one_line);
        let labels: Vec<_> = items.iter().filter_map(label_of).collect();
        let more = if result.get("nextCursor").is_some() { ", and more" } else { "" };
        if items.is_empty() {
            format!("no {noun}s")
        } else {
            format!(
                "{} {noun}{}: {}{more}",
                items.len(),
                if items.len() == 1 { "" } else { "s" },
                labels.join(", ")
            )
        }
    };
    match method {
        "initialize" => {
            let version = result.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
            words([implementation(result.get("serverInfo")), one_line(version)])
        }
        "server/discover" => {
            let versions = result.get("supportedVersions").and_then(Value::as_array);
            let mut versions = versions.into_iter().flatten().filter_map(Value::as_str).map(one_line);
            let first = versions.next().unwrap_or_default();
            let more = versions.count();
            let older = if more == 0 { String::new() } else { format!("and {more} more") };
            words([implementation(meta(result, "serverInfo")), first, older])
        }
        "tools/list" => list("tools", "tool", "name"),
        "prompts/list" => list("prompts", "prompt", "name"),
        "resources/list" => list("resources", "resource", "uri"),
        "resources/templates/list" => list("resourceTemplates", "template", "uriTemplate"),
        "tools/call" => match result.get("structuredContent") {
            Some(data) => json(Some(data)),
            None => contents(result.get("content")),
        },
        "resources/read" => contents(result.get("contents")),
        "prompts/get" => {
            let messages = result.get("messages").and_then(Value::as_array);
            let texts: Vec<_> =
                messages.into_iter().flatten().filter_map(|it| it.get("content")).map(content).collect();
            texts.join(" / ")
        }
        "completion/complete" => {
            let values = result.pointer("/completion/values").and_then(Value::as_array);
            let values: Vec<_> =
                values.into_iter().flatten().filter_map(Value::as_str).map(one_line).collect();
            values.join(", ")
        }
        "elicitation/create" => answer(result),
        "sampling/createMessage" => result.get("content").map(content).unwrap_or_default(),
        _ => json(Some(result)),
    }
}

/// An error object.
pub(super) fn error(error: &Value) -> String {
    let message = error.get("message").and_then(Value::as_str).unwrap_or("no message");
    format!("{} {}", json(error.get("code")), one_line(message))
}

/// What a person has answered to a form.
pub(super) fn answer(result: &Value) -> String {
    match result.get("action").and_then(Value::as_str) {
        Some(action) => words([one_line(action), json(result.get("content"))]),
        None => json(Some(result)),
    }
}

/// How far something has come.
pub(super) fn progress(params: &Value) -> String {
    // As a person would write it: 1 and not 1.0.
    let number = |name: &str| params.get(name).and_then(Value::as_f64).map(|number| number.to_string());
    let done = number("progress").unwrap_or_else(|| "?".to_owned());
    number("total").map_or_else(|| done.clone(), |total| format!("{done}/{total}"))
}

fn contents(of: Option<&Value>) -> String {
    let items = of.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().map(content).collect::<Vec<_>>().join(" / ")
}

fn content(of: &Value) -> String {
    let string = |name: &str| of.get(name).and_then(Value::as_str);
    if let Some(text) = string("text") {
        return format!("\"{}\"", one_line(text));
    }
    if let Some(data) = string("data").or_else(|| string("blob")) {
        let kind = string("mimeType").unwrap_or("data");
        return format!("{}, {} bytes", one_line(kind), data.len() / 4 * 3);
    }
    match of.get("resource") {
        Some(resource) => content(resource),
        None => one_line(string("uri").unwrap_or_default()),
    }
}

fn implementation(of: Option<&Value>) -> String {
    let string =
        |name: &str| one_line(of.and_then(|it| it.get(name)).and_then(Value::as_str).unwrap_or_default());
    words([string("name"), string("version")])
}

fn meta<'a>(of: &'a Value, name: &str) -> Option<&'a Value> {
    of.get("_meta")?.get(format!("io.modelcontextprotocol/{name}"))
}

fn quoted(text: Option<&Value>) -> String {
    text.and_then(Value::as_str).map(|text| format!("\"{}\"", one_line(text))).unwrap_or_default()
}

/// JSON on one line, without what the protocol adds for itself; nothing for nothing.
fn json(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::Object(members))
            if members.contains_key("_meta") || members.contains_key("resultType") =>
        {
            let kept = members.iter().filter(|(name, _)| !matches!(name.as_str(), "_meta" | "resultType"));
            let kept: serde_json::Map<_, _> =
                kept.map(|(name, value)| (name.clone(), value.clone())).collect();
            if kept.is_empty() { String::new() } else { one_line(&Value::Object(kept).to_string()) }
        }
        Some(Value::Object(members)) if members.is_empty() => String::new(),
        Some(value) => one_line(&value.to_string()),
    }
}

fn words<const N: usize>(words: [String; N]) -> String {
    let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// A text that stays on its line and is not too long.
pub(super) fn one_line(text: &str) -> String {
    let short: String = text.chars().take(MAX_TEXT_CHARS).collect();
    printable_line(&short)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_words_are_those_that_matter() {
        let call = json!({"name": "add", "arguments": {"a": 2}, "_meta": {"x": 1}});
        assert_eq!(request("tools/call", &call), r#"tools/call add {"a":2}"#);
        assert_eq!(request("ping", &json!(null)), "ping");
        let tools = json!({"tools": [{"name": "add"}, {"name": "echo"}], "nextCursor": "x"});
        assert_eq!(result("tools/list", &tools), "2 tools: add, echo, and more");
        let read = json!({"contents": [{"uri": "x", "mimeType": "image/png", "blob": "AAAA"}]});
        assert_eq!(result("resources/read", &read), "image/png, 3 bytes");
        let asked = json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": "a"}});
        assert_eq!(request("completion/complete", &asked), "completion/complete greet who=a");
        assert_eq!(error(&json!({"code": -32602, "message": "no\nway"})), "-32602 no\\nway");
    }

    #[test]
    fn nothing_in_a_message_is_taken_for_granted() {
        let strange = [json!(null), json!(7), json!([]), json!({"content": 7, "tools": {}, "messages": [1]})];
        for method in ["initialize", "tools/call", "tools/list", "prompts/get", "completion/complete", "x"] {
            for value in &strange {
                let _ = (request(method, value), result(method, value), error(value), answer(value));
            }
        }
        assert_eq!(one_line("a\u{1b}[2Jb"), "a\\x1b[2Jb");
    }
}
