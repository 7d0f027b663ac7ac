//! What a parameter is follows from its type, and a type that could be both has to be told.

use schemars::JsonSchema;
use serde::Deserialize;
use toolwire::{
    Context,
    server::{FromContext, Rejection},
    tool,
};

struct Neither;

/// Found out by the server, and by accident something that a caller could send.
#[derive(Deserialize, JsonSchema)]
struct Tenant {
    name: String,
}

impl FromContext for Tenant {
    async fn from_context(_: &Context) -> Result<Self, Rejection> {
        Ok(Self { name: "acme".to_owned() })
    }
}

#[tool]
async fn neither(value: Neither) {
    drop(value);
}

#[tool]
async fn both(tenant: Tenant) -> String {
    tenant.name
}

#[tool]
async fn both_if_there(tenant: Option<Tenant>) -> String {
    tenant.map_or_else(String::new, |tenant| tenant.name)
}

#[tool]
async fn said(#[extract] tenant: Tenant, #[arg] other: Tenant) -> String {
    tenant.name + &other.name
}

fn main() {}
