//! Tools that return each kind of content.

use toolwire::{
    Group, ToolError, routes, tool,
    wire::{AudioContent, Content, ImageContent, ResourceContents},
};

/// A grey picture of one pixel, as a PNG file in base64.
pub(super) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg==";

/// A millisecond of silence, as a WAV file in base64.
const SILENCE: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";

pub(super) fn routes() -> Group {
    routes![
        test_simple_text,
        test_image_content,
        test_audio_content,
        test_embedded_resource,
        test_multiple_content_types,
        test_error_handling
    ]
}

pub(super) fn pixel() -> Content {
    Content::Image(ImageContent::new(PIXEL, "image/png"))
}

/// Returns a text.
#[tool]
async fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Returns a picture.
#[tool]
async fn test_image_content() -> Content {
    pixel()
}

/// Returns a sound.
#[tool]
async fn test_audio_content() -> Content {
    Content::Audio(AudioContent::new(SILENCE, "audio/wav"))
}

/// Returns a resource with its contents.
#[tool]
async fn test_embedded_resource() -> Content {
    let text = "This is an embedded resource content.";
    Content::resource(ResourceContents::text("test://embedded-resource", text).mime_type("text/plain"))
}

/// Returns a text, a picture and a resource.
#[tool]
async fn test_multiple_content_types() -> Vec<Content> {
    let json = ResourceContents::text("test://mixed-content-resource", r#"{"test":"data","value":123}"#);
    vec![
        Content::text("Multiple content types test:"),
        pixel(),
        Content::resource(json.mime_type("application/json")),
    ]
}

/// Fails, always.
#[tool]
async fn test_error_handling() -> Result<String, ToolError> {
    Err(ToolError::message("This tool intentionally returns an error for testing"))
}
