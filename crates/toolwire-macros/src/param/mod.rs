//! The parameters of an annotated function.
//!
//! Whether one is an extractor or an argument is for the compiler to find out, by its type. What is decided here is
//! only what cannot be otherwise: what has an `#[arg]` on it, what has no name, what is a variable of the URI.

mod argument;

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{
    Attribute, Error, FnArg, GenericArgument, ItemFn, Meta, Pat, PatType, PathArguments, PathSegment, Result,
    Type,
};

pub(crate) use argument::Argument;

use crate::{function, kind::Kind, uri::Uri};

/// One parameter.
pub(crate) struct Param {
    /// As it stands in the function, without the attributes that are meant for us.
    pub(crate) typed: PatType,
    pub(crate) role: Role,
}

/// Where the value of a parameter comes from.
pub(crate) enum Role {
    /// From the request.
    Extracted,
    /// From the caller.
    Given(Box<Argument>),
    /// The type says it.
    ByType(Box<Argument>),
    /// From the caller, by a variable of the URI.
    Variable(Box<Argument>),
}

impl Param {
    /// What is known of it as an argument, if it may be one.
    pub(crate) fn argument(&self) -> Option<&Argument> {
        match &self.role {
            Role::Extracted => None,
            Role::Given(argument) | Role::ByType(argument) | Role::Variable(argument) => Some(argument),
        }
    }

    /// The name that its type has, looking through `Option` and `Result`. Good for a hint, and for no decision.
    fn is_called(&self, name: &str) -> bool {
        let called = innermost(&self.typed.ty).is_some_and(|segment| segment.ident == name);
        called && !matches!(self.role, Role::Given(_) | Role::Variable(_))
    }
}

/// Reads and checks all parameters.
pub(crate) fn read_all(kind: Kind, uri: Option<&Uri>, function: &ItemFn) -> Result<Vec<Param>> {
    let mut params = Vec::new();
    for input in &function.sig.inputs {
        // Receivers have been looked at already.
        let FnArg::Typed(typed) = input else { continue };
        params.push(read(kind, uri, typed)?);
    }
    check_places(kind, uri, &params)?;
    check_names(&params)?;
    if let Some(uri) = uri {
        check_variables(uri, &params, function)?;
    }
    Ok(params)
}

fn read(kind: Kind, uri: Option<&Uri>, typed: &PatType) -> Result<Param> {
    let (ours, theirs): (Vec<Attribute>, _) = typed.attrs.iter().cloned().partition(is_ours);
    let typed = PatType { attrs: theirs, ..typed.clone() };
    let role = role(kind, uri, &typed, ours)?;
    let from_json = matches!(role, Role::Given(_) | Role::Variable(_));
    function::check_parameter_type(kind.noun(), &typed.ty, from_json)?;
    Ok(Param { typed, role })
}

fn role(kind: Kind, uri: Option<&Uri>, typed: &PatType, ours: Vec<Attribute>) -> Result<Role> {
    let with_name = |name| ours.iter().find(|attribute| attribute.path().is_ident(name));
    if let Some(cfg) = with_name("cfg") {
        let message =
            "a parameter cannot depend on `cfg`: put the `cfg` on the function and write two of them";
        return Err(Error::new_spanned(cfg, message));
    }
    let described = with_name("serde").or_else(|| with_name("schemars"));
    match (with_name("arg"), with_name("extract")) {
        (Some(_), Some(extract)) => {
            let message = "a parameter is either an `#[arg]` or to be `#[extract]`ed, not both";
            Err(Error::new_spanned(extract, message))
        }
        (None, Some(extract)) => match (&extract.meta, described) {
            (_, Some(attribute)) => Err(Error::new_spanned(attribute, "what is extracted has no schema")),
            (Meta::Path(_), None) => Ok(Role::Extracted),
            _ => Err(Error::new_spanned(extract, "`#[extract]` takes no options")),
        },
        (arg, None) => {
            let is_arg = arg.is_some() || described.is_some();
            if !is_arg && !has_name(&typed.pat) {
                return Ok(Role::Extracted);
            }
            let argument = Box::new(Argument::read(kind, typed, ours)?);
            Ok(match uri {
                Some(uri) if uri.variables.contains(&argument.name) => Role::Variable(argument),
                Some(_) if is_arg => return Err(no_variable(uri, &argument)),
                Some(_) => Role::Extracted,
                None if is_arg => Role::Given(argument),
                None => Role::ByType(argument),
            })
        }
    }
}

/// Whether the attribute is meant for us and must not stay on the function.
pub(crate) fn is_ours(attribute: &Attribute) -> bool {
    ["doc", "arg", "extract", "serde", "schemars", "cfg"].iter().any(|name| attribute.path().is_ident(name))
}

/// Whether callers could use the name of a parameter. `State(app)` and `_` have none, so they must be extractors; a
/// tuple cannot be one, and gets a better answer as an argument.
fn has_name(pattern: &Pat) -> bool {
    matches!(pattern, Pat::Ident(_) | Pat::Tuple(_))
}

/// The last part of a type's path, looking through `Option` and `Result`.
fn innermost(ty: &Type) -> Option<&PathSegment> {
    let last = last_segment(ty)?;
    match &last.arguments {
        PathArguments::AngleBracketed(generics) if last.ident == "Option" || last.ident == "Result" => {
            match generics.args.first() {
                Some(GenericArgument::Type(inner)) => innermost(inner),
                _ => Some(last),
            }
        }
        _ => Some(last),
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

/// The extractors that make sense only in some places.
fn check_places(kind: Kind, uri: Option<&Uri>, params: &[Param]) -> Result<()> {
    for param in params {
        let message = match kind {
            Kind::Resource if param.is_called("Args") => {
                "a resource has no arguments; the variables of its URI are plain parameters, or `Uri<T>`"
            }
            Kind::Resource if param.is_called("Uri") && !uri.is_some_and(Uri::is_template) => {
                "`Uri<T>` takes the variables of the URI, and this URI has none"
            }
            Kind::Tool | Kind::Prompt if param.is_called("Uri") => {
                "`Uri<T>` is for resources; take `Args<T>` here"
            }
            _ => continue,
        };
        return Err(Error::new_spanned(&param.typed.ty, message));
    }
    Ok(())
}

/// A name can be taken only once. What was renamed is looked at first, so that the complaint is about the other one.
fn check_names(params: &[Param]) -> Result<()> {
    let is_by_type = |param: &&Param| matches!(param.role, Role::ByType(_));
    let said = params.iter().filter(|param| !is_by_type(param));
    let mut names: Vec<&str> = Vec::new();
    for argument in said.chain(params.iter().filter(is_by_type)).filter_map(Param::argument) {
        if names.contains(&argument.name.as_str()) {
            let message = format!("two arguments are called `{}`", argument.name);
            return Err(Error::new(argument.name_span(), message));
        }
        names.push(&argument.name);
    }
    Ok(())
}

fn no_variable(uri: Option<&Uri>, argument: &Argument) -> Error {
    let name = &argument.name;
    let message = match uri {
        Some(uri) if uri.is_template() => {
            format!("`{name}` is no variable of the URI, which has {}", uri.listed())
        }
        _ => format!(
            "this URI has no variables, so the resource has no arguments: write `{{{name}}}` into the URI"
        ),
    };
    Error::new(argument.name_span(), message)
}

/// Every variable must be taken.
fn check_variables(uri: &Uri, params: &[Param], function: &ItemFn) -> Result<()> {
    let is_variable = |param: &&Param| matches!(param.role, Role::Variable(_));
    let takes_all = params.iter().find(|param| param.is_called("Uri"));
    if let (Some(_), Some(plain)) = (takes_all, params.iter().find(is_variable)) {
        let message = "`Uri<T>` already takes all the variables: make this a field of its struct, or drop `Uri<T>` \
                       and list all of them here";
        return Err(Error::new_spanned(&plain.typed.pat, message));
    }
    let is_taken = |name: &&String| {
        takes_all.is_some()
            || params.iter().filter(is_variable).filter_map(Param::argument).any(|known| known.name == **name)
    };
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
