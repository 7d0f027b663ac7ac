//! Resources of every kind, and one to be watched.

use serde_json::Value;
use toolwire::{
    Group, Json, json, resource, routes,
    wire::{BlobResourceContents, ResourceContents},
};

use super::content::PIXEL;

pub(super) fn routes() -> Group {
    Group::new()
        // The first one of the list is read to see how long it may be cached.
        .routes(routes![static_text, static_binary, watched_resource, template_data])
}

/// A text that never changes.
#[resource("test://static-text", name = "static-text", mime_type = "text/plain")]
async fn static_text() -> &'static str {
    "This is the content of the static text resource."
}

/// A picture that never changes.
#[resource("test://static-binary", name = "static-binary", mime_type = "image/png")]
async fn static_binary() -> ResourceContents {
    BlobResourceContents::new("test://static-binary", PIXEL).mime_type("image/png").into()
}

/// A text to be watched.
#[resource("test://watched-resource", name = "watched-resource", mime_type = "text/plain")]
async fn watched_resource() -> &'static str {
    "Nothing has changed."
}

/// What is known by an id.
#[resource("test://template/{id}/data", name = "template-data", mime_type = "application/json")]
async fn template_data(id: String) -> Json<Value> {
    let data = format!("Data for ID: {id}");
    Json(json!({ "id": id, "templateTest": true, "data": data }))
}
