use toolwire::{Server, prompt, resource, tool, routes};

#[tool(colour = "red")]
fn unknown() {}

#[prompt(read_only)]
fn only_tools_have_hints() -> &'static str {
    ""
}

#[resource("x://y", uri = "x://z")]
fn uri_is_no_word() -> &'static str {
    ""
}

#[tool(title = "One", title = "Two")]
fn twice() {}

#[tool(title)]
fn no_text() {}

#[tool(title = 3)]
fn no_text_but_a_number() {}

#[tool(description = 3)]
fn no_description() {}

#[tool(name = "")]
fn empty_name() {}

#[tool(read_only = true)]
fn hint_with_value() {}

#[tool(open_world)]
fn hint_without_value() {}

#[tool(read_only, destructive)]
fn contradiction() {}

#[tool(read_only idempotent)]
fn no_comma() {}

#[tool("add")]
fn text_without_word() {}

#[tool(crate = "not a path")]
fn wrong_crate() {}

#[tool(scopes = "files:read")]
fn scopes_are_a_list() {}

#[tool(scopes())]
fn no_scopes() {}

#[tool(scopes("files:read files:write"))]
fn two_scopes_in_one() {}

fn main() {
    // What was refused can still be named, so that there is one error and not two.
    let _ = Server::builder("demo", "1.0").routes(routes![unknown, only_tools_have_hints, uri_is_no_word]);
}
