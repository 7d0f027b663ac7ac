//! Prompts of every kind, and completions for one.

use toolwire::{
    Group, prompt, routes,
    wire::{Content, PromptMessage, ResourceContents, Role},
};

use super::content::pixel;

pub(super) fn routes() -> Group {
    let with_arguments = test_prompt_with_arguments::route();
    Group::new()
        .routes(routes![test_simple_prompt])
        .prompt(with_arguments.complete("arg1", ["test value 1", "test value 2", "other value"]))
        .routes(routes![test_prompt_with_embedded_resource, test_prompt_with_image])
}

fn user(content: Content) -> PromptMessage {
    PromptMessage::new(Role::User, content)
}

/// Has no arguments.
#[prompt]
async fn test_simple_prompt() -> &'static str {
    "This is a simple prompt for testing."
}

/// Has two arguments.
#[prompt]
async fn test_prompt_with_arguments(
    /// The first one.
    arg1: String,
    /// The second one.
    arg2: String,
) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

/// Brings a resource along.
#[prompt]
async fn test_prompt_with_embedded_resource(
    /// The URI of the resource.
    #[arg(rename = "resourceUri")]
    uri: String,
) -> Vec<PromptMessage> {
    let resource = ResourceContents::text(uri, "Embedded resource content for testing.");
    vec![
        user(Content::resource(resource.mime_type("text/plain"))),
        user(Content::text("Please process the embedded resource above.")),
    ]
}

/// Brings a picture along.
#[prompt]
async fn test_prompt_with_image() -> Vec<PromptMessage> {
    vec![user(pixel()), user(Content::text("Please analyze the image above."))]
}
