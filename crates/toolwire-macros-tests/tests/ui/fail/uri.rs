use toolwire::{Server, resource, routes};

#[resource]
fn missing() -> &'static str {
    ""
}

#[resource(name = "config", "config://app")]
fn not_first() -> &'static str {
    ""
}

#[resource("")]
fn empty() -> &'static str {
    ""
}

#[resource("users://{id")]
fn open() -> &'static str {
    ""
}

#[resource("users://id}")]
fn closed() -> &'static str {
    ""
}

#[resource("users://{}")]
fn nameless() -> &'static str {
    ""
}

fn main() {
    let _ = Server::builder("demo", "1.0").routes(routes![missing, open]);
}
