//! How a plain async function becomes a handler.
//!
//! A function is a handler when each of its arguments can be made [`FromContext`]. The trait's type
//! parameter `In` is the tuple of those arguments; it only keeps the compiler's bookkeeping straight and
//! can be ignored.

use std::{any::TypeId, fmt, future::Future, pin::Pin, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolwire_protocol::RpcError;

use crate::{
    Context, Reply,
    ask::AskError,
    parameter::{Table, TableBuilder},
    schema::ToolSchema,
};

/// A value that is made from a request before the handler runs: an extractor.
///
/// Implement it to give handlers arguments of your own.
///
/// ```
/// use toolwire_server::{Context, FromContext, Rejection};
///
/// /// The name of the calling application.
/// struct CallerName(String);
///
/// impl FromContext for CallerName {
///     async fn from_context(cx: &Context) -> Result<Self, Rejection> {
///         let name = cx.caller().info().map_or_else(|| "somebody".to_owned(), |info| info.name.clone());
///         Ok(Self(name))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be extracted from a request",
    label = "not an extractor",
    note = "extractors are `Args<T>` for all the arguments, `State<S>`, `Context`, `Caller`, `Progress`, `Log`, `Meta`, `Uri<T>`, `Extension<T>`, whatever has `FromContext`, and an `Option` of one",
    note = "for a plain argument such as `city: String`, put `#[tool]` on the function and give the parameter a plain name, or collect the arguments in a struct and take `Args<YourStruct>`",
    note = "the arguments of a resource are the variables of its URI: write `{{city}}` there"
)]
pub trait FromContext: Sized + Send {
    /// Makes the value, or says why it cannot.
    fn from_context(cx: &Context) -> impl Future<Output = Result<Self, Rejection>> + Send;

    /// Tells registration what the value needs: a schema, a state, a log.
    fn describe(spec: &mut HandlerSpec) {
        let _ = spec;
    }

    /// The same where the value is taken as an `Option`, and may therefore be absent.
    fn describe_optional(spec: &mut HandlerSpec) {
        Self::describe(spec);
    }
}

/// Why an extractor refused.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Rejection {
    /// The arguments do not fit. A tool answers with an `isError` result that the model can read and
    /// mend; everything else with an invalid-params error.
    InvalidArguments(String),
    /// The user was asked and did not answer.
    Ask(AskError),
    /// Anything else: the request ends with this error.
    Fault(RpcError),
    /// What was asked for is not there, which is no error to whoever takes an `Option` of it. To everybody else it is
    /// this one.
    Absent(Box<Self>),
}

impl Rejection {
    /// What the extractor looks for is not there at all: an `Option` of it is `None`. Everybody else gets `otherwise`.
    ///
    /// Use it for what may rightly be missing, and for nothing else: a token that is there and not valid is no reason to
    /// go on without one.
    pub fn absent(otherwise: impl Into<Self>) -> Self {
        Self::Absent(Box::new(otherwise.into()))
    }

    /// The reason, whether it would have been one to an `Option` or not.
    pub(crate) fn reason(self) -> Self {
        match self {
            Self::Absent(otherwise) => otherwise.reason(),
            other => other,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidArguments(reason) => f.write_str(reason),
            Self::Ask(error) => error.fmt(f),
            Self::Fault(error) => error.fmt(f),
            Self::Absent(otherwise) => otherwise.fmt(f),
        }
    }
}

impl std::error::Error for Rejection {}

impl From<RpcError> for Rejection {
    fn from(error: RpcError) -> Self {
        Self::Fault(error)
    }
}

/// What a handler's arguments and return type say about it, collected at registration.
#[derive(Clone, Debug, Default)]
pub struct HandlerSpec {
    pub(crate) input: Option<Arc<ToolSchema>>,
    /// The arguments that are taken one by one.
    pub(crate) parameters: TableBuilder,
    /// The arguments that a question is about, if nothing else says what they are.
    pub(crate) asked: Option<Arc<ToolSchema>>,
    pub(crate) problems: Vec<String>,
    pub(crate) output: Option<Arc<ToolSchema>>,
    pub(crate) states: Vec<(TypeId, &'static str)>,
    pub(crate) logs: bool,
    /// Whether the caller must be known.
    pub(crate) principal: bool,
    /// What the handler takes from the request by itself.
    pub(crate) taken: Vec<&'static str>,
    /// What it takes that only a request has, and that is gone when work goes on without it.
    pub(crate) from_request: Vec<(TypeId, &'static str)>,
    /// Whether it waits at the [threshold](Context::threshold) between its extractors and its body.
    pub(crate) threshold: bool,
}

impl HandlerSpec {
    /// The handler takes arguments of this type. Its schema is made when the type is first seen.
    pub fn takes<T: JsonSchema + 'static>(&mut self) {
        self.input = Some(ToolSchema::input_of::<T>());
    }

    /// The handler takes arguments of this type, which knows their names.
    pub(crate) fn takes_arguments<T: DeserializeOwned + JsonSchema + 'static>(&mut self) {
        self.input = Some(ToolSchema::arguments_of::<T>());
    }

    /// The handler takes an argument with attributes of its own, as the only field of `T`.
    #[doc(hidden)]
    pub fn field<T: DeserializeOwned + JsonSchema>(&mut self, position: usize, aliases: &[&'static str]) {
        self.parameters.push_field::<T>(position, aliases);
    }

    /// Everything that a handler says about itself.
    pub(crate) fn of<In>(handler: &impl Handler<In>) -> Self {
        let mut spec = Self::default();
        handler.describe(&mut spec);
        spec.finish();
        spec
    }

    /// Puts together what was said one by one.
    pub(crate) fn finish(&mut self) -> Table {
        let (table, schema) = self.parameters.finish();
        if let Some((schema, order)) = schema {
            if self.input.is_some() {
                let problem =
                    "its handler takes `Args<T>`, which has all the arguments in it, and single ones as well";
                self.problems.push(problem.to_owned());
            }
            let names = table.names().map(Into::into).collect();
            self.input = Some(Arc::new(ToolSchema::of_parameters(schema, names, order)));
        }
        self.input = self.input.take().or_else(|| self.asked.take());
        table
    }

    /// The handler returns structured content of this type. Its schema is made when the type is first seen.
    pub fn returns<T: JsonSchema + 'static>(&mut self) {
        self.output = Some(ToolSchema::output_of::<T>());
    }

    /// The handler needs a state of this type, given with [`ServerBuilder::state`](crate::ServerBuilder::state).
    pub fn needs_state<S: 'static>(&mut self) {
        self.states.push((TypeId::of::<S>(), std::any::type_name::<S>()));
    }

    /// The handler takes a value of this type that no caller can send.
    #[doc(hidden)]
    pub fn extracts<T>(&mut self) {
        self.taken.push(std::any::type_name::<T>());
    }

    /// The value of this type was sent by the caller after all.
    pub(crate) fn is_sent<T>(&mut self) {
        self.taken.pop_if(|last| *last == std::any::type_name::<T>());
    }

    /// The handler takes a `T` that a transport has attached to the request. Work that goes on without its request, as a
    /// task does, has it only if [`ServerBuilder::carry`](crate::ServerBuilder::carry) says so.
    pub fn takes_from_request<T: 'static>(&mut self) {
        self.from_request.push((TypeId::of::<T>(), std::any::type_name::<T>()));
    }

    /// The handler may send log messages, so the server advertises `logging`.
    pub fn logs(&mut self) {
        self.logs = true;
    }

    /// The handler is not for anonymous callers: their requests are refused before it is called.
    pub fn needs_principal(&mut self) {
        self.principal = true;
    }
}

/// An async function (or closure) whose arguments are all extractors.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    label = "not a handler",
    note = "a handler is an async function, or a closure that returns a future; each argument is an extractor such as `Args<T>`, `State<S>` or `Context`, and at most eight of them",
    note = "a function that is not async may block: write `blocking(f)`, and it gets a thread where it can",
    note = "the future must be `Send`: do not hold an `Rc` or a `std::sync::MutexGuard` across an `.await`"
)]
pub trait Handler<In>: Clone + Send + Sync + 'static {
    /// What the function returns.
    type Output: Send;

    /// Runs the extractors, then the function.
    fn call(self, cx: Context) -> impl Future<Output = Result<Self::Output, Rejection>> + Send;

    /// Collects what the extractors need.
    fn describe(&self, spec: &mut HandlerSpec);
}

impl<F, Fut, Out> Handler<()> for F
where
    F: Fn() -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Out> + Send,
    Out: Send,
{
    type Output = Out;

    async fn call(self, cx: Context) -> Result<Out, Rejection> {
        cx.threshold().await;
        drop(cx);
        Ok(self().await)
    }

    fn describe(&self, spec: &mut HandlerSpec) {
        spec.threshold = true;
    }
}

/// Runs the extractors side by side, so that several questions to the user are asked at once.
macro_rules! extract {
    ($cx:ident, $extractor:ident) => {
        ($extractor::from_context(&$cx).await?,)
    };
    ($cx:ident, $($extractor:ident),*) => {
        tokio::try_join!($($extractor::from_context(&$cx)),*)?
    };
}

/// What every handler of several arguments does: it runs the extractors, then `$run`.
macro_rules! handler_items {
    ($this:ident, ($($extractor:ident),*), $run:expr) => {
        type Output = Out;

        async fn call($this, cx: Context) -> Result<Out, Rejection> {
            let ($($extractor,)*) = extract!(cx, $($extractor),*);
            cx.threshold().await;
            // The function must not keep the request alive by itself.
            drop(cx);
            $run
        }

        fn describe(&self, spec: &mut HandlerSpec) {
            spec.threshold = true;
            $( spec.extracts::<$extractor>(); $extractor::describe(spec); )*
        }
    };
}

macro_rules! impl_handler {
    ($($extractor:ident),*) => {
        #[expect(non_snake_case, reason = "one name serves as the type and as its value")]
        impl<F, Fut, Out, $($extractor,)*> Handler<($($extractor,)*)> for F
        where
            F: Fn($($extractor),*) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = Out> + Send,
            Out: Send,
            $($extractor: FromContext,)*
        {
            handler_items!(self, ($($extractor),*), Ok(self($($extractor),*).await));
        }
    };
}

/// Calls `$implement` with one, two and up to eight names, which is how many arguments a handler may take.
macro_rules! for_each_arity {
    ($implement:ident) => {
        $implement!(A1);
        $implement!(A1, A2);
        $implement!(A1, A2, A3);
        $implement!(A1, A2, A3, A4);
        $implement!(A1, A2, A3, A4, A5);
        $implement!(A1, A2, A3, A4, A5, A6);
        $implement!(A1, A2, A3, A4, A5, A6, A7);
        $implement!(A1, A2, A3, A4, A5, A6, A7, A8);
    };
}

for_each_arity!(impl_handler);

pub(crate) use {extract, for_each_arity, handler_items};

/// The answer of a handler, on its way out.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<Reply, RpcError>> + Send>>;

/// A handler whose types have been forgotten. Everything behind this is not generic.
pub(crate) trait Endpoint: Send + Sync {
    fn call(&self, cx: Context) -> Answer;
}

impl<F: Fn(Context) -> Answer + Send + Sync> Endpoint for F {
    fn call(&self, cx: Context) -> Answer {
        self(cx)
    }
}

/// A shared endpoint.
pub(crate) type SharedEndpoint = Arc<dyn Endpoint>;

/// `None` for what is absent, and for nothing else: what is there and not right still rejects the request.
impl<E: FromContext> FromContext for Option<E> {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        match E::from_context(cx).await {
            Ok(value) => Ok(Some(value)),
            Err(Rejection::Absent(_)) => Ok(None),
            Err(rejection) => Err(rejection),
        }
    }

    fn describe(spec: &mut HandlerSpec) {
        E::describe_optional(spec);
    }
}

impl<T: FromContext> FromContext for Result<T, Rejection> {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        Ok(T::from_context(cx).await)
    }

    fn describe(spec: &mut HandlerSpec) {
        T::describe(spec);
    }
}
