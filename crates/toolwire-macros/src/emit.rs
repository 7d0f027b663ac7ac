//! Writes the code: the function as it was, and a type of the same name that makes its route.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{Attribute, Error, FnArg, ItemFn, Path, Result, Signature};

use crate::{
    Annotated,
    function::{hides_a_type, is_method},
    kind::Kind,
    param::is_ours,
    route,
};

/// The expansion of a function that passed all checks.
pub(crate) fn expansion(annotated: &Annotated) -> Result<TokenStream> {
    let Annotated { function, options, .. } = annotated;
    let written = written_function(function);
    let carrier = carrier(function);
    let cfg = cfg_attributes(&function.attrs);
    let (vis, name, krate) = (&function.vis, &function.sig.ident, &options.krate);
    let route = Ident::new(annotated.route().0, Span::call_site());
    let made = route::expression(annotated, &quote!(#name))?;
    Ok(quote! {
        #written
        #carrier

        #(#cfg)*
        #[allow(deprecated, clippy::redundant_closure)]
        const _: () = {
            impl #name {
                #vis fn route() -> #krate::__private::#route {
                    // Whoever makes the route has made use of the type.
                    let _ = Self {};
                    #made
                }
            }
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
    let cfg = cfg_attributes(&function.attrs);
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
    strip(&mut function.sig);
    quote! {
        #[allow(clippy::needless_pass_by_value, clippy::unused_async)]
        #function
    }
}

/// Takes away what the parameters tell us.
pub(crate) fn strip(signature: &mut Signature) {
    for input in &mut signature.inputs {
        if let FnArg::Typed(typed) = input {
            typed.attrs.retain(|attribute| !is_ours(attribute));
        }
    }
}

/// The type that carries the route. With its braces it takes the name among the types only, so that the function
/// keeps it among the values.
fn carrier(function: &ItemFn) -> TokenStream {
    let cfg = cfg_attributes(&function.attrs);
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
pub(crate) fn cfg_attributes(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"))
}
