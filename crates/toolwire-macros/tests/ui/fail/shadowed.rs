//! The value is not a function any more, which shows when a variable has the same name.

use toolwire::tool;

#[tool]
fn user() {}

fn main() {
    let user = "me";
    drop(user);
}
