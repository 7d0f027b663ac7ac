//! `#[tools]`: the functions of an `impl` as one set of routes.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{
    Attribute, Error, ImplItem, ImplItemFn, ItemFn, ItemImpl, Meta, Path, Result, Token,
    parse::{ParseStream, Parser},
    parse2,
};

use crate::{
    Annotated,
    emit::{cfg_attributes, strip},
    kind::Kind,
    options::{Options, default_crate, end_of_option, once, read_path, read_word},
    route,
};

/// What stands in the parentheses of `#[tools]`.
struct ServiceOptions {
    /// The function that gives the routes, instead of the trait.
    function: Option<Ident>,
    krate: Path,
}

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    expansion(options, item).unwrap_or_else(Error::into_compile_error)
}

fn expansion(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut service = parse2::<ItemImpl>(item).map_err(|error| {
        Error::new(error.span(), "`#[tools]` goes on an `impl` of a type: `#[tools] impl Library { … }`")
    })?;
    if let Some((of, _)) = &service.trait_ {
        return Err(Error::new_spanned(of, "`#[tools]` goes on an `impl` of a type, not on one of a trait"));
    }
    let mut errors = Vec::new();
    let options = read_options.parse2(options).unwrap_or_else(|error| {
        errors.push(error);
        ServiceOptions { function: None, krate: default_crate() }
    });
    let mut routes = Vec::new();
    let mut annotated = false;
    for item in &mut service.items {
        let ImplItem::Fn(function) = item else { continue };
        match read(function, &options.krate) {
            Ok(None) => continue,
            Ok(Some(route)) => routes.push(route),
            Err(error) => errors.push(error),
        }
        annotated = true;
    }
    if !annotated && errors.is_empty() {
        let message = "no function of this `impl` has `#[tool]`, `#[prompt]` or `#[resource]` on it";
        errors.push(Error::new_spanned(&service.self_ty, message));
    }
    let errors = errors.iter().map(Error::to_compile_error);
    let provided = provided(&service, &options, &routes);
    Ok(quote! {
        #(#errors)*
        #service
        #provided
    })
}

/// Takes our attributes off a function, and gives the statement that adds its route to `group`.
fn read(function: &mut ImplItemFn, krate: &Path) -> Result<Option<TokenStream>> {
    let ours: Vec<Attribute> =
        function.attrs.extract_if(.., |attribute| kind_of(attribute).is_some()).collect();
    let [attribute] = &ours[..] else {
        strip_if(function, !ours.is_empty());
        return match ours.get(1) {
            None => Ok(None),
            Some(second) => {
                Err(Error::new_spanned(second, "a function has one of these attributes, not two"))
            }
        };
    };
    let written = ItemFn {
        attrs: function.attrs.clone(),
        vis: function.vis.clone(),
        modifiers: function.modifiers.clone(),
        sig: function.sig.clone(),
        block: Box::new(function.block.clone()),
    };
    strip_if(function, true);
    let Some(kind) = kind_of(attribute) else { return Ok(None) };
    let mut options = Options::parse(kind, tokens(attribute)?)?;
    if !options.krate_given {
        options.krate = krate.clone();
    }
    let annotated = Annotated::method(kind, options, written)?;
    let name = &annotated.function.sig.ident;
    let made = route::expression(&annotated, &quote!(Self::#name))?;
    let setter = Ident::new(annotated.route().1, Span::call_site());
    let cfg = cfg_attributes(&function.attrs);
    Ok(Some(quote! {
        #(#cfg)*
        let group = group.#setter(#made);
    }))
}

/// Handlers are async and own their arguments whether the body makes use of that or not.
fn strip_if(function: &mut ImplItemFn, annotated: bool) {
    if annotated {
        strip(&mut function.sig);
        function.attrs.insert(
            0,
            syn::parse_quote!(#[allow(clippy::needless_pass_by_value, clippy::unused_async, clippy::unused_self)]),
        );
    }
}

fn kind_of(attribute: &Attribute) -> Option<Kind> {
    Kind::of(&attribute.path().segments.last()?.ident.to_string())
}

fn tokens(attribute: &Attribute) -> Result<TokenStream> {
    match &attribute.meta {
        Meta::Path(_) => Ok(TokenStream::new()),
        Meta::List(list) => Ok(list.tokens.clone()),
        Meta::NameValue(_) => Err(Error::new_spanned(attribute, "options stand in parentheses")),
    }
}

/// The trait, or the function that was asked for.
fn provided(service: &ItemImpl, options: &ServiceOptions, routes: &[TokenStream]) -> TokenStream {
    let krate = &options.krate;
    let private = quote!(#krate::__private);
    let (generics, _, bounds) = service.generics.split_for_impl();
    let (ty, cfg) = (&service.self_ty, cfg_attributes(&service.attrs));
    let this = route::this();
    let body = quote! {
        let group = #private::Group::new();
        #(#routes)*
        group
    };
    let allowed = quote!(#[allow(deprecated, unused_variables, clippy::redundant_closure)]);
    match &options.function {
        None => quote! {
            #(#cfg)*
            #allowed
            impl #generics #private::Routes for #ty #bounds {
                fn routes(#this: ::std::sync::Arc<Self>) -> #private::Group {
                    #body
                }
            }
        },
        Some(name) => quote! {
            #(#cfg)*
            #allowed
            impl #generics #ty #bounds {
                /// The routes of this part of the service.
                #[allow(unreachable_pub)]
                pub fn #name(self: &::std::sync::Arc<Self>) -> #private::Group {
                    let #this = ::std::sync::Arc::clone(self);
                    #body
                }
            }
        },
    }
}

fn read_options(input: ParseStream<'_>) -> Result<ServiceOptions> {
    let mut options = ServiceOptions { function: None, krate: default_crate() };
    let mut seen = Vec::new();
    while !input.is_empty() {
        let option = read_word(input, "tools", &["fn", "crate"])?;
        once(&mut seen, &option)?;
        if option == "crate" {
            options.krate = read_path(&option, input)?;
        } else {
            options.function = Some(read_function(&option, input)?);
        }
        end_of_option(input)?;
    }
    Ok(options)
}

fn read_function(option: &Ident, input: ParseStream<'_>) -> Result<Ident> {
    let wanted = "`fn` needs the name of the function that gives the routes: `fn = admin`";
    if !input.peek(Token![=]) {
        return Err(Error::new(option.span(), wanted));
    }
    input.parse::<Token![=]>()?;
    input.parse().map_err(|error| Error::new(error.span(), wanted))
}
