use serde::Deserialize;
use toolwire::{Args, Context, Uri, resource};

#[resource("users://{id}/{field}")]
fn misspelt(idd: u64, field: String) -> String {
    format!("{idd} {field}")
}

#[resource("users://{id}/{field}")]
fn forgotten(id: u64, cx: Context) -> String {
    format!("{id} {cx:?}")
}

#[resource("config://app")]
fn no_variables(id: u64) -> String {
    id.to_string()
}

#[resource("users://{id}")]
fn renamed_away(#[arg(rename = "user")] id: u64) -> String {
    id.to_string()
}

#[derive(Deserialize)]
struct User {
    id: u64,
}

#[resource("config://app")]
fn uri_without_variables(Uri(user): Uri<User>) -> String {
    user.id.to_string()
}

#[resource("users://{id}")]
fn uri_and_variable(Uri(user): Uri<User>, id: u64) -> String {
    format!("{} {id}", user.id)
}

#[resource("users://{id}")]
fn args(Args(user): Args<User>) -> String {
    user.id.to_string()
}

fn main() {}
