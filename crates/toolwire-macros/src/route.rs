//! Writes the expression that makes a route of a function.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Expr, LitStr, Result, ReturnType, ext::IdentExt, spanned::Spanned};

use crate::{
    Annotated, docs,
    kind::Kind,
    param::{Argument, Param, Role},
};

/// The names that the generated code uses for itself. Nothing that the user writes can see them.
struct Locals {
    cx: Ident,
    signature: Ident,
    values: Ident,
    spec: Ident,
    this: Ident,
}

impl Locals {
    fn new() -> Self {
        let name = |text| Ident::new(text, Span::mixed_site());
        Self {
            cx: name("cx"),
            signature: name("signature"),
            values: name("values"),
            spec: name("spec"),
            this: name("this"),
        }
    }
}

/// The variable that holds the service that a method belongs to.
pub(crate) fn this() -> Ident {
    Locals::new().this
}

/// The expression, for a function that is called as `call`. If it has a receiver, that is found in [`this`].
pub(crate) fn expression(annotated: &Annotated, call: &TokenStream) -> Result<TokenStream> {
    let krate = &annotated.options.krate;
    let private = quote!(#krate::__private);
    let locals = Locals::new();
    let name = &annotated.function.sig.ident;
    let wire_name =
        annotated.options.name.clone().unwrap_or_else(|| LitStr::new(&name.unraw().to_string(), name.span()));
    let (address, wire_name) = match &annotated.options.uri {
        Some(uri) => (uri.text.clone(), Some(quote!(.name(#wire_name)))),
        None => (wire_name, None),
    };
    let maker = Ident::new(annotated.route().1, Span::call_site());
    // A complaint about an output belongs to the function, not to the attribute.
    let maker = at(name.span(), quote!(#private::#maker));
    let fields = fields(annotated, &private);
    let describe = describe(annotated, &private, &locals)?;
    let handler = handler(annotated, &private, &locals, call);
    let function = at(name.span(), quote!(#private::Function::new));
    let made = quote_spanned!(name.span()=> #maker(#address, #function(#describe, #handler)));
    let setters = setters(annotated)?;
    Ok(quote!({ #fields #made #wire_name #setters }))
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
    let scopes = &options.scopes;
    let scopes = (!scopes.is_empty()).then(|| quote!(.scopes([#(#scopes),*])));
    let task = options.task.as_ref().map(|task| task.setter(&options.krate));
    Ok(quote!(#title #description #mime_type #(.#hints())* #open_world #scopes #task))
}

/// A struct with one field for each argument that brings attributes for serde or schemars.
fn fields(annotated: &Annotated, private: &TokenStream) -> TokenStream {
    let serde = path_text(private, "serde");
    let schemars = path_text(private, "schemars");
    let structs = numbered(annotated).filter_map(|(position, param)| {
        let argument = param.argument().filter(|argument| argument.needs_field())?;
        let (name, field, default) = (field_struct(position), argument.field(), argument.default_item());
        // The variables of a template have no schema on the wire.
        let schema = (!matches!(param.role, Role::Variable(_)))
            .then(|| quote!(#[derive(#private::schemars::JsonSchema)] #[schemars(crate = #schemars)]));
        Some(quote! {
            #default
            #[derive(#private::serde::Deserialize)]
            #[serde(crate = #serde)]
            #schema
            struct #name { #field }
        })
    });
    quote!(#(#structs)*)
}

/// The closure that says what the parameters are.
fn describe(annotated: &Annotated, private: &TokenStream, locals: &Locals) -> Result<TokenStream> {
    let spec = &locals.spec;
    let mut lines = Vec::new();
    for (position, param) in numbered(annotated) {
        lines.push(match &param.role {
            Role::Variable(_) => continue,
            Role::Given(argument) | Role::ByType(argument) if argument.needs_field() => {
                let (name, aliases) = (field_struct(position), argument.aliases());
                quote!(#spec.field::<#name>(#position, &[#(#aliases),*]);)
            }
            Role::Extracted => {
                let ty = &param.typed.ty;
                // An error of the type is told once, about what it lacks.
                let describe = at_type(param, quote!(<#ty as #private::FromContext>::describe(#spec);));
                quote!(#spec.extracts::<#ty>(); #describe)
            }
            Role::Given(argument) | Role::ByType(argument) => {
                let (parameter, named) =
                    (parameter(param, private), named(position, argument, private, param)?);
                let describe = at_type(param, quote!(#parameter::describe));
                quote!(#describe(#spec, #named);)
            }
        });
    }
    let spec = if lines.is_empty() { quote!(_) } else { quote!(#spec) };
    Ok(quote!(|#spec: &mut #private::HandlerSpec| { #(#lines)* }))
}

fn named(position: usize, argument: &Argument, private: &TokenStream, param: &Param) -> Result<TokenStream> {
    let (name, ty) = (&argument.name, &param.typed.ty);
    let description = argument.description()?.map(|text| quote!(.description(#text)));
    let default = argument.default_value().map(|value| {
        quote! {
            .default({
                #[allow(unused_imports)]
                use #private::NotShown as _;
                let value: #ty = #value;
                #private::Shown(&value).json()
            })
        }
    });
    Ok(quote!(#private::Named::new(#position, #name) #description #default))
}

/// The closure that takes the parameters and calls the function.
fn handler(annotated: &Annotated, private: &TokenStream, locals: &Locals, call: &TokenStream) -> TokenStream {
    let Locals { cx, signature, values, this, .. } = locals;
    let count = annotated.params.len();
    let names: Vec<Ident> =
        (0..count).map(|number| format_ident!("parameter{number}", span = Span::mixed_site())).collect();
    let taken: Vec<TokenStream> =
        numbered(annotated).map(|(position, param)| take(position, param, private, locals)).collect();
    let extracted = match &taken[..] {
        [] => quote!(),
        [only] => quote!(let #(#names)* = {
            let #values = #private::Values::<1>::split(&#cx, &#signature)?;
            #only.await?
        };),
        _ => quote!(let (#(#names),*) = {
            let #values = #private::Values::<#count>::split(&#cx, &#signature)?;
            #private::try_join!(biased; #(#taken),*)?
        };),
    };
    let receiver = annotated.has_receiver().then(|| quote!(&#this,));
    let name = &annotated.function.sig.ident;
    let called = quote_spanned!(output_span(annotated)=> #call(#receiver #(#names),*));
    let called = if annotated.function.sig.asyncness.is_some() {
        quote!(#called.await)
    } else {
        // It may block, so it gets a thread where it can.
        quote!(#private::in_pool(move || #called).await?)
    };
    let (shared, shared_again) = annotated
        .has_receiver()
        .then(|| {
            let share = quote!(let #this = ::std::sync::Arc::clone(&#this););
            (share.clone(), share)
        })
        .unzip();
    // Only calls of tools become tasks.
    let threshold = (annotated.kind == Kind::Tool).then(|| quote!(#cx.threshold().await;));
    let body = quote_spanned! {name.span()=>
        async move {
            #extracted
            #threshold
            // The function must not keep the request alive by itself.
            ::core::mem::drop((#cx, #signature));
            ::core::result::Result::Ok::<_, #private::Rejection>(#called)
        }
    };
    quote!({
        #shared
        move |#cx: #private::Context, #signature: ::std::sync::Arc<#private::Signature>| {
            #shared_again
            #body
        }
    })
}

/// A future of the value of a parameter.
fn take(position: usize, param: &Param, private: &TokenStream, locals: &Locals) -> TokenStream {
    let Locals { cx, values, .. } = locals;
    let ty = &param.typed.ty;
    let ready = |result: TokenStream| quote!(::core::future::ready(#result));
    let Some(argument) = param.argument() else {
        return at_type(param, quote!(<#ty as #private::FromContext>::from_context(&#cx)));
    };
    let is_variable = matches!(param.role, Role::Variable(_));
    let name = &argument.name;
    if argument.needs_field() {
        let (of, field) = (field_struct(position), &argument.ident);
        let decoded = if is_variable {
            quote!(#private::variables::<#of>(&#cx))
        } else {
            quote!(#values.field::<#of>(&#cx))
        };
        return ready(quote!(#decoded.map(|all| all.#field)));
    }
    let (absent, taken) = if is_variable {
        let taken = at_type(param, quote!(#private::variable::<#ty>(&#cx, #name)));
        (quote!(#private::variable_is_absent(&#cx, #name)), ready(taken))
    } else {
        let parameter = parameter(param, private);
        let taken = at_type(param, quote!(#parameter::take(&#cx, #values.slot(#position))));
        (quote!(#values.slot(#position).is_absent()), taken)
    };
    match argument.default_value() {
        None => taken,
        Some(value) => quote! {
            async {
                if #absent {
                    let value: #ty = #value;
                    return ::core::result::Result::Ok(value);
                }
                #taken.await
            }
        },
    }
}

/// The trait that knows what to do with what may be an argument. Whether it is one is said here, or found by type.
fn parameter(param: &Param, private: &TokenStream) -> TokenStream {
    let ty = &param.typed.ty;
    let kind = if matches!(param.role, Role::ByType(_)) { quote!(_) } else { quote!(#private::Given) };
    quote!(<#ty as #private::Parameter<#kind>>)
}

fn numbered(annotated: &Annotated) -> impl Iterator<Item = (usize, &Param)> {
    annotated.params.iter().enumerate()
}

fn field_struct(position: usize) -> Ident {
    format_ident!("__Field{position}")
}

fn path_text(private: &TokenStream, name: &str) -> String {
    format!("{private}::{name}").replace(' ', "")
}

/// The tokens, as if they had been written where the type of a parameter is: complaints about it belong there.
fn at_type(param: &Param, tokens: TokenStream) -> TokenStream {
    at(param.typed.ty.span(), tokens)
}

/// The tokens, as if they had been written there. What they resolve to stays the same.
fn at(span: Span, tokens: TokenStream) -> TokenStream {
    let moved = tokens.into_iter().map(|token| match token {
        proc_macro2::TokenTree::Group(group) => {
            let mut moved = proc_macro2::Group::new(group.delimiter(), at(span, group.stream()));
            moved.set_span(span);
            moved.into()
        }
        mut other => {
            other.set_span(other.span().located_at(span));
            other
        }
    });
    moved.collect()
}

fn output_span(annotated: &Annotated) -> Span {
    match &annotated.function.sig.output {
        ReturnType::Default => annotated.function.sig.ident.span(),
        ReturnType::Type(_, ty) => ty.span(),
    }
}
