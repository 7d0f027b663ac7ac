use schemars::JsonSchema;
use serde::Deserialize;
use toolwire::{Context, Uri, prompt, tool};

#[derive(Deserialize, JsonSchema)]
struct Pair {
    a: i64,
}

#[tool]
fn pattern((a, b): (i64, i64)) -> String {
    (a + b).to_string()
}

#[tool]
fn nameless(_: i64) {}

#[prompt]
fn uri(Uri(pair): Uri<Pair>) -> String {
    pair.a.to_string()
}

#[tool]
fn unknown_option(#[arg(name = "a")] a: i64) -> String {
    a.to_string()
}

#[tool]
fn option_twice(#[arg(default)] #[arg(default = 3)] a: i64) -> String {
    a.to_string()
}

#[tool]
fn option_outside(#[arg = 3] a: i64) -> String {
    a.to_string()
}

#[tool]
fn extract_option(#[extract(now)] a: Context) {
    drop(a);
}

#[tool]
fn arg_and_extract(#[arg] #[extract] cx: Context) {
    drop(cx);
}

#[tool]
fn schema_of_extractor(#[extract] #[schemars(range(min = 3))] cx: Context) {
    drop(cx);
}

#[tool]
fn sometimes(#[cfg(unix)] a: i64) {}

#[tool]
fn same_name(#[arg(rename = "b")] a: i64, b: i64) -> String {
    (a + b).to_string()
}

fn main() {}
