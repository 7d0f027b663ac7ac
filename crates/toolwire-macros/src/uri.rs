//! The URI of a resource and the variables in it.
//!
//! Only as much of RFC 6570 is read as is needed to find the names; the server reads the rest.

use syn::{Error, LitStr, Result};

/// The URI or URI template of a `#[resource]`.
#[derive(Clone)]
pub(crate) struct Uri {
    pub(crate) text: LitStr,
    /// In the order of their first appearance, each once.
    pub(crate) variables: Vec<String>,
}

impl Uri {
    /// Reads the names of the variables, or says what is wrong with the template.
    pub(crate) fn parse(text: &LitStr) -> Result<Self> {
        let variables = variables(&text.value()).map_err(|message| Error::new(text.span(), message))?;
        Ok(Self { text: text.clone(), variables })
    }

    /// Whether it stands for many resources.
    pub(crate) fn is_template(&self) -> bool {
        !self.variables.is_empty()
    }

    /// The variables as they are shown in messages.
    pub(crate) fn listed(&self) -> String {
        self.variables.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    }
}

fn variables(uri: &str) -> std::result::Result<Vec<String>, String> {
    if uri.is_empty() {
        return Err("the URI cannot be empty".to_owned());
    }
    let mut names: Vec<String> = Vec::new();
    let mut rest = uri;
    while let Some((literal, after)) = rest.split_once('{') {
        no_closing_brace(literal)?;
        let (expression, after) =
            after.split_once('}').ok_or_else(|| format!("`{{{after}` has no closing `}}`"))?;
        // An operator such as `+` or `?` says how the value is written, not what it is called.
        let list = expression.strip_prefix(['+', '#', '.', '/', ';', '?', '&']).unwrap_or(expression);
        for variable in list.split(',') {
            let name = variable_name(variable).ok_or_else(|| {
                format!("`{{{expression}}}` is no variable: between braces stands a name, as in `{{id}}`")
            })?;
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        rest = after;
    }
    no_closing_brace(rest)?;
    Ok(names)
}

fn no_closing_brace(literal: &str) -> std::result::Result<(), String> {
    if literal.contains('}') {
        return Err(format!("`{literal}` has a `}}` without a `{{` before it"));
    }
    Ok(())
}

/// The name without the modifier: `*`, or `:` and a length.
fn variable_name(variable: &str) -> Option<&str> {
    let name = match variable.split_once(':') {
        Some((name, length)) if !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit()) => {
            name
        }
        Some(_) => return None,
        None => variable.strip_suffix('*').unwrap_or(variable),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'%');
    (!name.is_empty() && name.bytes().all(is_name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn names_are_found_behind_operators_and_modifiers() {
        for (uri, names) in [
            ("config://app", &[][..]),
            ("users://{id}", &["id"]),
            ("file:///{+path}", &["path"]),
            ("x://{a}/{b}{?c,d*}{&e:3}#{a}", &["a", "b", "c", "d", "e"]),
            ("x://{user.id}", &["user.id"]),
        ] {
            assert_eq!(variables(uri).unwrap(), names, "{uri}");
        }
    }

    #[test]
    fn a_broken_template_says_what_is_broken() {
        for (uri, message) in [
            ("", "the URI cannot be empty"),
            ("x://{a", "`{a` has no closing `}`"),
            ("x://a}", "`x://a}` has a `}` without a `{` before it"),
            ("x://{}", "`{}` is no variable: between braces stands a name, as in `{id}`"),
            ("x://{a,}", "`{a,}` is no variable: between braces stands a name, as in `{id}`"),
            ("x://{a b}", "`{a b}` is no variable: between braces stands a name, as in `{id}`"),
            ("x://{a:x}", "`{a:x}` is no variable: between braces stands a name, as in `{id}`"),
        ] {
            assert_eq!(variables(uri).unwrap_err(), message, "{uri}");
        }
    }
}
