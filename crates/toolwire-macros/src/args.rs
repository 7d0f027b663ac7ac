//! `#[args]`: what a type of arguments derives, through the facade.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Error, Item, Path, Result,
    parse::{ParseStream, Parser},
    parse2,
};

use crate::options::{default_crate, end_of_option, once, read_path, read_word};

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    expansion(options, item).unwrap_or_else(Error::into_compile_error)
}

fn expansion(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let krate = read_options.parse2(options)?;
    match parse2::<Item>(item)? {
        item @ (Item::Struct(_) | Item::Enum(_)) => {
            let private = quote!(#krate::__private);
            let path = |name: &str| format!("{private}::{name}").replace(' ', "");
            let (serde, schemars) = (path("serde"), path("schemars"));
            Ok(quote! {
                #[derive(
                    #private::serde::Deserialize,
                    #private::serde::Serialize,
                    #private::schemars::JsonSchema,
                )]
                #[serde(crate = #serde)]
                #[schemars(crate = #schemars)]
                #item
            })
        }
        other => {
            let message = "`#[args]` goes on a struct or an enum";
            Err(Error::new_spanned(other.into_token_stream().into_iter().next(), message))
        }
    }
}

fn read_options(input: ParseStream<'_>) -> Result<Path> {
    let mut krate = default_crate();
    let mut seen = Vec::new();
    while !input.is_empty() {
        let option = read_word(input, "args", &["crate"])?;
        once(&mut seen, &option)?;
        krate = read_path(&option, input)?;
        end_of_option(input)?;
    }
    Ok(krate)
}
