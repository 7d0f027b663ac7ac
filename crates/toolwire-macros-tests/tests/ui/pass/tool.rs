//! Everything a tool can look like.
#![deny(warnings, missing_docs)]

use std::{
    borrow::Cow,
    future::Future,
    pin::pin,
    task::{Context as Cx, Poll, Waker},
};

use toolwire::{
    Context, Json, Progress, Server, State,
    server::{FromContext, Rejection},
    tool, routes};

#[derive(Clone)]
struct App {
    greeting: &'static str,
}

/// An extractor of our own.
struct Caller(String);

impl FromContext for Caller {
    async fn from_context(_: &Context) -> Result<Self, Rejection> {
        Ok(Self("somebody".to_owned()))
    }
}

/// Adds two numbers.
#[tool]
async fn add(
    /// The first one.
    a: i64,
    #[arg(rename = "bee", default = 3)] mut b: i64,
) -> Json<i64> {
    b += a;
    Json(b)
}

/// A public one, with all options.
#[tool(
    name = "greet.everybody",
    title = "Greet",
    description = "Says hello.",
    read_only,
    idempotent,
    open_world = false,
    scopes("greet:everybody", "greet:loudly",),
    crate = "toolwire"
)]
pub async fn greet(
    #[arg(default = "you")] who: String,
    #[arg(default)] times: u32,
    #[arg(description = "How loud.")] r#type: Option<String>,
    cow: Cow<'static, str>,
    _cx: Option<Context>,
    _: Progress,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    Ok(format!("{who} {times} {type:?} {cow}"))
}

#[tool(description = concat!("Says ", "hello."))]
fn hello(State(app): State<App>, #[extract] Caller(name): Caller) -> String {
    format!("{}, {name}", app.greeting)
}

#[tool]
fn nothing() {}

/// The function's own name does not get in its way.
#[tool(destructive)]
async fn remove(remove: bool) -> &'static str {
    let remove = if remove { "yes" } else { "no" };
    remove
}

#[tool]
#[cfg(any())]
async fn gone(what: Missing) {}

#[tool]
#[deprecated]
#[expect(clippy::unused_async, reason = "attributes stay on the function")]
async fn old() {}

/// Names of other modules can be used as they are, whatever they are called there.
mod inner {
    use toolwire::{State, tool};

    /// A type that nobody else sees.
    #[derive(Clone)]
    struct Secret;

    #[tool(name = "inner_hello")]
    pub(super) async fn hello(hello: String) -> String {
        let look = hello;
        look
    }

    /// What is in the signature need be no more visible than without the attribute.
    #[tool]
    #[allow(private_interfaces)]
    pub async fn look(State(_secret): State<Secret>) {}

    pub(super) fn secret() -> impl Clone + Send + Sync + 'static {
        Secret
    }
}

/// Runs a future that never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Cx::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

fn main() {
    assert_eq!(now(add(1, 2)).0, 3);
    assert_eq!(hello(State(App { greeting: "hi" }), Caller("you".to_owned())), "hi, you");
    nothing();
    assert_eq!(now(remove(true)), "yes");
    // Nothing but the function has its name among the values.
    let add = add::route();
    let hello = |greet: &str| greet.len();
    assert_eq!(hello("four"), 4);

    #[tool]
    async fn local(text: String) -> String {
        text
    }
    #[allow(deprecated)]
    let builder = Server::builder("demo", "1.0").routes(routes![old]);
    builder
        .state(App { greeting: "hi" })
        .state(inner::secret())
        .tool(add.title("Sum"))
        .routes(routes![greet, nothing, remove, local, inner::hello, inner::look])
        .tool(self::hello::route())
        .build()
        .unwrap();
}
