//! The people who can be greeted.

use serde::Deserialize;
use toolwire::{
    Args, Uri,
    schemars::{self, JsonSchema},
};

/// What completion offers for a name.
pub(super) const NAMES: [&str; 5] = ["Ada", "Alan", "Barbara", "Grace", "Linus"];

/// Somebody, as the argument of a prompt and as the variable of a template.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Person {
    /// Who is to be greeted.
    name: String,
}

pub(super) async fn hello(Uri(person): Uri<Person>) -> String {
    format!("Hello, {}!", person.name)
}

pub(super) async fn greet(Args(person): Args<Person>) -> String {
    format!("Please greet {} warmly.", person.name)
}
