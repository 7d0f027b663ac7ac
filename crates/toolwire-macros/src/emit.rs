//! Writes the code: a value with the function's name, the way from it to a route, and the way to call it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{
    Attribute, Error, Expr, FnArg, ItemFn, LitStr, Path, Result, ReturnType, Type, Visibility, ext::IdentExt,
    parse_quote, spanned::Spanned,
};

use crate::{
    Annotated, docs,
    function::is_method,
    kind::Kind,
    param::{Argument, Param, Role, is_ours},
};

/// The expansion of a function that passed all checks.
pub(crate) fn expansion(annotated: &Annotated) -> Result<TokenStream> {
    let Annotated { function, options, .. } = annotated;
    let value = value_item(function);
    let cfg = cfg_attributes(function);
    let krate = &options.krate;
    let private = quote!(#krate::__private);
    let inner = inner_function(function);
    let arguments = arguments_struct(annotated, &private);
    let conversion = conversion(annotated, &private)?;
    let calling = calling(annotated);
    Ok(quote! {
        #value

        #(#cfg)*
        // Extractors are owned and handlers are async, whether the body makes use of that or not.
        #[allow(deprecated, clippy::needless_pass_by_value, clippy::redundant_closure, clippy::unused_async)]
        const _: () = {
            #inner
            #arguments
            #conversion
            #calling
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
    let value = value_item(function);
    let routes = match kind {
        Kind::Tool => &["ToolRoute"][..],
        Kind::Prompt => &["PromptRoute"],
        Kind::Resource => &["ResourceRoute", "TemplateRoute"],
    };
    let routes = routes.iter().map(|route| Ident::new(route, Span::call_site()));
    // With the function in it, what the function uses counts as used.
    let inner = inner_function(function);
    let cfg = cfg_attributes(function);
    quote! {
        #error

        #value
        #(#cfg)*
        #[allow(warnings)]
        const _: () = {
            #inner
            #(
                impl ::core::convert::From<#name> for #krate::__private::#routes {
                    fn from(_: #name) -> Self {
                        ::core::unreachable!()
                    }
                }
            )*
        };
    }
}

/// The function as it was written, under its own name, to be put where nobody else sees it.
fn inner_function(function: &ItemFn) -> ItemFn {
    let mut function = function.clone();
    function.vis = Visibility::Inherited;
    function.attrs.retain(|attribute| !is_for_value(attribute));
    for input in &mut function.sig.inputs {
        if let FnArg::Typed(typed) = input {
            typed.attrs.retain(|attribute| !is_ours(attribute));
        }
    }
    function
}

/// The value that is passed to the server builder.
fn value_item(function: &ItemFn) -> TokenStream {
    let attributes = function.attrs.iter().filter(|attribute| is_for_value(attribute));
    let (vis, name) = (&function.vis, &function.sig.ident);
    quote! {
        #(#attributes)*
        #[allow(non_camel_case_types)]
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        #vis struct #name;
    }
}

/// What decides whether the function is there at all holds for everything it becomes.
fn cfg_attributes(function: &ItemFn) -> impl Iterator<Item = &Attribute> {
    function.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"))
}

fn is_for_value(attribute: &Attribute) -> bool {
    ["doc", "cfg", "deprecated"].iter().any(|name| attribute.path().is_ident(name))
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

/// `impl From<name> for ToolRoute` and its siblings.
fn conversion(annotated: &Annotated, private: &TokenStream) -> Result<TokenStream> {
    let name = &annotated.function.sig.ident;
    let handler = handler(annotated, private);
    let taken = taken(annotated, private);
    let wire_name =
        annotated.options.name.clone().unwrap_or_else(|| LitStr::new(&name.unraw().to_string(), name.span()));
    let (route, maker, address, wire_name) = match (annotated.kind, &annotated.options.uri) {
        (Kind::Tool, _) => ("ToolRoute", "tool", wire_name, None),
        (Kind::Prompt, _) => ("PromptRoute", "prompt", wire_name, None),
        (Kind::Resource, Some(uri)) if uri.is_template() => {
            ("TemplateRoute", "template", uri.text.clone(), Some(wire_name))
        }
        (Kind::Resource, Some(uri)) => ("ResourceRoute", "resource", uri.text.clone(), Some(wire_name)),
        (Kind::Resource, None) => return Err(Error::new(name.span(), "a resource needs a URI")),
    };
    let route = Ident::new(route, Span::call_site());
    let maker = Ident::new(maker, Span::call_site());
    // A complaint about an extractor belongs to the function, not to the attribute.
    let maker = at(name.span(), quote!(#private::#maker));
    let made = quote_spanned!(name.span()=> #maker::<_, #taken>(#address, #handler));
    let wire_name = wire_name.map(|name| quote!(.name(#name)));
    let setters = setters(annotated)?;
    Ok(quote! {
        impl ::core::convert::From<#name> for #private::#route {
            fn from(_: #name) -> Self {
                #made #wire_name #setters
            }
        }
    })
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
        quote_spanned!(span=> |#(#patterns),*| __call(#(#passed),*))
    } else {
        quote_spanned!(span=> |#(#patterns),*| async move { #name(#(#passed),*) })
    }
}

/// Makes `name(…)` call the function: call expressions look through `Deref`.
fn calling(annotated: &Annotated) -> TokenStream {
    let name = &annotated.function.sig.ident;
    let types: Vec<&Type> = annotated.params.iter().map(|param| &*param.typed.ty).collect();
    let output: Type = match &annotated.function.sig.output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, ty) => (**ty).clone(),
    };
    let (function, output, boxed) = if annotated.function.sig.asyncness.is_some() {
        let names: Vec<Ident> = parameter_names(annotated).collect();
        let future = quote! {
            ::core::pin::Pin<::std::boxed::Box<dyn ::core::future::Future<Output = #output> + ::core::marker::Send>>
        };
        let body = quote_spanned!(name.span()=> ::std::boxed::Box::pin(#name(#(#names),*)));
        let boxed = quote! {
            fn __call(#(#names: #types),*) -> #future {
                #body
            }
        };
        (Ident::new("__call", Span::call_site()), future, Some(boxed))
    } else {
        (name.clone(), quote!(#output), None)
    };
    // A complaint about a private type in a public signature belongs to the function.
    let target = quote_spanned!(name.span()=> type Target = fn(#(#types),*) -> #output;);
    quote! {
        #boxed

        impl ::core::ops::Deref for #name {
            #target

            fn deref(&self) -> &Self::Target {
                const FUNCTION: fn(#(#types),*) -> #output = #function;
                &FUNCTION
            }
        }
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
