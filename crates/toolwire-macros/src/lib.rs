//! The attributes `#[tool]`, `#[prompt]`, `#[resource]`, `#[tools]` and `#[args]`.
//!
//! They are sugar and nothing else: each one writes the call of `tool(name, handler)`, `prompt(…)`, `resource(…)` or
//! `template(…)` that one could have written by hand, and a client cannot tell the difference. Use them through the
//! `toolwire` crate, which the expansion refers to.
//!
//! An annotated function `add` stays as it was written. Beside it there is a type `add` that carries the route, for
//! `routes![add]`, or as `add::route()` where something is to be added that the options do not offer:
//! `.tool(add::route().icon(…))`. So the name is taken among the types of the module, and free everywhere else:
//! - a module and a tool of one name cannot both be in one scope; a path such as `geo::user` works, and
//! - a tool called like a crate, for instance `url`, hides that crate there; `::url::Url` still finds it.
//!
//! Functions in an `impl` are annotated the same way, under [`#[tools]`](macro@tools) on the `impl`.

// The examples are files because `toolwire-macros-tests` compiles them, which says why.

mod args;
mod docs;
mod emit;
mod function;
mod kind;
mod options;
mod param;
mod route;
mod service;
#[cfg(test)]
mod tests;
mod uri;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use syn::ItemFn;

use crate::{kind::Kind, options::Options, param::Param};

/// Makes a tool of a function: its arguments are the schema, its doc comment is the description.
///
#[cfg_attr(not(doctest), doc = include_str!("../docs/tool.md"))]
///
/// A function that is not `async` may block: it is run on a thread where that holds up nobody.
///
/// # Options
/// - `name = "…"`: the tool's name; the function's name if not given.
/// - `title = "…"`: a name for people.
/// - `description = "…"`, or a macro such as `include_str!("…")`: used instead of the doc comment.
/// - `read_only`, `destructive`, `idempotent`, `open_world = true` or `false`: hints for the client.
/// - `lenient`: unknown arguments are ignored, and numbers and booleans are read from strings.
/// - `scopes("…", "…")`: what callers must be allowed to do. Others are refused before the function is called.
/// - `task`, `task_required` or `task_after = 2`: whether calls become tasks, at once or after so many seconds. More about
///   them is set on the route: `.tool(report::route().task(TaskPolicy::optional().live()))`.
/// - `crate = "…"`: the path of the `toolwire` crate, if it is not `::toolwire`.
///
/// # Parameters
/// The type of a parameter decides where its value comes from. What has `FromContext` is an extractor: `Context`,
/// `State<S>`, `Progress`, `Log`, `Args<T>`, your own, and an `Option` or `Result` of one. What has `Deserialize` and
/// `JsonSchema` is an argument that the caller gives by name; `Option<T>` need not be given. A type that has both does
/// not compile until `#[extract]` or `#[arg]` says which is meant, so that what the server finds out for itself never
/// becomes something the caller may send.
///
/// An argument that the tool does not know is answered with the name that was probably meant, unless the tool is
/// `lenient`. `null` stands for an argument that is not given.
///
/// The doc comment of an argument is its description in the schema. `#[arg(…)]` takes
/// - `rename = "…"`: the name on the wire,
/// - `default` or `default = expression`: the value when the caller gives none,
/// - `description = "…"`: used instead of the doc comment.
///
/// `#[serde(…)]` and `#[schemars(…)]` on an argument mean what they mean on the field of a struct.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand(Kind::Tool, options.into(), item.into()).into()
}

/// Makes a prompt of a function: its arguments are the prompt's, its doc comment is the description.
///
#[cfg_attr(not(doctest), doc = include_str!("../docs/prompt.md"))]
///
/// The arguments of a prompt are strings on the wire and are parsed into the types of the parameters.
/// Parameters are the same as for [`macro@tool`]; the options are `name`, `title`, `description`,
/// `scopes` and `crate`.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    expand(Kind::Prompt, options.into(), item.into()).into()
}

/// Makes a resource, or a template of resources, of a function.
///
#[cfg_attr(not(doctest), doc = include_str!("../docs/resource.md"))]
///
/// A URI with `{variables}` makes a template; its arguments are exactly the variables, which is checked when
/// compiling. A URI without makes a resource, which has no arguments. Extractors work as for [`macro@tool`]; the options
/// after the URI are `name`, `title`, `description`, `mime_type`, `scopes` and `crate`.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    expand(Kind::Resource, options.into(), item.into()).into()
}

/// Makes one set of routes of the functions of an `impl`, which share the value they belong to.
///
#[cfg_attr(not(doctest), doc = include_str!("../docs/tools.md"))]
///
/// The `impl` stays as it is, without our attributes, and the type gets the trait `Routes`. `.routes(…)` takes a value of
/// it, or an `Arc` that others hold as well. Functions take `&self` or no receiver at all. They can use the type
/// parameters of the `impl` anywhere but in the types of their arguments.
///
/// # Options
/// - `fn = name`: instead of the trait, the type gets a function `name(self: &Arc<Self>) -> Group`. With it a type can
///   have more than one such `impl`.
/// - `crate = "…"`: the path of the `toolwire` crate, if it is not `::toolwire`.
#[proc_macro_attribute]
pub fn tools(options: TokenStream, item: TokenStream) -> TokenStream {
    service::expand(options.into(), item.into()).into()
}

/// Makes a struct or an enum fit for arguments: derives `Deserialize`, `Serialize` and `JsonSchema`.
///
/// The derives come through `toolwire`, so that neither serde nor schemars has to be among the dependencies.
///
#[cfg_attr(not(doctest), doc = include_str!("../docs/args.md"))]
///
/// The only option is `crate = "…"`, the path of the `toolwire` crate, if it is not `::toolwire`.
#[proc_macro_attribute]
pub fn args(options: TokenStream, item: TokenStream) -> TokenStream {
    args::expand(options.into(), item.into()).into()
}

/// Everything that is known of an annotated function, checked.
struct Annotated {
    kind: Kind,
    options: Options,
    function: ItemFn,
    params: Vec<Param>,
}

impl Annotated {
    /// A free function.
    fn new(kind: Kind, options: Options, function: ItemFn) -> syn::Result<Self> {
        function::check_free(kind, &function)?;
        Self::checked(kind, options, function)
    }

    /// A function in an `impl` with `#[tools]`.
    fn method(kind: Kind, options: Options, function: ItemFn) -> syn::Result<Self> {
        function::check_method(kind, &function)?;
        Self::checked(kind, options, function)
    }

    fn checked(kind: Kind, options: Options, function: ItemFn) -> syn::Result<Self> {
        let params = param::read_all(kind, options.uri.as_ref(), &function)?;
        Ok(Self { kind, options, function, params })
    }

    /// The type of the route, and the function that makes it.
    fn route(&self) -> (&'static str, &'static str) {
        self.kind.route(self.options.uri.as_ref().is_some_and(uri::Uri::is_template))
    }

    fn has_receiver(&self) -> bool {
        self.function.sig.receiver().is_some()
    }
}

/// The whole expansion, on the tokens of `proc_macro2` so that it can be tested without a compiler.
fn expand(kind: Kind, options: Tokens, item: Tokens) -> Tokens {
    let function = match function::parse(kind, item) {
        Ok(function) => function,
        Err(error) => return error.into_compile_error(),
    };
    let options = match Options::parse(kind, options) {
        Ok(options) => options,
        Err(error) => return emit::refusal(kind, &options::default_crate(), &function, &error),
    };
    let krate = options.krate.clone();
    match Annotated::new(kind, options, function.clone()).and_then(|annotated| emit::expansion(&annotated)) {
        Ok(tokens) => tokens,
        Err(error) => emit::refusal(kind, &krate, &function, &error),
    }
}
