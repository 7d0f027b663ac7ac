//! Completion of prompt arguments and template variables.

use std::{collections::BTreeMap, future::Future, pin::Pin, sync::Arc};

use toolwire_protocol::{
    RpcError,
    wire::{CompleteRequestParams, CompleteResult, Completion},
};

use crate::{Context, layer::BoxError, output::Failure};

/// What is to be completed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Complete {
    /// What has been typed so far.
    pub value: String,
    /// The other arguments that have been filled in already.
    pub arguments: BTreeMap<String, String>,
    /// The request.
    pub context: Context,
}

/// Something that can complete: a list of values, or an async function from a [`Complete`] to them.
///
/// The values of a list are offered when they start with what was typed, in any case.
pub trait IntoCompletion<In> {
    #[doc(hidden)]
    fn into_completer(self) -> Completer;
}

type Values = Pin<Box<dyn Future<Output = Result<Vec<String>, RpcError>> + Send>>;

/// A completion whose type has been forgotten.
#[derive(Clone)]
pub struct Completer(Arc<dyn Fn(Complete) -> Values + Send + Sync>);

impl std::fmt::Debug for Completer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Completer")
    }
}

/// The completions of one prompt or template, by argument.
#[derive(Clone, Debug, Default)]
pub(crate) struct Completers(BTreeMap<String, Completer>);

impl Completers {
    pub(super) fn insert(&mut self, argument: String, completer: Completer) {
        self.0.insert(argument, completer);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[doc(hidden)]
#[derive(Debug)]
pub struct FromList(());

impl<I, S> IntoCompletion<FromList> for I
where
    I: IntoIterator<Item = S>,
    S: Into<String>,
{
    fn into_completer(self) -> Completer {
        let values: Arc<[String]> = self.into_iter().map(Into::into).collect();
        Completer(Arc::new(move |complete| {
            let typed = complete.value.to_lowercase();
            let fitting = values.iter().filter(|value| value.to_lowercase().starts_with(&typed));
            let fitting: Vec<String> = fitting.cloned().collect();
            Box::pin(std::future::ready(Ok(fitting)))
        }))
    }
}

#[doc(hidden)]
#[derive(Debug)]
pub struct FromFunction<V>(std::marker::PhantomData<V>);

/// What the function of a completion may return.
pub trait IntoValues {
    #[doc(hidden)]
    fn into_values(self) -> Result<Vec<String>, Failure>;
}

impl<S: Into<String>> IntoValues for Vec<S> {
    fn into_values(self) -> Result<Vec<String>, Failure> {
        Ok(self.into_iter().map(Into::into).collect())
    }
}

impl<V: IntoValues, E: Into<BoxError>> IntoValues for Result<V, E> {
    fn into_values(self) -> Result<Vec<String>, Failure> {
        match self {
            Ok(values) => values.into_values(),
            Err(error) => Err(Failure::new(error.into())),
        }
    }
}

impl<F, Fut, V> IntoCompletion<FromFunction<V>> for F
where
    F: Fn(Complete) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = V> + Send + 'static,
    V: IntoValues,
{
    fn into_completer(self) -> Completer {
        Completer(Arc::new(move |complete| {
            let telling = complete.context.server().telling();
            let values = self(complete);
            Box::pin(async move {
                values.await.into_values().map_err(|failure| failure.rpc_error(telling, &"the completion"))
            })
        }))
    }
}

/// Runs the completion for an argument; without one there is nothing to offer.
pub(crate) async fn run(
    completers: &Completers,
    params: CompleteRequestParams,
    context: Context,
) -> Result<CompleteResult, RpcError> {
    let mut values = match completers.0.get(&params.argument.name) {
        Some(completer) => {
            let arguments = params.context.and_then(|context| context.arguments).unwrap_or_default();
            (completer.0)(Complete { value: params.argument.value, arguments, context }).await?
        }
        None => Vec::new(),
    };
    let total = values.len();
    values.truncate(Completion::MAX_VALUES);
    let mut completion = Completion::new(values).total(u64::try_from(total).unwrap_or(u64::MAX));
    completion.has_more = Some(total > Completion::MAX_VALUES);
    Ok(CompleteResult::new(completion))
}
