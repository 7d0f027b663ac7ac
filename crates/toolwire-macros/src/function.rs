//! Which functions can be annotated.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Error, FnArg, GenericParam, Item, ItemFn, Result, Safety, Type, parse2};

use crate::kind::Kind;

/// Reads the annotated item, which must be a function with a body.
pub(crate) fn parse(kind: Kind, item: TokenStream) -> Result<ItemFn> {
    let noun = kind.noun();
    match parse2::<Item>(item)? {
        Item::Fn(function) => Ok(function),
        other => {
            let span =
                other.to_token_stream().into_iter().next().map_or_else(Span::call_site, |token| token.span());
            Err(Error::new(
                span,
                format!("`#[{noun}]` goes on a function with a body: `async fn name(…) {{ … }}`"),
            ))
        }
    }
}

/// Checks a free function.
pub(crate) fn check_free(kind: Kind, function: &ItemFn) -> Result<()> {
    let noun = kind.noun();
    if let Some(receiver) = function.sig.receiver() {
        return Err(Error::new_spanned(receiver, in_an_impl(noun)));
    }
    check_name(kind, function)?;
    check(kind, function)?;
    for input in &function.sig.inputs {
        no_self_type(noun, &input.to_token_stream())?;
    }
    no_self_type(noun, &function.sig.output.to_token_stream())
}

/// Checks a function in an `impl` with `#[tools]`.
pub(crate) fn check_method(kind: Kind, function: &ItemFn) -> Result<()> {
    if let Some(FnArg::Receiver(receiver)) = function.sig.inputs.first()
        && receiver.to_token_stream().to_string().replace(' ', "") != "&self"
    {
        let message = format!(
            "a {} is called by many at once, so it takes `&self`: put what it changes into a Mutex",
            kind.noun()
        );
        return Err(Error::new_spanned(receiver, message));
    }
    check(kind, function)
}

/// Checks everything about the signature that does not depend on the single parameter.
fn check(kind: Kind, function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    let noun = kind.noun();
    let plain = |word: &str| format!("a {noun} is a plain function: remove `{word}`");
    if let Some(word) = &signature.constness {
        return Err(Error::new_spanned(word, plain("const")));
    }
    match &signature.safety {
        Safety::Default => {}
        word => return Err(Error::new_spanned(word, plain(&word.to_token_stream().to_string()))),
    }
    if let Some(abi) = &signature.abi {
        return Err(Error::new_spanned(abi, plain("extern")));
    }
    if let Some(variadic) = &signature.variadic {
        return Err(Error::new_spanned(variadic, format!("a {noun} has a fixed list of arguments")));
    }
    check_generics(kind, function)?;
    check_return_type(noun, &signature.output.to_token_stream())
}

/// The types that need no import. A type of the same name would hide them.
const PRIMITIVES: [&str; 17] = [
    "bool", "char", "str", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128",
    "isize", "f32", "f64",
];

fn check_name(kind: Kind, function: &ItemFn) -> Result<()> {
    let (noun, name) = (kind.noun(), &function.sig.ident);
    if !hides_a_type(function) {
        return Ok(());
    }
    let message = format!(
        "a {noun} called `{name}` would hide the type `{name}`: call the function differently, and add \
         `name = \"{name}\"`"
    );
    Err(Error::new(name.span(), message))
}

/// Whether the type that carries the route cannot have the function's name.
pub(crate) fn hides_a_type(function: &ItemFn) -> bool {
    PRIMITIVES.iter().any(|primitive| function.sig.ident == primitive)
}

fn check_generics(kind: Kind, function: &ItemFn) -> Result<()> {
    let noun = kind.noun();
    let generics = &function.sig.generics;
    match generics.params.first() {
        Some(GenericParam::Lifetime(lifetime)) => Err(Error::new_spanned(lifetime, owned(noun))),
        Some(parameter) => {
            let maker = if kind == Kind::Resource { "resource(uri" } else { &format!("{noun}(name") };
            let message = format!(
                "a {noun} cannot be generic, because it needs one schema and one address: use concrete types, or \
                 register a plain function for each type by hand, as in `{maker}, handler::<Concrete>)`"
            );
            Err(Error::new_spanned(parameter, message))
        }
        None => match &generics.where_clause {
            Some(clause) => Err(Error::new_spanned(clause, format!("a {noun} has no `where` clause"))),
            None => Ok(()),
        },
    }
}

fn check_return_type(noun: &str, output: &TokenStream) -> Result<()> {
    if let Some(span) = find_word(output, "impl") {
        let message =
            format!("the return type of a {noun} needs a name: write the type itself instead of `impl …`");
        return Err(Error::new(span, message));
    }
    Ok(())
}

/// Checks the type of a parameter. What is `'static` is allowed where the value does not come from JSON.
pub(crate) fn check_parameter_type(noun: &str, ty: &Type, from_json: bool) -> Result<()> {
    let tokens = ty.to_token_stream();
    if let Some(span) = find_word(&tokens, "impl") {
        let message =
            format!("an argument of a {noun} needs a concrete type: write the type instead of `impl …`");
        return Err(Error::new(span, message));
    }
    let from_json = from_json || matches!(ty, Type::Reference(_));
    match find_borrow(&tokens, from_json) {
        Some(_) if matches!(ty, Type::Reference(_)) => Err(Error::new_spanned(ty, owned_instead(noun, ty))),
        Some(span) => Err(Error::new(span, owned(noun))),
        None => Ok(()),
    }
}

/// Whether the function can stand only in an `impl` or a `trait`.
pub(crate) fn is_method(function: &ItemFn) -> bool {
    find_word(&function.to_token_stream(), "Self").is_some() || function.sig.receiver().is_some()
}

fn no_self_type(noun: &str, tokens: &TokenStream) -> Result<()> {
    match find_word(tokens, "Self") {
        Some(span) => Err(Error::new(span, in_an_impl(noun))),
        None => Ok(()),
    }
}

fn in_an_impl(noun: &str) -> String {
    format!("a {noun} in an `impl` needs `#[tools]` on that `impl`")
}

fn owned(noun: &str) -> String {
    format!("a {noun} owns its arguments: take values such as `String` or `Vec<T>`, which borrow nothing")
}

fn owned_instead(noun: &str, ty: &Type) -> String {
    let Type::Reference(reference) = ty else {
        return owned(noun);
    };
    let instead = match &*reference.elem {
        Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
        Type::Slice(slice) => format!("Vec<{}>", slice.elem.to_token_stream()),
        other => other.to_token_stream().to_string().replace(' ', ""),
    };
    format!("a {noun} owns its arguments: take `{instead}` instead of a reference")
}

/// Where this word stands in the tokens, at any depth.
fn find_word(tokens: &TokenStream, word: &str) -> Option<Span> {
    tokens.clone().into_iter().find_map(|token| match token {
        TokenTree::Ident(ident) if ident == word => Some(ident.span()),
        TokenTree::Group(group) => find_word(&group.stream(), word),
        _ => None,
    })
}

/// Where the tokens of a type borrow something: a reference, or a lifetime other than `'static`.
fn find_borrow(tokens: &TokenStream, static_too: bool) -> Option<Span> {
    let mut tokens = tokens.clone().into_iter().peekable();
    let mut reference = None;
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == '&' => reference = Some(punct.span()),
            TokenTree::Punct(punct) if punct.as_char() == '\'' => {
                let is_static = matches!(tokens.next(), Some(TokenTree::Ident(name)) if name == "static");
                match reference.take() {
                    Some(span) if static_too || !is_static => return Some(span),
                    None if !is_static => return Some(punct.span()),
                    _ => {}
                }
            }
            TokenTree::Group(group) => {
                if let Some(span) = find_borrow(&group.stream(), static_too) {
                    return Some(span);
                }
            }
            _ => {}
        }
        // A reference without a lifetime of its own borrows from nobody knows whom.
        if reference.is_some()
            && !matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == '\'')
        {
            return reference;
        }
    }
    reference
}
