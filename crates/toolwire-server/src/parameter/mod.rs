//! Parameters that are told apart by their types: what the attributes make of a function's signature.
//!
//! A parameter is either taken from the request by the server, as `State<S>` is, or sent by the caller as an argument.
//! Which one it is follows from its type and never from its name, and a type that could be both is an error of the
//! compiler: what a server finds out for itself must not become something the caller may send.

mod missing;
mod table;
mod values;

pub use table::Named;
pub(crate) use table::Table;
pub(crate) use table::TableBuilder;
pub(crate) use values::unknown;
pub use values::{Slot, Values, variable, variable_is_absent, variables};

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Context,
    handler::{FromContext, Handler, HandlerSpec, Rejection},
};

/// A parameter of a function with `#[tool]`, `#[prompt]` or `#[resource]`.
///
/// There are two kinds, and two ways to be one: what can be made [`FromContext`] is [`Extracted`], and what can be
/// deserialised and has a schema is [`Given`]. Nothing else implements this.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither an extractor nor an argument",
    label = "cannot be a parameter",
    note = "what the caller sends needs `Deserialize` and `JsonSchema`: put `#[args]` on the struct, or derive both",
    note = "what the server takes from the request needs `FromContext`, as `State<S>`, `Context` and `Progress` have it"
)]
pub trait Parameter<Kind>: Sized + Send {
    #[doc(hidden)]
    fn describe(spec: &mut HandlerSpec, named: Named);

    #[doc(hidden)]
    fn take(cx: &Context, slot: Slot<'_>) -> impl Future<Output = Result<Self, Rejection>> + Send;
}

/// The kind of a parameter that the server takes from the request. The caller cannot send it.
///
/// When the compiler says "type annotations needed" and names this, the type of a parameter is an extractor and can
/// be deserialised as well. Put `#[extract]` on the parameter to take it from the request, or `#[arg]` to let the
/// caller send it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Extracted;

/// The kind of a parameter that the caller sends as an argument.
///
/// When the compiler says "type annotations needed" and names this, the type of a parameter is an extractor and can
/// be deserialised as well. Put `#[extract]` on the parameter to take it from the request, or `#[arg]` to let the
/// caller send it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Given;

impl<T: FromContext> Parameter<Extracted> for T {
    fn describe(spec: &mut HandlerSpec, _: Named) {
        spec.extracts::<T>();
        T::describe(spec);
    }

    fn take(cx: &Context, _: Slot<'_>) -> impl Future<Output = Result<Self, Rejection>> + Send {
        T::from_context(cx)
    }
}

impl<T: DeserializeOwned + JsonSchema + Send> Parameter<Given> for T {
    fn describe(spec: &mut HandlerSpec, named: Named) {
        spec.parameters.push::<T>(named);
    }

    fn take(cx: &Context, slot: Slot<'_>) -> impl Future<Output = Result<Self, Rejection>> + Send {
        std::future::ready(slot.decode(cx))
    }
}

/// A function whose parameters have been told apart. What the attributes make a handler of.
#[derive(Clone, Debug)]
pub struct Function<F> {
    signature: Arc<Signature>,
    call: F,
}

/// What the parameters of a function say about it.
#[derive(Debug)]
pub struct Signature {
    /// Asked for when a route is made, and never again.
    spec: Mutex<HandlerSpec>,
    table: Table,
}

impl<F> Function<F> {
    /// `describe` describes the parameters in their order, and `call` takes them apart in the same.
    pub fn new(describe: impl FnOnce(&mut HandlerSpec), call: F) -> Self {
        let mut spec = HandlerSpec::default();
        describe(&mut spec);
        let table = spec.finish();
        Self { signature: Arc::new(Signature { spec: Mutex::new(spec), table }), call }
    }
}

/// Marks the handlers that are a [`Function`].
#[derive(Debug)]
pub struct ByParameters(());

impl<F, Fut, Out> Handler<ByParameters> for Function<F>
where
    F: Fn(Context, Arc<Signature>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, Rejection>> + Send,
    Out: Send,
{
    type Output = Out;

    fn call(self, cx: Context) -> impl Future<Output = Result<Out, Rejection>> + Send {
        (self.call)(cx, self.signature)
    }

    fn describe(&self, spec: &mut HandlerSpec) {
        spec.clone_from(&self.signature.spec.lock().unwrap_or_else(PoisonError::into_inner));
        spec.threshold = true;
    }
}

/// A default value, as it is shown in a schema if it can be.
#[derive(Debug)]
pub struct Shown<'a, T>(pub &'a T);

impl<T: Serialize> Shown<'_, T> {
    /// The value as JSON.
    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::to_value(self.0).ok()
    }
}

/// What is found for a [`Shown`] whose value cannot be serialised.
pub trait NotShown {
    /// Nothing.
    fn json(&self) -> Option<serde_json::Value> {
        None
    }
}

impl<T> NotShown for Shown<'_, T> {}
