//! Writes schemas in the order in which their types declare them.

use std::borrow::Cow;

use serde_json::value::RawValue;
use toolwire_protocol::for_each_member;

use super::Order;

/// What a schema begins with, as somebody would write it.
const FIRST: [&str; 6] = ["$schema", "type", "description", "properties", "required", "additionalProperties"];

/// The result of `tools/list` with the input schemas in their order. `None` if that is not what the text is.
pub(crate) fn ordered_tools<'o>(text: &str, orders: impl Iterator<Item = &'o Order>) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut orders = orders;
    write_object(&members(text)?, &mut out, |name, value, out| {
        if name != "tools" {
            out.push_str(value);
            return Some(());
        }
        let tools: Vec<&RawValue> = serde_json::from_str(value).ok()?;
        out.push('[');
        for (number, tool) in tools.iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            write_tool(tool.get(), orders.next()?, out)?;
        }
        out.push(']');
        Some(())
    })?;
    Some(out)
}

fn write_tool(text: &str, order: &Order, out: &mut String) -> Option<()> {
    write_object(&members(text)?, out, |name, value, out| {
        if name == "inputSchema" {
            return write_schema(value, order, out);
        }
        out.push_str(value);
        Some(())
    })
}

fn write_schema(text: &str, order: &Order, out: &mut String) -> Option<()> {
    if order.names.is_empty() || !text.starts_with('{') {
        out.push_str(text);
        return Some(());
    }
    let mut keywords = members(text)?;
    keywords.sort_by_key(|(name, _)| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()));
    write_object(&keywords, out, |name, value, out| match name {
        "properties" => write_properties(value, order, out),
        // A list, or a map, of what has the order.
        "items" | "additionalProperties" => write_schema(value, order, out),
        _ => {
            out.push_str(value);
            Some(())
        }
    })
}

fn write_properties(text: &str, order: &Order, out: &mut String) -> Option<()> {
    let mut properties = members(text)?;
    properties.sort_by_key(|(name, _)| {
        order.names.iter().position(|known| known == name).unwrap_or(order.names.len())
    });
    write_object(&properties, out, |name, value, out| {
        if let Some(inside) = order.inside.get(name) {
            return write_schema(value, inside, out);
        }
        out.push_str(value);
        Some(())
    })
}

type Members<'a> = Vec<(Cow<'a, str>, &'a str)>;

fn members(text: &str) -> Option<Members<'_>> {
    let mut members = Vec::new();
    for_each_member(text, |name, value| members.push((name, value))).then_some(members)
}

/// Writes an object; `write` writes the values.
fn write_object(
    members: &Members<'_>,
    out: &mut String,
    mut write: impl FnMut(&str, &str, &mut String) -> Option<()>,
) -> Option<()> {
    out.push('{');
    for (number, (name, value)) in members.iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        out.push_str(&serde_json::to_string(name).ok()?);
        out.push(':');
        write(name, value, out)?;
    }
    out.push('}');
    Some(())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only asked for its order")]
    struct Outer {
        zebra: String,
        inner: Vec<Inner>,
        apple: u8,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only asked for its order")]
    struct Inner {
        y: u8,
        x: u8,
    }

    #[test]
    fn schemas_are_written_as_they_were_declared() {
        let list = concat!(
            r#"{"nextCursor":"c","tools":[{"inputSchema":{"additionalProperties":false,"properties":{"apple":{"type":"integer"},"#,
            r#""inner":{"items":{"properties":{"x":{},"y":{}},"type":"object"},"type":"array"},"zebra":{"type":"string"}},"#,
            r#""required":["zebra"],"type":"object"},"name":"a"},{"inputSchema":{"type":"object"},"name":"b"}]}"#,
        );
        let orders = [Order::of::<Outer>(), Order::default()];
        assert_eq!(
            ordered_tools(list, orders.iter()).unwrap(),
            concat!(
                r#"{"nextCursor":"c","tools":[{"inputSchema":{"type":"object","properties":{"zebra":{"type":"string"},"#,
                r#""inner":{"type":"array","items":{"type":"object","properties":{"y":{},"x":{}}}},"apple":{"type":"integer"}},"#,
                r#""required":["zebra"],"additionalProperties":false},"name":"a"},{"inputSchema":{"type":"object"},"name":"b"}]}"#,
            )
        );
        assert_eq!(ordered_tools(list, orders[..1].iter()), None, "one order for each tool");
        assert_eq!(ordered_tools("[]", orders.iter()), None);
    }
}
