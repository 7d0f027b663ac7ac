//! Tools.

mod range;

use std::{fmt, sync::Arc};

use serde_json::Value;
use toolwire_protocol::{
    RpcError, for_each_member,
    schema::Violations,
    wire::{JsonObject, TaskSupport, Tool, ToolAnnotations, ToolExecution},
};

use super::{Entry, Needs, described};
use crate::{
    Reply,
    handler::{Answer, Handler, HandlerSpec, Rejection, SharedEndpoint},
    output::{IntoToolOutput, ToolError},
    parameter::unknown,
    schema::{ToolSchema, mend_members},
    tasks::{TaskOffer, TaskPolicy},
};

/// A tool: its description and its handler. Made by [`tool()`] or the attribute `#[tool]`.
#[derive(Clone)]
pub struct ToolRoute {
    /// Without its schemas: tools of the same types share them.
    pub(crate) tool: Tool,
    pub(crate) input: Arc<ToolSchema>,
    pub(crate) output: Option<Arc<ToolSchema>>,
    pub(crate) endpoint: SharedEndpoint,
    pub(crate) needs: Needs,
    /// Whether it ignores arguments it does not know, and reads numbers and booleans from strings.
    pub(crate) lenient: bool,
    /// When its calls become tasks.
    pub(crate) task: Option<Box<TaskOffer>>,
    /// Whether its handler waits between its extractors and its body.
    pub(crate) threshold: bool,
    /// How many layers it has.
    layers: usize,
}

/// How long the name of a tool may be, by the specification.
const MAX_NAME: usize = 128;

/// Makes a tool of a handler.
///
/// The input schema comes from its `Args<T>`, the output schema from a returned `Json<T>`. A type is asked for its
/// schema once; [`input_schema`](ToolRoute::input_schema) is for one that depends on the moment.
///
/// ```
/// use toolwire_server::{Server, tool};
///
/// let now = tool("now", || async { "twelve o'clock" }).description("Tells the time.").read_only();
/// let server = Server::builder("clock", "1.0").tool(now).build().unwrap();
/// ```
pub fn tool<H, In>(name: impl Into<String>, handler: H) -> ToolRoute
where
    H: Handler<In>,
    H::Output: IntoToolOutput,
{
    let mut spec = HandlerSpec::of(&handler);
    H::Output::describe(&mut spec);
    let endpoint = move |cx: crate::Context| -> Answer {
        let handler = handler.clone();
        Box::pin(async move {
            let rejection = match handler.call(cx.clone()).await {
                Ok(output) => {
                    return match output.into_tool_output()? {
                        Reply::Failed(failure) => {
                            let name = format!("tool {:?}", cx.target().unwrap_or_default());
                            failure.told(cx.server().telling(), &name).into_tool_output()
                        }
                        reply => Ok(reply),
                    };
                }
                Err(rejection) => rejection.reason(),
            };
            match rejection {
                Rejection::Fault(error) => Err(error),
                Rejection::Ask(error) => ToolError::from(error).into_tool_output(),
                Rejection::InvalidArguments(_) | Rejection::Absent(_) => {
                    let reason = rejection.to_string();
                    let text = match cx.0.tool.get() {
                        Some(route) => route.explain(&cx.arguments(), &reason),
                        None => reason,
                    };
                    ToolError::message(text).into_tool_output()
                }
            }
        })
    };
    ToolRoute::new(name.into(), Arc::new(endpoint), spec)
}

impl ToolRoute {
    fn new(name: String, endpoint: SharedEndpoint, spec: HandlerSpec) -> Self {
        let mut needs = Needs::of(&spec);
        let input = spec.input.unwrap_or_else(ToolSchema::input_of::<()>);
        for shape in [Some(&input), spec.output.as_ref()].into_iter().flatten() {
            needs.problems.extend_from_slice(&shape.problems);
        }
        let tool = Tool::new(name, JsonObject::new());
        Self {
            tool,
            input,
            output: spec.output,
            endpoint,
            needs,
            lenient: false,
            task: None,
            threshold: spec.threshold,
            layers: 0,
        }
    }

    /// The tool as it is listed.
    pub(crate) fn listed(&self) -> Tool {
        let mut tool = self.tool.clone();
        tool.input_schema.clone_from(&self.input.schema);
        tool.output_schema = self.output.as_ref().map(|output| output.schema.clone());
        tool
    }

    described!(ToolRoute.tool);

    /// What layers go around: the handler, and those of older revisions.
    fn endpoints(&mut self) -> impl Iterator<Item = &mut SharedEndpoint> {
        self.layers += 1;
        let older = self.task.iter_mut().flat_map(|task| task.policy.endpoints());
        std::iter::once(&mut self.endpoint).chain(older)
    }

    /// Lets calls become tasks: the caller gets an id at once, and the work goes on without its request, also on another
    /// replica if the server has a [store](crate::ServerBuilder::store).
    ///
    /// ```
    /// use std::time::Duration;
    /// use toolwire_server::{Context, Server, TaskPolicy, tool};
    ///
    /// async fn report(cx: Context) -> Result<String, toolwire_server::BoxError> {
    ///     let rows = cx.once("count", async { 12 }).await?;
    ///     cx.sleep("cool down", Duration::from_millis(1)).await?;
    ///     Ok(format!("{rows} rows"))
    /// }
    ///
    /// let server = Server::builder("reports", "1.0")
    ///     .tool(tool("report", report).task(TaskPolicy::optional()))
    ///     .build()
    ///     .unwrap();
    /// ```
    #[must_use]
    pub fn task(mut self, policy: TaskPolicy) -> Self {
        if self.layers > 0 && policy.has_older() {
            let problem = "`.task(…)` with `.older(…)` has to come before `.layer(…)`: the layers are for older revisions, too";
            self.needs.problems.push(problem.to_owned());
        }
        policy.check(&mut self.needs);
        self.tool.execution = Some(ToolExecution::new().task_support(policy.support()));
        self.task = Some(Box::new(TaskOffer { policy, engine: crate::tasks::engine }));
        self
    }

    /// The tool only reads.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.annotate(|annotations| annotations.read_only_hint = Some(true))
    }

    /// The tool may destroy something.
    #[must_use]
    pub fn destructive(self) -> Self {
        self.annotate(|annotations| annotations.destructive_hint = Some(true))
    }

    /// Calling the tool twice does no more than calling it once.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.annotate(|annotations| annotations.idempotent_hint = Some(true))
    }

    /// Whether the tool deals with the world outside, such as the web.
    #[must_use]
    pub fn open_world(self, open: bool) -> Self {
        self.annotate(|annotations| annotations.open_world_hint = Some(open))
    }

    /// Replaces all hints.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.tool.annotations = Some(annotations);
        self
    }

    /// Ignores arguments that the tool does not know, and reads numbers and booleans from strings, for hosts and models
    /// that do not keep to the schema. By default a misspelt argument is answered with the one that was probably meant.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self.input = Arc::new(self.input.open());
        self
    }

    /// Replaces the input schema by a hand-written one. Arguments are then checked against it before the
    /// handler runs, which can take them as `Args<serde_json::Value>`.
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        let input = ToolSchema::input(schema, true);
        self.needs.problems.extend_from_slice(&input.problems);
        self.input = Arc::new(input);
        self
    }

    /// Replaces the output schema by a hand-written one. The structured content of every result is checked
    /// against it.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        let output = ToolSchema::output(schema, true);
        self.needs.problems.extend_from_slice(&output.problems);
        self.output = Some(Arc::new(output));
        self
    }

    /// When its calls become tasks, if they do.
    pub(crate) fn policy(&self) -> Option<&TaskPolicy> {
        self.task.as_ref().map(|task| &task.policy)
    }

    /// Whether a call that cannot become a task may be answered by its result.
    pub(crate) fn may_run_inline(&self) -> bool {
        self.policy().is_none_or(|policy| policy.support() != TaskSupport::Required)
    }

    /// The answer to a call whose arguments do not fit, where decoding would not notice.
    pub(crate) fn refused(&self, cx: &crate::Context) -> Option<Result<Reply, RpcError>> {
        let refused = self.check_arguments(cx.0.peek.arguments.as_deref().unwrap_or(b"{}")).err()?;
        Some(ToolError::message(refused).into_tool_output())
    }

    fn annotate(mut self, change: impl FnOnce(&mut ToolAnnotations)) -> Self {
        change(self.tool.annotations.get_or_insert_with(ToolAnnotations::new));
        self
    }

    /// Checks the arguments where decoding would not notice. Gives the text for the model.
    pub(crate) fn check_arguments(&self, raw: &[u8]) -> Result<(), String> {
        if !self.input.strict {
            return Ok(());
        }
        let schema = self.input.check().map_err(|error| self.unfit(&error))?;
        let mut value = serde_json::from_slice(raw).map_err(|error| self.unfit(&error))?;
        self.mend_value(&mut value);
        schema.validate(&value).map_err(|violations| self.unfit_by(raw, &violations))
    }

    /// Says which of the arguments has a name that the tool does not know.
    pub(crate) fn unknown_argument(&self, raw: &[u8]) -> Option<String> {
        let names = self.input.names.as_deref()?;
        let mut problem = None;
        for_each_member(std::str::from_utf8(raw).ok()?, |name, _| {
            if problem.is_none() && !names.iter().any(|known| **known == *name) {
                problem = Some(unknown(&name, names.iter().map(|name| &**name)));
            }
        });
        problem
    }

    /// The arguments without what stands for nothing, and as the schema has them, if that makes a difference.
    pub(crate) fn mend(&self, raw: &str) -> Option<Value> {
        if !self.lenient && !raw.contains("null") {
            return None;
        }
        let mut value = serde_json::from_str(raw).ok()?;
        self.mend_value(&mut value).then_some(value)
    }

    fn mend_value(&self, value: &mut Value) -> bool {
        match value {
            Value::Object(members) => mend_members(members, &self.input.schema, self.lenient),
            _ => false,
        }
    }

    /// Says in the words of the schema what decoding has complained about.
    fn explain(&self, raw: &[u8], reason: &str) -> String {
        let value = serde_json::from_slice(raw).ok().map(|mut value| {
            self.mend_value(&mut value);
            value
        });
        let schema = self.input.check().ok().zip(value.as_ref());
        match schema.and_then(|(schema, value)| schema.validate(value).err()) {
            Some(violations) => self.unfit_by(raw, &violations),
            None => match value
                .and_then(|value| range::out_of_range(&Value::Object(self.input.schema.clone()), &value))
            {
                Some(misfit) => self.unfit(&misfit),
                None => self.unfit(&reason),
            },
        }
    }

    /// A name that is misspelt may be the reason why the right one is missing, so both are said.
    fn unfit_by(&self, raw: &[u8], violations: &Violations) -> String {
        match self.unknown_argument(raw) {
            Some(unknown) => self.unfit(&format_args!("{unknown}; {violations}")),
            None => self.unfit(violations),
        }
    }

    fn unfit(&self, why: &dyn fmt::Display) -> String {
        format!("invalid arguments for tool {:?}: {why}", self.tool.name)
    }
}

impl Entry for ToolRoute {
    fn key(&self) -> &str {
        &self.tool.name
    }

    fn needs(&self) -> &Needs {
        &self.needs
    }

    fn has_tasks(&self) -> bool {
        self.task.is_some()
    }

    fn problem(&self) -> Option<String> {
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
        if let Some(letter) = self.tool.name.chars().find(|letter| !allowed(*letter)) {
            return Some(format!(
                "its name has {letter:?} in it; names of tools consist of ASCII letters, digits, `_`, `-`, `.` and `/`"
            ));
        }
        let length = self.tool.name.len();
        (length > MAX_NAME)
            .then(|| format!("its name has {length} letters; {MAX_NAME} are the most that clients take"))
    }
}

impl fmt::Debug for ToolRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolRoute").field(&self.tool.name).finish()
    }
}

#[cfg(test)]
mod tests;
