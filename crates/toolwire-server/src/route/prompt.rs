//! Prompts.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use serde_json::{Value, value::RawValue};
use toolwire_protocol::{
    RpcError,
    wire::{Prompt, PromptArgument},
};

use super::{Completers, Entry, IntoCompletion, Needs, described};
use crate::{
    Reply,
    handler::{Answer, Handler, HandlerSpec, Rejection, SharedEndpoint},
    output::IntoPrompt,
    schema::ToolSchema,
};

/// A prompt: its description and its handler. Made by [`prompt()`] or the attribute `#[prompt]`.
#[derive(Clone)]
pub struct PromptRoute {
    pub(crate) prompt: Prompt,
    pub(crate) endpoint: SharedEndpoint,
    pub(crate) needs: Needs,
    pub(crate) completers: Completers,
}

/// Makes a prompt of a handler. Its arguments come from its `Args<T>`.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolwire_server::{Args, prompt};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Review { language: String }
///
/// let route = prompt("review", |Args(review): Args<Review>| async move {
///     format!("Please review this {} code.", review.language)
/// })
/// .complete("language", ["rust", "python"]);
/// ```
pub fn prompt<H, In>(name: impl Into<String>, handler: H) -> PromptRoute
where
    H: Handler<In>,
    H::Output: IntoPrompt,
{
    let spec = HandlerSpec::of(&handler);
    let mut described = Prompt::new(name.into());
    described.arguments =
        spec.input.as_ref().map(|input| arguments(input)).filter(|arguments| !arguments.is_empty());
    let endpoint = move |cx: crate::Context| -> Answer {
        let handler = handler.clone();
        Box::pin(async move {
            let name = cx.target().unwrap_or_default().to_owned();
            let telling = cx.server().telling();
            let rejection = match handler.call(cx).await {
                Ok(output) => {
                    return match output.into_prompt()? {
                        Reply::Failed(failure) => {
                            Err(failure.rpc_error(telling, &format_args!("prompt {name:?}")))
                        }
                        reply => Ok(reply),
                    };
                }
                Err(rejection) => rejection.reason(),
            };
            Err(match rejection {
                Rejection::Ask(error) => error.rpc_error(),
                Rejection::Fault(error) => error,
                Rejection::InvalidArguments(_) | Rejection::Absent(_) => {
                    RpcError::invalid_params(format!("invalid arguments for prompt {name:?}: {rejection}"))
                }
            })
        })
    };
    PromptRoute {
        prompt: described,
        endpoint: Arc::new(endpoint),
        needs: Needs::of(&spec),
        completers: Completers::default(),
    }
}

/// The arguments of a prompt are the properties of the type it takes, in its order: some hosts let people fill them in by
/// position.
fn arguments(input: &ToolSchema) -> Vec<PromptArgument> {
    let names = input.schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: Vec<&str> = names.filter_map(Value::as_str).collect();
    let properties = input.schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut arguments: Vec<_> = properties
        .map(|(name, property)| {
            let mut argument = PromptArgument::new(name.clone()).required(required.contains(&name.as_str()));
            argument.title = property["title"].as_str().map(Into::into);
            argument.description = property["description"].as_str().map(Into::into);
            argument
        })
        .collect();
    arguments.sort_by_key(|argument| input.order.place(&required, &argument.name));
    arguments
}

impl PromptRoute {
    described!(PromptRoute.prompt);

    /// What layers go around.
    fn endpoints(&mut self) -> impl Iterator<Item = &mut SharedEndpoint> {
        std::iter::once(&mut self.endpoint)
    }

    /// Offers completions for an argument: a list of values, or an async function that takes a
    /// [`Complete`](crate::Complete).
    #[must_use]
    pub fn complete<C, In>(mut self, argument: impl Into<String>, completion: C) -> Self
    where
        C: IntoCompletion<In>,
    {
        let argument = argument.into();
        let known = self.prompt.arguments.iter().flatten().any(|known| known.name == argument);
        if !known {
            self.needs.problems.push(format!("it has no argument {argument:?} to complete"));
        }
        self.completers.insert(argument, completion.into_completer());
        self
    }
}

/// Refuses arguments of a prompt that are not strings. Ones that are `null` count as not given.
pub(crate) fn check_arguments(prompt: &str, arguments: &[u8]) -> Result<(), RpcError> {
    let refuse =
        |why: String| RpcError::invalid_params(format!("invalid arguments for prompt {prompt:?}: {why}"));
    let given: BTreeMap<Cow<'_, str>, &RawValue> =
        serde_json::from_slice(arguments).map_err(|error| refuse(error.to_string()))?;
    let is_taken = |value: &RawValue| value.get().starts_with('"') || value.get() == "null";
    match given.iter().find(|(_, value)| !is_taken(value)) {
        None => Ok(()),
        Some((name, _)) => {
            Err(refuse(format!("argument `{name}`: expected a string, as all arguments of prompts are")))
        }
    }
}

impl Entry for PromptRoute {
    fn key(&self) -> &str {
        &self.prompt.name
    }

    fn needs(&self) -> &Needs {
        &self.needs
    }

    fn completes(&self) -> bool {
        !self.completers.is_empty()
    }
}

impl fmt::Debug for PromptRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PromptRoute").field(&self.prompt.name).finish()
    }
}
