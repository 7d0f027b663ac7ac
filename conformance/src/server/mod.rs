//! The server that the suite calls: the fixtures its scenarios ask for, by the names they ask for.

mod asking;
mod content;
mod elicitation;
mod events;
mod input_required;
mod prompts;
mod resources;
mod schemas;
mod tasks;

use toolwire::{BuildError, Server};

/// Makes the server, the same for every revision and every transport.
///
/// # Errors
/// When a fixture is not one that a server can have.
pub fn server() -> Result<Server, BuildError> {
    let server = Server::builder("toolwire-conformance-server", env!("CARGO_PKG_VERSION"))
        .title("Toolwire conformance server")
        .description("Has everything that the conformance suite asks a server for.")
        // The first tool of the list is called without arguments and without capabilities, so this comes first.
        .routes(content::routes())
        .routes(events::routes())
        .routes(schemas::routes())
        .routes(asking::routes())
        .routes(elicitation::routes())
        .routes(input_required::routes())
        .routes(tasks::routes())
        .routes(resources::routes())
        .routes(prompts::routes());
    crate::skills::server::serve(server, crate::skills::server::sample()).build()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolwire::{Client, memory};

    use super::server;

    #[tokio::test]
    async fn the_first_tool_works_without_arguments_and_capabilities() {
        let (transport, peer) = memory::pair();
        let serving = tokio::spawn(async move { server().unwrap().serve(transport).await });
        let client = Client::builder("test", "1.0").connect(peer).await.unwrap();
        let tools = client.all_tools().await.unwrap();
        let outcome = client.call(tools[0].name.clone(), json!({})).await.unwrap();
        assert_eq!(outcome.text(), "This is a simple text response for testing.");
        client.close().await.unwrap();
        serving.await.unwrap().unwrap();
    }
}
