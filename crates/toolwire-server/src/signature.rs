//! What callers may send to each route, and what its handler takes by itself.

use std::fmt;

use crate::{
    Server,
    route::{Entry, PromptRoute, ResourceRoute, TemplateRoute, ToolRoute},
};

/// What callers may send to one route, and what its handler takes from the request by itself; see
/// [`Server::signatures`]. As text it is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouteSignature {
    /// "tool", "prompt", "resource" or "template".
    pub kind: &'static str,
    /// The name of a tool or prompt, the URI of a resource or template.
    pub key: String,
    /// What callers may send: arguments, or the variables of a template. The last is `…` if they may send anything.
    pub sent: Vec<String>,
    /// What the handler takes by itself, as types without their paths. No caller can send it.
    pub taken: Vec<String>,
}

impl Server {
    /// What callers may send to each route, and what its handler takes by itself: for a snapshot in a test, which
    /// shows when something that the server finds out for itself becomes something that callers may send.
    ///
    /// ```
    /// use toolwire_server::{Context, Server, tool};
    ///
    /// let server = Server::builder("demo", "1.0").tool(tool("hello", |_: Context| async { "hello" })).build().unwrap();
    /// assert_eq!(server.signatures()[0].to_string(), "tool hello() takes Context");
    /// ```
    pub fn signatures(&self) -> Vec<RouteSignature> {
        let catalog = self.catalog();
        let mut all: Vec<RouteSignature> = catalog.tools.iter_for_all().map(|route| of_tool(route)).collect();
        all.extend(catalog.prompts.iter_for_all().map(|route| of_prompt(route)));
        all.extend(catalog.resources.iter_for_all().map(|route| of_resource(route)));
        all.extend(catalog.templates.iter_for_all().map(|route| of_template(route)));
        all
    }
}

impl RouteSignature {
    fn new(kind: &'static str, route: &impl Entry, sent: impl Iterator<Item = String>) -> Self {
        let taken = route.needs().taken.iter().map(|name| without_paths(name)).collect();
        Self { kind, key: route.key().to_owned(), sent: sent.collect(), taken }
    }
}

fn of_tool(route: &ToolRoute) -> RouteSignature {
    let schema = &route.input.schema;
    let properties = schema.get("properties").and_then(|properties| properties.as_object());
    let names = properties.into_iter().flat_map(|all| all.keys().cloned());
    let open = schema.get("additionalProperties").is_some_and(|more| *more != false);
    RouteSignature::new("tool", route, names.chain(open.then(|| "…".to_owned())))
}

fn of_prompt(route: &PromptRoute) -> RouteSignature {
    let arguments = route.prompt.arguments.iter().flatten();
    RouteSignature::new("prompt", route, arguments.map(|argument| argument.name.clone()))
}

fn of_resource(route: &ResourceRoute) -> RouteSignature {
    RouteSignature::new("resource", route, std::iter::empty())
}

fn of_template(route: &TemplateRoute) -> RouteSignature {
    let variables =
        route.uri.iter().flat_map(|uri| uri.variables().into_iter().map(str::to_owned).collect::<Vec<_>>());
    RouteSignature::new("template", route, variables)
}

/// `State<App>` of `toolwire_server::extract::args::State<demo::App>`.
fn without_paths(name: &str) -> String {
    let is_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let mut short = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|letter| !is_path(letter)).unwrap_or(rest.len());
        let (path, after) = rest.split_at(end.max(first.len_utf8()));
        short.push_str(if end == 0 { path } else { path.rsplit("::").next().unwrap_or(path) });
        rest = after;
    }
    short
}

impl fmt::Display for RouteSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}({})", self.kind, self.key, self.sent.join(", "))?;
        if self.taken.is_empty() { Ok(()) } else { write!(f, " takes {}", self.taken.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_without_their_paths() {
        for (name, short) in [
            ("toolwire_server::extract::args::State<demo::App>", "State<App>"),
            ("core::option::Option<(a::B, &'static [c::D; 3])>", "Option<(B, &'static [D; 3])>"),
            ("u8", "u8"),
            ("", ""),
        ] {
            assert_eq!(without_paths(name), short);
        }
    }
}
