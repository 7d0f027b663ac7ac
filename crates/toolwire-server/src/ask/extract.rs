//! Asking before the handler runs.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::AskError;
use crate::{
    Context,
    extract::args,
    handler::{FromContext, HandlerSpec, Rejection},
    schema::ToolSchema,
};

/// A type that is asked of the user before the handler runs.
pub trait Question: DeserializeOwned + JsonSchema + Send + 'static {
    /// The arguments of the tool or prompt that asks.
    type Args: DeserializeOwned + JsonSchema + Send + 'static;

    /// What to tell the user.
    fn message(args: &Self::Args) -> String;
}

/// The user's answer, asked for before the handler runs. An extractor.
///
/// Since nothing of the handler has run yet, there is nothing that could run twice. Several of them are asked
/// at once. A user who does not agree ends the call with an error that the model can read.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolwire_server::{Args, Ask, Question, tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Trip { to: String }
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Traveller { name: String }
///
/// impl Question for Traveller {
///     type Args = Trip;
///
///     fn message(trip: &Trip) -> String {
///         format!("Who travels to {}?", trip.to)
///     }
/// }
///
/// async fn book(Args(trip): Args<Trip>, Ask(who): Ask<Traveller>) -> String {
///     format!("{} goes to {}", who.name, trip.to)
/// }
///
/// let route = tool("book", book);
/// ```
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "taken apart in argument position")]
pub struct Ask<T>(pub T);

impl<T: Question> FromContext for Ask<T> {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        // Other parameters of the handler may take other arguments.
        let args: T::Args = args::decode(cx)?;
        let key = std::any::type_name::<T>().rsplit("::").next().unwrap_or("ask");
        let asked = cx.elicit::<T>(T::message(&args)).key(key).accepted().await;
        asked.map(Self).map_err(|error: AskError| Rejection::Ask(error))
    }

    fn describe(spec: &mut HandlerSpec) {
        spec.asked = Some(ToolSchema::arguments_of::<T::Args>());
    }
}
