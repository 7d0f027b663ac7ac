//! From a doc comment to a description.

use proc_macro2::Span;
use syn::{Attribute, Expr, ExprLit, Lit, LitStr, Meta, Result, parse_quote};

/// Whether this is a doc comment, and not `#[doc(hidden)]` or the like.
pub(crate) fn is_doc_comment(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc") && matches!(attribute.meta, Meta::NameValue(_))
}

/// The text of the doc comments among the attributes, as an expression.
///
/// Lines stay lines, so that lists and paragraphs keep their shape. Text that comes from a macro, such as
/// `#[doc = include_str!("…")]`, is put together when the user's crate is compiled.
pub(crate) fn description(attributes: &[Attribute]) -> Result<Option<Expr>> {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| is_doc_comment(attribute)) {
        lines.push(&attribute.meta.require_name_value()?.value);
    }
    let texts: Option<Vec<String>> = lines.iter().map(|line| text(line)).collect();
    let Some(texts) = texts else {
        let parts =
            lines.iter().map(|line| text(line).map_or_else(|| (*line).clone(), |text| literal(&text)));
        return Ok(Some(parse_quote!(::core::concat!(#(#parts, "\n"),*).trim())));
    };
    let text = texts.join("\n");
    let text = text.trim();
    Ok((!text.is_empty()).then(|| literal(text)))
}

/// One line, or the lines of a block comment, without the space that sets it off from the slashes.
fn text(line: &Expr) -> Option<String> {
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = line else {
        return None;
    };
    let text = text.value();
    let text = text.strip_prefix(' ').unwrap_or(&text);
    Some(text.trim_end().to_owned())
}

fn literal(text: &str) -> Expr {
    let text = LitStr::new(text, Span::call_site());
    parse_quote!(#text)
}
