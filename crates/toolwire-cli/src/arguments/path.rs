//! Where a value goes: `user.name`, `items[0].id`, `tags[]`.

use serde_json::{Map, Value};

use crate::schema;

/// How long a list may become by giving its items one by one.
const MAX_ITEMS: usize = 10_000;

/// One step into a value.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
    /// Behind the last item.
    Append,
}

/// Takes a key apart. A property whose name has dots or brackets in it is found by its name.
pub(super) fn parse(key: &str, schema: &Value) -> Result<Vec<Step>, String> {
    let has =
        |object: &Map<String, Value>| object.get("properties").is_some_and(|all| all.get(key).is_some());
    if schema::alternatives(schema, schema).into_iter().any(has) {
        return Ok(vec![Step::Key(key.to_owned())]);
    }
    let mut steps = Vec::new();
    for part in key.split('.') {
        let (name, mut rest) = part.split_at(part.find('[').unwrap_or(part.len()));
        if name.is_empty() {
            return Err("a part of the name is empty".to_owned());
        }
        steps.push(Step::Key(name.to_owned()));
        while !rest.is_empty() {
            let inside = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let (index, after) = inside.ok_or("a bracket is not closed")?;
            steps.push(match index {
                "" => Step::Append,
                index => {
                    Step::Index(index.parse().map_err(|_| format!("`{index}` is not a position in a list"))?)
                }
            });
            rest = after;
        }
    }
    Ok(steps)
}

/// What the schema says about the place where the steps lead.
pub(super) fn schema_at<'a>(root: &'a Value, steps: &[Step]) -> Option<&'a Value> {
    steps.iter().try_fold(root, |schema, step| match step {
        Step::Key(name) => schema::property(root, schema, name),
        Step::Index(index) => schema::item(root, schema, Some(*index)),
        Step::Append => schema::item(root, schema, None),
    })
}

/// Puts a value where the steps lead, or `more` items behind those that are there.
pub(super) fn put(at: &mut Value, steps: &[Step], value: Value, more: bool) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        return match (at, value) {
            (Value::Array(items), Value::Array(new)) if more => {
                items.extend(new);
                Ok(())
            }
            (at, value) => {
                *at = value;
                Ok(())
            }
        };
    };
    match step {
        Step::Key(name) => {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            let object = at
                .as_object_mut()
                .ok_or_else(|| format!("`{name}` is inside of something that is not an object"))?;
            put(object.entry(name.as_str()).or_insert(Value::Null), rest, value, more)
        }
        Step::Index(_) | Step::Append => {
            if at.is_null() {
                *at = Value::Array(Vec::new());
            }
            let items = at.as_array_mut().ok_or("it is not a list")?;
            let index = if let Step::Index(index) = step { *index } else { items.len() };
            if index > items.len() || index >= MAX_ITEMS {
                return Err(format!("position {index} is beyond the next one, {}", items.len()));
            }
            if index == items.len() {
                items.push(Value::Null);
            }
            items.get_mut(index).map_or(Ok(()), |item| put(item, rest, value, more))
        }
    }
}
