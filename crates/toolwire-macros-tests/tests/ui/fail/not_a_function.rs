use toolwire::{prompt, resource, tool};

#[tool]
struct Add {
    a: i64,
}

#[prompt]
const REVIEW: &str = "Review this.";

trait Files {
    #[resource("file:///")]
    fn list();
}

fn main() {}
