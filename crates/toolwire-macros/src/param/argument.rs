//! One argument that the caller gives, and the `#[arg(…)]` on it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{
    Attribute, Error, Expr, ExprLit, Lit, LitStr, Meta, PatType, Result, Token, Type, ext::IdentExt,
    parse::ParseStream, parse_quote,
};

use super::plain_name;
use crate::{
    docs,
    kind::Kind,
    options::{end_of_option, once, read_description, read_name, read_word},
};

const OPTIONS: [&str; 3] = ["rename", "default", "description"];

/// An argument that the caller gives, or may give.
pub(crate) struct Argument {
    pub(crate) ident: Ident,
    /// What it is called on the wire.
    pub(crate) name: String,
    default: Option<DefaultValue>,
    rename: Option<LitStr>,
    ty: Type,
    /// Doc comments, and what is meant for serde and schemars.
    attributes: Vec<Attribute>,
}

/// What an argument is when the caller gives none.
enum DefaultValue {
    /// The type's own default.
    OfType,
    /// This expression.
    Is(Expr),
}

#[derive(Default)]
struct ArgOptions {
    rename: Option<LitStr>,
    default: Option<DefaultValue>,
    description: Option<Expr>,
}

impl Argument {
    /// Reads a parameter, and the attributes on it that are ours.
    pub(super) fn read(kind: Kind, typed: &PatType, mut ours: Vec<Attribute>) -> Result<Self> {
        let ident = plain_name(kind.noun(), &typed.pat)?;
        let mut options = ArgOptions::default();
        let mut seen = Vec::new();
        for attribute in ours.extract_if(.., |attribute| attribute.path().is_ident("arg")) {
            options.read(&attribute, &mut seen)?;
        }
        if let Some(text) = options.description {
            ours.retain(|attribute| !docs::is_doc_comment(attribute));
            ours.push(parse_quote!(#[doc = #text]));
        }
        let name = options.rename.as_ref().map_or_else(|| ident.unraw().to_string(), LitStr::value);
        let (rename, default) = (options.rename, options.default);
        Ok(Self { ident, name, default, rename, ty: (*typed.ty).clone(), attributes: ours })
    }

    /// Where the name on the wire was written.
    pub(super) fn name_span(&self) -> Span {
        self.rename.as_ref().map_or_else(|| self.ident.span(), LitStr::span)
    }

    /// What it is, for the model.
    pub(crate) fn description(&self) -> Result<Option<Expr>> {
        docs::description(&self.attributes)
    }

    /// The value when the caller gives none.
    pub(crate) fn default_value(&self) -> Option<TokenStream> {
        let ty = &self.ty;
        Some(match self.default.as_ref()? {
            DefaultValue::OfType => quote!(<#ty as ::core::default::Default>::default()),
            // A text is so often meant for a `String` that nobody should have to say so.
            DefaultValue::Is(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) => {
                quote!(<#ty as ::core::convert::From<_>>::from(#text))
            }
            DefaultValue::Is(value) => quote!(#value),
        })
    }

    /// Whether it brings attributes that only a field of a struct can have.
    pub(crate) fn needs_field(&self) -> bool {
        self.attributes.iter().any(is_for_field)
    }

    /// The other names that `#[serde(alias = "…")]` gives it.
    pub(crate) fn aliases(&self) -> Vec<LitStr> {
        let mut aliases = Vec::new();
        for attribute in self.attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
            // What is wrong with the attribute, serde says itself.
            let _ = attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("alias") {
                    aliases.push(meta.value()?.parse()?);
                } else if meta.input.peek(Token![=]) {
                    meta.value()?.parse::<Expr>()?;
                } else if meta.input.peek(syn::token::Paren) {
                    let inner;
                    syn::parenthesized!(inner in meta.input);
                    inner.parse::<TokenStream>()?;
                }
                Ok(())
            });
        }
        aliases
    }

    /// The only field of the struct that carries its attributes.
    pub(crate) fn field(&self) -> TokenStream {
        let Self { ident, ty, attributes, .. } = self;
        let rename = self.rename.as_ref().map(|name| quote!(#[serde(rename = #name)]));
        let default = self.default.as_ref().map(|default| match default {
            DefaultValue::OfType => quote!(#[serde(default)]),
            DefaultValue::Is(_) => {
                let path = self.default_function().to_string();
                quote!(#[serde(default = #path)])
            }
        });
        quote!(#(#attributes)* #rename #default #ident: #ty)
    }

    /// The function that makes the default value of the field, if an expression was given.
    pub(crate) fn default_item(&self) -> Option<TokenStream> {
        let Some(DefaultValue::Is(_)) = &self.default else { return None };
        let (name, ty, value) = (self.default_function(), &self.ty, self.default_value());
        Some(quote!(fn #name() -> #ty { #value }))
    }

    fn default_function(&self) -> Ident {
        format_ident!("__default_{}", self.ident.unraw())
    }
}

fn is_for_field(attribute: &Attribute) -> bool {
    attribute.path().is_ident("serde") || attribute.path().is_ident("schemars")
}

impl ArgOptions {
    fn read(&mut self, attribute: &Attribute, seen: &mut Vec<Ident>) -> Result<()> {
        match &attribute.meta {
            // Only says that this is an argument.
            Meta::Path(_) => Ok(()),
            Meta::List(list) => list.parse_args_with(|input: ParseStream<'_>| {
                while !input.is_empty() {
                    let option = read_word(input, "arg", &OPTIONS)?;
                    once(seen, &option)?;
                    self.read_one(&option, input)?;
                    end_of_option(input)?;
                }
                Ok(())
            }),
            Meta::NameValue(_) => {
                Err(Error::new_spanned(attribute, "options stand in parentheses: `#[arg(default = 3)]`"))
            }
        }
    }

    fn read_one(&mut self, option: &Ident, input: ParseStream<'_>) -> Result<()> {
        if option == "rename" {
            self.rename = Some(read_name(option, input)?);
        } else if option == "description" {
            self.description = Some(read_description(option, input)?);
        } else if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            self.default = Some(DefaultValue::Is(input.parse()?));
        } else {
            self.default = Some(DefaultValue::OfType);
        }
        Ok(())
    }
}
