//! Arguments, template variables, state and what transports attach.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolwire_protocol::{Method, RpcError};

use super::strings;
use crate::{
    Context,
    handler::{FromContext, HandlerSpec, Rejection},
    parameter::variables,
};

/// The arguments of a tool or a prompt, decoded into `T`. `T`'s schema is the schema of the tool.
///
/// The arguments of a prompt are strings on the wire; numbers, booleans and enums are read from them.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolwire_server::{Args, tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Sum { a: i64, b: i64 }
///
/// async fn add(Args(sum): Args<Sum>) -> String {
///     (sum.a + sum.b).to_string()
/// }
///
/// let route = tool("add", add).description("Adds two numbers.");
/// ```
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "taken apart in argument position")]
pub struct Args<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send + 'static> FromContext for Args<T> {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        let unknown = cx.0.tool.get().zip(cx.0.peek.arguments.as_deref());
        if let Some(problem) = unknown.and_then(|(route, raw)| route.unknown_argument(raw)) {
            return Err(Rejection::InvalidArguments(problem));
        }
        decode(cx).map(Self)
    }

    fn describe(spec: &mut HandlerSpec) {
        spec.is_sent::<Self>();
        spec.takes_arguments::<T>();
    }
}

/// Decodes the arguments of a tool or a prompt. Those that it does not know are not looked at.
pub(crate) fn decode<T: DeserializeOwned>(cx: &Context) -> Result<T, Rejection> {
    let raw = cx.0.peek.arguments.as_deref();
    let decoded = decode_raw(cx, raw.unwrap_or(b"{}")).map_err(Rejection::InvalidArguments);
    // No arguments at all are none that do not fit.
    decoded.map_err(|rejection| if raw.is_none() { Rejection::absent(rejection) } else { rejection })
}

fn decode_raw<T: DeserializeOwned>(cx: &Context, raw: &[u8]) -> Result<T, String> {
    if cx.method().known() == Some(Method::GetPrompt) {
        return strings::decode_json(raw);
    }
    serde_json::from_slice(raw).or_else(|error| {
        let route = cx.0.tool.get();
        let mended = route.zip(std::str::from_utf8(raw).ok()).and_then(|(route, raw)| route.mend(raw));
        let value = mended.ok_or_else(|| error.to_string())?;
        serde_json::from_value(value).map_err(|error| error.to_string())
    })
}

/// The variables of a resource template, decoded into `T`: a struct with a field for each variable.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolwire_server::{Uri, template};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct User { id: u64 }
///
/// async fn user(Uri(user): Uri<User>) -> String {
///     format!("user number {}", user.id)
/// }
///
/// let route = template("users://{id}", user).name("user");
/// ```
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "taken apart in argument position")]
pub struct Uri<T>(pub T);

impl<T: DeserializeOwned + Send> FromContext for Uri<T> {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        variables(cx).map(Self)
    }

    fn describe(spec: &mut HandlerSpec) {
        spec.is_sent::<Self>();
    }
}

/// A value given to [`ServerBuilder::state`](crate::ServerBuilder::state), cloned for each request.
///
/// A missing state is found when the server is built, not when a request comes.
///
/// ```
/// use std::sync::Arc;
/// use toolwire_server::{Server, State, tool};
///
/// #[derive(Clone)]
/// struct App { greeting: Arc<str> }
///
/// async fn greet(State(app): State<App>) -> String {
///     app.greeting.to_string()
/// }
///
/// let app = App { greeting: "hello".into() };
/// let server = Server::builder("demo", "1.0").state(app).tool(tool("greet", greet)).build().unwrap();
/// assert!(Server::builder("demo", "1.0").tool(tool("greet", greet)).build().is_err());
/// ```
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "taken apart in argument position")]
pub struct State<S>(pub S);

impl<S: Clone + Send + Sync + 'static> FromContext for State<S> {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        cx.state().map(Self).ok_or_else(|| {
            Rejection::absent(RpcError::internal(format!("no state of type {}", std::any::type_name::<S>())))
        })
    }

    fn describe(spec: &mut HandlerSpec) {
        spec.needs_state::<S>();
    }

    fn describe_optional(_: &mut HandlerSpec) {}
}

/// Something a transport attached to the request, for instance the parts of an HTTP request.
///
/// Take `Option<Extension<T>>` where the transport may not have it.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "taken apart in argument position")]
pub struct Extension<T>(pub T);

impl<T: Clone + Send + Sync + 'static> FromContext for Extension<T> {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        cx.extension().map(Self).ok_or_else(|| {
            let error = format!("this transport does not provide {}", std::any::type_name::<T>());
            Rejection::absent(RpcError::internal(error))
        })
    }

    fn describe(spec: &mut HandlerSpec) {
        spec.takes_from_request::<T>();
    }

    fn describe_optional(_: &mut HandlerSpec) {}
}
