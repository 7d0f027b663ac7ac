use std::{borrow::Cow, fmt::Display};

use toolwire::{Server, State, prompt, resource, tool, routes};

#[tool]
async fn generic<T: Display>(value: T) -> String {
    value.to_string()
}

#[resource("x://y")]
async fn constant<const N: usize>() -> String {
    N.to_string()
}

#[tool]
async fn lifetime<'a>(text: &'a str) -> &'a str {
    text
}

#[tool]
async fn bounded()
where
    String: Display,
{
}

#[tool]
const fn constant_function() {}

#[tool]
unsafe fn dangerous() {}

#[tool]
extern "C" fn foreign() {}

#[prompt]
async fn any_argument(value: impl Display) -> String {
    value.to_string()
}

#[tool]
async fn any_output() -> impl Display {
    "text"
}

#[tool]
async fn text(text: &str) -> String {
    text.to_owned()
}

#[tool]
async fn list(list: &'static [u8]) -> String {
    list.len().to_string()
}

#[tool]
async fn mutable(list: &mut Vec<u8>) {
    list.clear();
}

#[tool]
async fn inside(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}

#[tool]
async fn cow(text: Cow<'_, str>) -> String {
    text.into_owned()
}

#[tool]
async fn state(State(text): State<&str>) -> String {
    text.to_owned()
}

fn main() {
    let _ = Server::builder("demo", "1.0").routes(routes![generic, lifetime, any_argument, constant]);
}
