//! Writes the code: the function as it was, and a type of the same name that makes its route.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{
    Attribute, Error, Expr, FnArg, ItemFn, LitStr, Path, Result, ReturnType, ext::IdentExt, spanned::Spanned,
};

use crate::{
    Annotated, docs,
    function::{hides_a_type, is_method},
    kind::Kind,
    param::{Argument, Param, Role, is_ours},
};

/// The expansion of a function that passed all checks.
pub(crate) fn expansion(annotated: &Annotated) -> Result<TokenStream> {
    let Annotated { function, options, .. } = annotated;
    let written = written_function(function);
    let carrier = carrier(function);
    let cfg = cfg_attributes(function);
    let krate = &options.krate;
    let private = quote!(#krate::__private);
    let arguments = arguments_struct(annotated, &private);
    let route = route(annotated, &private)?;
    Ok(quote! {
        #written
        #carrier

        #(#cfg)*
        #[allow(deprecated, clippy::redundant_closure)]
        const _: () = {
            #arguments
            #route
        };
    })
}

/// The error, and as much of the expansion as keeps the compiler from reporting the consequences as well.
pub(crate) fn refusal(kind: Kind, krate: &Path, function: &ItemFn, error: &Error) -> TokenStream {
    let error = error.to_compile_error();
    if is_method(function) {
        // Nothing of what follows can stand in an `impl`.
        return error;
    }
    let name = &function.sig.ident;
    let (written, carrier) = (written_function(function), carrier(function));
    if hides_a_type(function) {
        return quote!(#error #[allow(warnings)] #written);
    }
    let vis = &function.vis;
    let route = Ident::new(kind.route(false).0, Span::call_site());
    let cfg = cfg_attributes(function);
    quote! {
        #error

        #[allow(warnings)]
        #written
        #carrier

        #(#cfg)*
        #[allow(warnings)]
        const _: () = {
            impl #name {
                #vis fn route() -> #krate::__private::#route {
                    ::core::unreachable!()
                }
            }
        };
    }
}

/// The function as it was written, without what its parameters tell us.
///
/// Handlers are async and own their arguments whether the body makes use of that or not, so nobody should be told to
/// change it. What the user says about lints comes later, and wins.
fn written_function(function: &ItemFn) -> TokenStream {
    let mut function = function.clone();
    for input in &mut function.sig.inputs {
        if let FnArg::Typed(typed) = input {
            typed.attrs.retain(|attribute| !is_ours(attribute));
        }
    }
    quote! {
        #[allow(clippy::needless_pass_by_value, clippy::unused_async)]
        #function
    }
}

/// The type that carries the route. With its braces it takes the name among the types only, so that the function
/// keeps it among the values.
fn carrier(function: &ItemFn) -> TokenStream {
    let cfg = cfg_attributes(function);
    let deprecated = function.attrs.iter().filter(|attribute| attribute.path().is_ident("deprecated"));
    let (vis, name) = (&function.vis, &function.sig.ident);
    quote! {
        #(#cfg)*
        #(#deprecated)*
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #vis struct #name {}
    }
}

/// What decides whether the function is there at all holds for everything it becomes.
fn cfg_attributes(function: &ItemFn) -> impl Iterator<Item = &Attribute> {
    function.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"))
}

fn arguments(annotated: &Annotated) -> impl Iterator<Item = &Argument> {
    annotated.params.iter().filter_map(Param::argument)
}

/// The struct that somebody without macros would have written.
fn arguments_struct(annotated: &Annotated, private: &TokenStream) -> Option<TokenStream> {
    arguments(annotated).next()?;
    let fields = arguments(annotated).map(Argument::field);
    let defaults = arguments(annotated).filter_map(Argument::default_item);
    let serde = path_text(private, "serde");
    // The variables of a template have no schema on the wire.
    let schema = (annotated.kind != Kind::Resource).then(|| {
        let schemars = path_text(private, "schemars");
        quote!(#[derive(#private::schemars::JsonSchema)] #[schemars(crate = #schemars)])
    });
    Some(quote! {
        #(#defaults)*

        #[derive(#private::serde::Deserialize)]
        #[serde(crate = #serde)]
        #schema
        struct __Arguments {
            #(#fields,)*
        }
    })
}

fn path_text(private: &TokenStream, name: &str) -> String {
    format!("{private}::{name}").replace(' ', "")
}

/// `name::route()`, which is also what `routes!` asks for.
fn route(annotated: &Annotated, private: &TokenStream) -> Result<TokenStream> {
    let function = &annotated.function;
    let (vis, name) = (&function.vis, &function.sig.ident);
    let made = made(annotated, private)?;
    let route = Ident::new(annotated.route().0, Span::call_site());
    Ok(quote! {
        impl #name {
            #vis fn route() -> #private::#route {
                // Whoever makes the route has made use of the type.
                let _ = Self {};
                #made
            }
        }
    })
}

/// The expression that makes the route.
fn made(annotated: &Annotated, private: &TokenStream) -> Result<TokenStream> {
    let name = &annotated.function.sig.ident;
    let handler = handler(annotated, private);
    let taken = taken(annotated, private);
    let wire_name =
        annotated.options.name.clone().unwrap_or_else(|| LitStr::new(&name.unraw().to_string(), name.span()));
    let (address, wire_name) = match &annotated.options.uri {
        Some(uri) => (uri.text.clone(), Some(quote!(.name(#wire_name)))),
        None => (wire_name, None),
    };
    let maker = Ident::new(annotated.route().1, Span::call_site());
    // A complaint about an extractor belongs to the function, not to the attribute.
    let maker = at(name.span(), quote!(#private::#maker));
    let made = quote_spanned!(name.span()=> #maker::<_, #taken>(#address, #handler));
    let setters = setters(annotated)?;
    Ok(quote!(#made #wire_name #setters))
}

fn setters(annotated: &Annotated) -> Result<TokenStream> {
    let options = &annotated.options;
    let description = match &options.description {
        Some(text) => Some(text.clone()),
        None => docs::description(&annotated.function.attrs)?,
    };
    let title = options.title.as_ref().map(|title| quote!(.title(#title)));
    let description = description.map(|text: Expr| quote!(.description(#text)));
    let mime_type = options.mime_type.as_ref().map(|mime_type| quote!(.mime_type(#mime_type)));
    let open_world = options.open_world.as_ref().map(|is| quote!(.open_world(#is)));
    let hints = &options.hints;
    Ok(quote!(#title #description #mime_type #(.#hints())* #open_world))
}

/// The extractor of all the plain arguments, if there are any.
fn extractor_of_arguments(annotated: &Annotated, private: &TokenStream) -> Option<TokenStream> {
    arguments(annotated).next()?;
    let name = Ident::new(if annotated.kind == Kind::Resource { "Uri" } else { "Args" }, Span::call_site());
    Some(quote!(#private::#name))
}

/// The tuple of the extractors. With it the compiler can say which of them is none.
fn taken(annotated: &Annotated, private: &TokenStream) -> TokenStream {
    let arguments =
        extractor_of_arguments(annotated, private).map(|extractor| quote!(#extractor<__Arguments>,));
    let others =
        annotated.params.iter().filter(|param| param.argument().is_none()).map(|param| &param.typed.ty);
    quote!((#arguments #(#others,)*))
}

/// The closure that takes the extractors and calls the function.
fn handler(annotated: &Annotated, private: &TokenStream) -> TokenStream {
    let all = Ident::new("arguments", Span::mixed_site());
    let mut patterns = Vec::new();
    if let Some(extractor) = extractor_of_arguments(annotated, private) {
        patterns.push(quote!(#extractor(#all): #extractor<__Arguments>));
    }
    let mut passed = Vec::new();
    for (param, name) in annotated.params.iter().zip(parameter_names(annotated)) {
        match &param.role {
            Role::Argument(argument) => {
                let field = &argument.ident;
                passed.push(quote!(#all.#field));
            }
            Role::Extractor => {
                let ty = &param.typed.ty;
                patterns.push(quote!(#name: #ty));
                passed.push(quote!(#name));
            }
        }
    }
    // A complaint about what the function returns belongs where the type is written.
    let span = output_span(annotated);
    let name = &annotated.function.sig.ident;
    if annotated.function.sig.asyncness.is_some() {
        quote_spanned!(span=> |#(#patterns),*| #name(#(#passed),*))
    } else {
        quote_spanned!(span=> |#(#patterns),*| async move { #name(#(#passed),*) })
    }
}

/// A name for each parameter, whatever its pattern.
fn parameter_names(annotated: &Annotated) -> impl Iterator<Item = Ident> {
    (0..annotated.params.len()).map(|number| format_ident!("parameter{number}", span = Span::mixed_site()))
}

/// The tokens, as if they had been written there.
fn at(span: Span, tokens: TokenStream) -> TokenStream {
    let moved = tokens.into_iter().map(|mut token| {
        token.set_span(span);
        token
    });
    moved.collect()
}

fn output_span(annotated: &Annotated) -> Span {
    match &annotated.function.sig.output {
        ReturnType::Default => annotated.function.sig.ident.span(),
        ReturnType::Type(_, ty) => ty.span(),
    }
}
