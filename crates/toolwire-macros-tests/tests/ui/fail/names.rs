use toolwire::{prompt, resource, tool};

#[tool]
fn str() -> &'static str {
    "text"
}

#[prompt]
async fn char() -> String {
    String::new()
}

#[resource("x://bool")]
async fn bool() -> String {
    String::new()
}

fn main() {}
