//! The parameters of an annotated function: extractors, and arguments that the caller gives by name.

mod argument;

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{
    Attribute, Error, FnArg, GenericArgument, ItemFn, Meta, Pat, PatType, PathArguments, PathSegment, Result,
    Type,
};

pub(crate) use argument::Argument;

use crate::{function, kind::Kind, uri::Uri};

/// The types that are extractors by their name.
const EXTRACTORS: [&str; 9] =
    ["Args", "State", "Context", "Client", "Progress", "Log", "Meta", "Uri", "Extension"];

/// As many as the handlers of the server can take.
const MAX_EXTRACTORS: usize = 8;

/// One parameter.
pub(crate) struct Param {
    /// As it stands in the function, without the attributes that are meant for us.
    pub(crate) typed: PatType,
    pub(crate) role: Role,
}

/// Where the value of a parameter comes from.
pub(crate) enum Role {
    /// The type says it.
    Extractor,
    /// The caller of the tool, prompt or template gives it.
    Argument(Box<Argument>),
}

impl Param {
    /// The argument that the caller gives, if it is one.
    pub(crate) fn argument(&self) -> Option<&Argument> {
        match &self.role {
            Role::Extractor => None,
            Role::Argument(argument) => Some(argument),
        }
    }
}

/// Reads and checks all parameters.
pub(crate) fn read_all(kind: Kind, uri: Option<&Uri>, function: &ItemFn) -> Result<Vec<Param>> {
    let mut params = Vec::new();
    let mut takes_all = None;
    for input in &function.sig.inputs {
        // A receiver has been refused already.
        let FnArg::Typed(typed) = input else { continue };
        let param = read(kind, typed)?;
        if let (Role::Extractor, Some(name)) = (&param.role, extractor_name(&param.typed.ty)) {
            check_extractor(kind, uri, &name)?;
            if name == "Args" || name == "Uri" {
                takes_all = Some(name);
            }
        }
        params.push(param);
    }
    check_mixture(&params, takes_all.as_ref())?;
    check_names(&params)?;
    if let Some(uri) = uri {
        check_variables(uri, &params, function, takes_all.is_some())?;
    }
    check_count(kind, &params, function)?;
    Ok(params)
}

fn read(kind: Kind, typed: &PatType) -> Result<Param> {
    let (ours, theirs): (Vec<Attribute>, _) = typed.attrs.iter().cloned().partition(is_ours);
    let typed = PatType { attrs: theirs, ..typed.clone() };
    let role = if is_extractor(&typed, &ours)? {
        refuse_on_extractor(&ours)?;
        Role::Extractor
    } else {
        Role::Argument(Box::new(Argument::read(kind, &typed, ours)?))
    };
    function::check_parameter_type(kind.noun(), &typed.ty, matches!(role, Role::Argument(_)))?;
    Ok(Param { typed, role })
}

/// Whether the attribute is meant for us and must not stay on the function.
pub(crate) fn is_ours(attribute: &Attribute) -> bool {
    ["doc", "arg", "extract", "serde", "schemars", "cfg"].iter().any(|name| attribute.path().is_ident(name))
}

fn is_extractor(typed: &PatType, ours: &[Attribute]) -> Result<bool> {
    let with_name = |name| ours.iter().find(|attribute| attribute.path().is_ident(name));
    if let Some(cfg) = with_name("cfg") {
        let message =
            "a parameter cannot depend on `cfg`: put the `cfg` on the function and write two of them";
        return Err(Error::new_spanned(cfg, message));
    }
    match (with_name("arg"), with_name("extract")) {
        (Some(_), Some(extract)) => Err(Error::new_spanned(
            extract,
            "a parameter is either an `#[arg]` or to be `#[extract]`ed, not both",
        )),
        (Some(_), None) => Ok(false),
        (None, Some(extract)) => match &extract.meta {
            Meta::Path(_) => Ok(true),
            _ => Err(Error::new_spanned(extract, "`#[extract]` takes no options")),
        },
        (None, None) => Ok(extractor_name(&typed.ty).is_some()),
    }
}

fn refuse_on_extractor(ours: &[Attribute]) -> Result<()> {
    match ours
        .iter()
        .find(|attribute| attribute.path().is_ident("serde") || attribute.path().is_ident("schemars"))
    {
        Some(attribute) => {
            let message =
                "this parameter is an extractor and has no schema; add `#[arg]` if the caller gives it";
            Err(Error::new_spanned(attribute, message))
        }
        None => Ok(()),
    }
}

/// The name of the extractor, looking through `Option` and `Result`.
fn extractor_name(ty: &Type) -> Option<Ident> {
    let last = last_segment(ty)?;
    if EXTRACTORS.iter().any(|name| last.ident == name) {
        return Some(last.ident.clone());
    }
    match &last.arguments {
        PathArguments::AngleBracketed(generics) if last.ident == "Option" || last.ident == "Result" => {
            match generics.args.first() {
                Some(GenericArgument::Type(inner)) => extractor_name(inner),
                _ => None,
            }
        }
        _ => None,
    }
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        // Types that come through a `macro_rules!` are wrapped in these.
        Type::Group(group) => last_segment(&group.elem),
        Type::Paren(paren) => last_segment(&paren.elem),
        _ => None,
    }
}

fn check_extractor(kind: Kind, uri: Option<&Uri>, name: &Ident) -> Result<()> {
    let message = match kind {
        Kind::Resource if name == "Args" => {
            "a resource has no arguments; the variables of its URI are plain parameters, or `Uri<T>`"
        }
        Kind::Resource if name == "Uri" && !uri.is_some_and(Uri::is_template) => {
            "`Uri<T>` takes the variables of the URI, and this URI has none"
        }
        Kind::Tool | Kind::Prompt if name == "Uri" => "`Uri<T>` is for resources; take `Args<T>` here",
        _ => return Ok(()),
    };
    Err(Error::new(name.span(), message))
}

/// `Args<T>` has all the arguments in it, so there is nothing left for plain parameters.
fn check_mixture(params: &[Param], takes_all: Option<&Ident>) -> Result<()> {
    let (Some(name), Some(plain)) = (takes_all, params.iter().find(|param| param.argument().is_some()))
    else {
        return Ok(());
    };
    let message = format!(
        "`{name}<T>` already takes all the arguments: make this a field of its struct, or drop `{name}<T>` and list \
         all of them here (`#[extract]` if this is an extractor)"
    );
    Err(Error::new_spanned(&plain.typed.pat, message))
}

fn check_names(params: &[Param]) -> Result<()> {
    let mut names: Vec<&str> = Vec::new();
    for argument in params.iter().filter_map(Param::argument) {
        if names.contains(&argument.name.as_str()) {
            let message = format!("two arguments are called `{}`", argument.name);
            return Err(Error::new(argument.name_span(), message));
        }
        names.push(&argument.name);
    }
    Ok(())
}

/// The arguments and the variables must be the same.
fn check_variables(uri: &Uri, params: &[Param], function: &ItemFn, takes_all: bool) -> Result<()> {
    let arguments: Vec<&Argument> = params.iter().filter_map(Param::argument).collect();
    if let Some(unknown) = arguments.iter().find(|argument| !uri.variables.contains(&argument.name)) {
        let name = &unknown.name;
        let message = if uri.is_template() {
            format!("`{name}` is no variable of the URI, which has {}", uri.listed())
        } else {
            format!(
                "this URI has no variables, so the resource has no arguments: write `{{{name}}}` into the URI, or \
                 put `#[extract]` here if it is an extractor"
            )
        };
        return Err(Error::new(unknown.name_span(), message));
    }
    let is_taken = |name: &String| takes_all || arguments.iter().any(|argument| argument.name == *name);
    match uri.variables.iter().find(|name| !is_taken(name)) {
        Some(missing) => {
            let message = format!(
                "the URI has the variable `{missing}`, so the function needs a parameter `{missing}`"
            );
            Err(Error::new(function.sig.ident.span(), message))
        }
        None => Ok(()),
    }
}

fn check_count(kind: Kind, params: &[Param], function: &ItemFn) -> Result<()> {
    let plain = params.iter().filter(|param| param.argument().is_some()).count();
    // All plain arguments come through one extractor.
    let extractors = params.len() - plain + usize::from(plain > 0);
    if extractors <= MAX_EXTRACTORS {
        return Ok(());
    }
    let message = format!(
        "a {} takes at most {MAX_EXTRACTORS} extractors, all plain arguments together counting as one; take `Context`, \
         which has everything",
        kind.noun()
    );
    Err(Error::new_spanned(&function.sig.inputs, message))
}

/// The name of a parameter that is a plain identifier.
fn plain_name(noun: &str, pattern: &Pat) -> Result<Ident> {
    match pattern {
        Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
            Ok(pattern.ident.clone())
        }
        Pat::Wild(wild) => {
            let message =
                format!("an argument of a {noun} needs a name that callers can use: write it instead of `_`");
            Err(Error::new_spanned(wild, message))
        }
        _ => {
            let shown = pattern.to_token_stream().to_string();
            let message = format!(
                "an argument of a {noun} needs a name that callers can use: write `name: Type` and take `{shown}` apart \
                 in the body (`#[extract]` if this is an extractor)"
            );
            Err(Error::new_spanned(pattern, message))
        }
    }
}
