//! Writes schemas in the order in which their types declare them.

use std::borrow::Cow;

use serde_json::value::RawValue;
use toolwire_protocol::for_each_member;

use super::Order;

/// What a schema begins with, as somebody would write it.
const FIRST: [&str; 6] = ["$schema", "type", "description", "properties", "required", "additionalProperties"];

/// The result of `tools/list` with the schemas in their order. `None` if that is not what the text is.
pub(crate) fn ordered_tools<'o>(text: &str, orders: impl Iterator<Item = &'o Order>) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut orders = orders;
    write_object(&members(text)?, &mut out, |name, value, out| match name {
        "tools" => write_list(value, |tool, out| write_tool(tool, orders.next()?, out), out),
        _ => write_as_is(value, out),
    })?;
    Some(out)
}

fn write_tool(text: &str, order: &Order, out: &mut String) -> Option<()> {
    write_object(&members(text)?, out, |name, value, out| match name {
        "inputSchema" => write_schema(value, order, out),
        // A type that is written tells its order by what it requires, which is all that it always writes.
        "outputSchema" => write_schema(value, &Order::default(), out),
        _ => write_as_is(value, out),
    })
}

fn write_schema(text: &str, order: &Order, out: &mut String) -> Option<()> {
    if !text.starts_with('{') {
        return write_as_is(text, out);
    }
    let mut keywords = members(text)?;
    keywords.sort_by_key(|(name, _)| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()));
    let required = keywords.iter().find(|(name, _)| name == "required").map_or("[]", |(_, names)| names);
    write_object(&keywords, out, |name, value, out| match name {
        "properties" => write_properties(value, order, required, out),
        // Lists and maps of what has the order, and the variants of an enum that has it.
        "items" | "additionalProperties" => write_schema(value, order, out),
        "oneOf" | "anyOf" | "allOf" => write_list(value, |schema, out| write_schema(schema, order, out), out),
        "prefixItems" => write_list(value, |schema, out| write_schema(schema, &Order::default(), out), out),
        "$defs" | "patternProperties" => {
            write_object(&members(value)?, out, |_, schema, out| write_schema(schema, &Order::default(), out))
        }
        _ => write_as_is(value, out),
    })
}

fn write_properties(text: &str, order: &Order, required: &str, out: &mut String) -> Option<()> {
    let required: Vec<Cow<'_, str>> = serde_json::from_str(required).ok()?;
    let mut properties = members(text)?;
    properties.sort_by_key(|(name, _)| order.place(&required, name));
    write_object(&properties, out, |name, value, out| match order.inside.get(name) {
        Some(inside) => write_schema(value, inside, out),
        None => write_schema(value, &Order::default(), out),
    })
}

#[expect(clippy::unnecessary_wraps, reason = "it stands where other values are written")]
fn write_as_is(text: &str, out: &mut String) -> Option<()> {
    out.push_str(text);
    Some(())
}

/// Writes an array; `write` writes the items.
fn write_list(
    text: &str,
    mut write: impl FnMut(&str, &mut String) -> Option<()>,
    out: &mut String,
) -> Option<()> {
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    out.push('[');
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        write(item.get(), out)?;
    }
    out.push(']');
    Some(())
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
    use schemars::{JsonSchema, schema_for};
    use serde::{Deserialize, Serialize};
    use serde_json::Value;

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

    fn written(schema: &Value, order: &Order) -> String {
        let mut out = String::new();
        write_schema(&schema.to_string(), order, &mut out).unwrap();
        out
    }

    /// The texts come in this order.
    fn assert_in_order(text: &str, parts: &[&str]) {
        let places: Vec<_> =
            parts.iter().map(|part| text.find(&format!("\"{part}\":{{")).expect(part)).collect();
        assert!(places.is_sorted(), "{parts:?} in {text}");
    }

    #[test]
    fn the_variants_of_an_enum_keep_the_order_of_their_fields() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only asked for its order")]
        enum Shape {
            Square { width: Option<u8>, height: u8, angle: Option<u8> },
            Circle { radius: u8, centre: u8 },
        }
        let schema = schema_for!(Shape).to_value();
        let text = written(&schema, &Order::of::<Shape>());
        assert_in_order(&text, &["width", "height", "angle", "radius", "centre"]);
    }

    #[test]
    fn what_cannot_be_asked_keeps_the_order_of_what_it_requires() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema matters")]
        #[serde(tag = "kind")]
        enum Tagged {
            Square { width: u8, height: u8, angle: Option<u8> },
        }
        #[derive(Serialize, JsonSchema)]
        struct Written {
            year: u16,
            month: Option<u8>,
            days: Vec<Day>,
        }
        #[derive(Serialize, JsonSchema)]
        struct Day {
            weekday: String,
            date: u8,
        }
        let text = written(&schema_for!(Tagged).to_value(), &Order::of::<Tagged>());
        assert_in_order(&text, &["kind", "width", "height", "angle"]);
        let (schema, _) = crate::schema::of_output::<Written>();
        let text = written(&schema, &Order::default());
        assert_in_order(&text, &["year", "month", "days", "weekday", "date"]);
    }
}
