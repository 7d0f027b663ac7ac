//! Tools.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use serde_json::Value;
use toolwire_protocol::{
    headers::HeaderPlan,
    schema::Schema,
    wire::{JsonObject, Tool, ToolAnnotations},
};

use super::{Entry, Needs, described};
use crate::{
    handler::{Answer, Handler, HandlerSpec, Rejection, SharedEndpoint},
    output::{IntoToolOutput, ToolError},
    schema,
};

/// A tool: its description and its handler. Made by [`tool()`] or the attribute `#[tool]`.
#[derive(Clone)]
pub struct ToolRoute {
    pub(crate) tool: Tool,
    pub(crate) endpoint: SharedEndpoint,
    pub(crate) needs: Needs,
    /// Whether arguments are checked against the schema before they are decoded.
    check_first: bool,
    input: Compiled,
    output: Compiled,
    pub(crate) header_plan: Arc<HeaderPlan>,
}

/// A schema ready to check values, or what is wrong with it.
///
/// One that only repeats a type is compiled when it is first needed, which is mostly never: that was 40 % of the
/// start of a server. All others are compiled at registration, so that a wrong one keeps the server from being built.
type Compiled = OnceLock<Result<Arc<Schema>, String>>;

/// Makes a tool of a handler.
///
/// The input schema comes from its `Args<T>`, the output schema from a returned `Json<T>`.
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
    let mut spec = HandlerSpec::default();
    H::describe(&mut spec);
    H::Output::describe(&mut spec);
    let endpoint = move |cx: crate::Context| -> Answer {
        let handler = handler.clone();
        Box::pin(async move {
            match handler.call(cx.clone()).await {
                Ok(output) => output.into_tool_output(),
                Err(Rejection::Fault(error)) => Err(error),
                Err(Rejection::Ask(error)) => ToolError::from(error).into_tool_output(),
                Err(Rejection::InvalidArguments(reason)) => {
                    let text = match cx.0.tool.get() {
                        Some(route) => route.explain(&cx.arguments(), &reason),
                        None => reason,
                    };
                    ToolError::said(text).into_tool_output()
                }
            }
        })
    };
    ToolRoute::new(name.into(), Arc::new(endpoint), spec)
}

impl ToolRoute {
    fn new(name: String, endpoint: SharedEndpoint, spec: HandlerSpec) -> Self {
        let mut needs = Needs::of(&spec);
        let input = spec.input_schema.map(schema::as_input_schema).transpose().unwrap_or_else(|problem| {
            needs.problems.push(problem);
            None
        });
        let mut described = Tool::new(name, input.unwrap_or_else(schema::empty_object));
        described.output_schema = spec.output_schema.map(as_object);
        let mut route = Self {
            tool: described,
            endpoint,
            needs,
            check_first: spec.input_checks,
            input: Compiled::new(),
            output: Compiled::new(),
            header_plan: Arc::default(),
        };
        if spec.input_checks {
            route.compile_input();
        }
        if spec.output_checks {
            route.compile_output();
        }
        route.plan_headers();
        route
    }

    described!(ToolRoute.tool);

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

    /// Replaces the input schema by a hand-written one. Arguments are then checked against it before the
    /// handler runs, which can take them as `Args<serde_json::Value>`.
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        match schema::as_input_schema(schema) {
            Ok(schema) => self.tool.input_schema = schema,
            Err(problem) => self.needs.problems.push(problem),
        }
        self.check_first = true;
        self.input = Compiled::new();
        self.compile_input();
        self.plan_headers();
        self
    }

    /// Replaces the output schema by a hand-written one. The structured content of every result is checked
    /// against it.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.tool.output_schema = Some(as_object(schema));
        self.output = Compiled::new();
        self.compile_output();
        self
    }

    fn annotate(mut self, change: impl FnOnce(&mut ToolAnnotations)) -> Self {
        change(self.tool.annotations.get_or_insert_with(ToolAnnotations::new));
        self
    }

    fn compile_input(&mut self) {
        self.needs.problems.extend(self.input_check().err().map(str::to_owned));
    }

    fn compile_output(&mut self) {
        self.needs.problems.extend(self.output_check().and_then(Result::err).map(str::to_owned));
    }

    fn plan_headers(&mut self) {
        match HeaderPlan::compile(&self.tool.input_schema) {
            Ok(plan) => self.header_plan = Arc::new(plan),
            Err(error) => self.needs.problems.push(error.to_string()),
        }
    }

    /// Checks the arguments where decoding would not notice. Gives the text for the model.
    pub(crate) fn check_arguments(&self, raw: &[u8]) -> Result<(), String> {
        if !self.check_first {
            return Ok(());
        }
        let schema = self.input_check().map_err(|error| self.unfit(&error))?;
        let value = serde_json::from_slice(raw).map_err(|error| self.unfit(&error))?;
        schema.validate(&value).map_err(|violations| self.unfit(&violations))
    }

    /// Says in the words of the schema what decoding has complained about.
    fn explain(&self, raw: &[u8], reason: &str) -> String {
        let value = serde_json::from_slice(raw).ok();
        let violations =
            self.input_check().ok().zip(value).and_then(|(schema, value)| schema.validate(&value).err());
        match violations {
            Some(violations) => self.unfit(&violations),
            None => self.unfit(&reason),
        }
    }

    fn unfit(&self, why: &dyn fmt::Display) -> String {
        format!("invalid arguments for tool {:?}: {why}", self.tool.name)
    }

    /// What checks the arguments, or what is wrong with the input schema.
    fn input_check(&self) -> Result<&Schema, &str> {
        compiled(&self.input, &self.tool.input_schema, "input")
    }

    /// What checks the structured content, or what is wrong with the output schema, if there is one.
    pub(crate) fn output_check(&self) -> Option<Result<&Schema, &str>> {
        self.tool.output_schema.as_ref().map(|schema| compiled(&self.output, schema, "output"))
    }
}

fn compiled<'a>(cell: &'a Compiled, schema: &JsonObject, what: &str) -> Result<&'a Schema, &'a str> {
    let compile = || match Schema::compile(&Value::Object(schema.clone())) {
        Ok(schema) => Ok(Arc::new(schema)),
        Err(error) => Err(format!("its {what} schema is not valid: {error}")),
    };
    cell.get_or_init(compile).as_deref().map_err(String::as_str)
}

fn as_object(schema: Value) -> JsonObject {
    match schema {
        Value::Object(object) => object,
        // `true` accepts anything and `false` nothing.
        Value::Bool(false) => [("not".to_owned(), Value::Object(JsonObject::new()))].into_iter().collect(),
        _ => JsonObject::new(),
    }
}

impl Entry for ToolRoute {
    fn key(&self) -> &str {
        &self.tool.name
    }

    fn needs(&self) -> &Needs {
        &self.needs
    }
}

impl fmt::Debug for ToolRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolRoute").field(&self.tool.name).finish()
    }
}

#[cfg(test)]
mod tests;
