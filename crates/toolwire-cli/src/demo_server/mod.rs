//! The built-in demonstration server: a small, complete example of the SDK that every client can be tried on.
//!
//! It is made of plain functions and closures; nothing in it knows which revision of the protocol a client
//! speaks. It touches neither files nor the network, and forgets its notes when it ends.

mod asking;
mod long;
mod notes;
mod people;
mod shows;
mod tools;

#[cfg(test)]
mod tests;

use toolwire::{
    BuildError, Group, Server, prompt, resource,
    server::{ServerBuilder, TaskPolicy},
    template, tool,
};

use notes::Notes;

/// A plug on its wire.
const LOGO: &[u8] = include_bytes!("logo.png");

/// What the server calls itself.
pub(crate) const NAME: &str = "toolwire-demo";

const INSTRUCTIONS: &str = "A server to try MCP clients on. `add`, `echo`, `count` and `fail` show how tools \
     answer, report progress and fail; `add_note` changes the list of resources while you watch. `order`, `visit`, \
     `ask_model` and `show_roots` ask back; `planets` returns a table, `gallery` pictures and sounds, and `wait` \
     takes as long as it is told. Calls of `report` and `deploy` go on as tasks.";

/// Makes the server, with no notes yet.
pub(crate) fn server() -> Result<Server, BuildError> {
    builder().build()
}

/// Returns the server as it is before it is built, for those who add to it.
pub(crate) fn builder() -> ServerBuilder {
    let add = tool("add", tools::add)
        .title("Add two numbers")
        .description("Adds two whole numbers.")
        .read_only()
        .idempotent();
    let echo = tool("echo", tools::echo)
        .title("Echo")
        .description("Says what it is told.")
        .read_only()
        .idempotent()
        .lenient();
    let fail = tool("fail", tools::fail)
        .title("Fail")
        .description("Fails, always, to show what that looks like.")
        .read_only();
    let count = tool("count", tools::count)
        .title("Count")
        .description("Counts slowly, with progress and a log message at each step.")
        .read_only();
    let add_note = tool("add_note", notes::add_note)
        .title("Add a note")
        .description("Keeps a note as a new resource, for as long as the server runs.");
    let asking = Group::new()
        .tool(tool("order", asking::order).title("Order tea").description("Orders tea, after asking how."))
        .tool(
            tool("visit", asking::visit)
                .title("Visit a page")
                .description("Asks you to read a page in a browser.")
                .open_world(true),
        )
        .tool(
            tool("ask_model", asking::ask_model)
                .title("Ask the model")
                .description("Passes a question on to the client's own model."),
        )
        .tool(
            tool("show_roots", asking::show_roots)
                .title("Show the roots")
                .description("Lists the folders that the client shares.")
                .read_only(),
        );
    let shows = Group::new()
        .tool(
            tool("planets", shows::planets)
                .title("Planets")
                .description("Lists the planets, as a table.")
                .read_only()
                .idempotent(),
        )
        .tool(
            tool("gallery", shows::gallery)
                .title("Gallery")
                .description("Returns a picture, a sound, a resource and a link.")
                .read_only(),
        )
        .tool(
            tool("wait", shows::wait)
                .title("Wait")
                .description("Waits, and tells on standard error when it is cancelled.")
                .read_only(),
        );
    let greeting = resource("demo://greeting", || async { "Hello from Toolwire" })
        .name("greeting")
        .description("A friendly word.")
        .mime_type("text/plain");
    let size = u64::try_from(LOGO.len()).unwrap_or(u64::MAX);
    let logo = resource("demo://logo", || async { LOGO.to_vec() })
        .name("logo")
        .description("A small picture, to show binary contents.")
        .mime_type("image/png")
        .size(size);
    let user = template("demo://users/{name}", people::hello)
        .name("user")
        .description("A greeting for anybody, by name.")
        .mime_type("text/plain")
        .complete("name", people::NAMES);
    let greet = prompt("greet", people::greet)
        .title("Greet somebody")
        .description("Asks the model to greet somebody.")
        .complete("name", people::NAMES);

    Server::builder(NAME, env!("CARGO_PKG_VERSION"))
        .title("Toolwire demonstration")
        .description("A small server that shows every part of the Model Context Protocol.")
        .instructions(INSTRUCTIONS)
        .state(Notes::default())
        .tool(add)
        .tool(echo)
        .tool(fail)
        .tool(count)
        .tool(add_note)
        .routes(asking)
        .routes(shows)
        .routes(long_work())
        .resource(greeting)
        .resource(logo)
        .template(user)
        .prompt(greet)
}

/// What goes on as tasks.
fn long_work() -> Group {
    Group::new()
        .tool(
            tool("report", long::report)
                .title("Write a report")
                .description("Writes the report of a year, step by step, as a task.")
                .read_only()
                .task(TaskPolicy::optional()),
        )
        .tool(
            tool("deploy", long::deploy)
                .title("Deploy")
                .description("Pretends to deploy a version, as a task that asks before it goes live.")
                .task(TaskPolicy::optional()),
        )
}
