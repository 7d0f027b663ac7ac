//! A line of a file that cannot be understood, without the values that look like secrets.
//!
//! The file has no structure that could be relied on, so it goes by what is beside each other: a text after a name that
//! says secret. Every character that is hidden stays as wide as it is, so that a mark below the line stays right.

use super::names::{is_secret, is_token};

/// The line, with secrets as asterisks.
pub(crate) fn excerpt(line: &str) -> String {
    let mut shown = String::new();
    let mut name = String::new();
    for piece in pieces(line) {
        match piece {
            Piece::Word(word) => {
                let secret =
                    is_secret(&name) || is_token(word) || word.contains("://") && word.contains(['@', '?']);
                shown.extend(word.chars().map(|c| if secret { '*' } else { c }));
                // What was hidden names nothing.
                name = if secret { String::new() } else { word.to_owned() };
            }
            Piece::Between(text) => shown.push_str(text),
        }
    }
    shown
}

enum Piece<'a> {
    /// What is in quotes, or is a word without them.
    Word(&'a str),
    Between(&'a str),
}

fn pieces(line: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let between = rest.find(|c| !is_between(c) || is_quote(c)).unwrap_or(rest.len());
        rest = take(&mut pieces, Piece::Between, rest, between);
        match rest.chars().next().filter(|c| is_quote(*c)) {
            Some(quote) => {
                rest = take(&mut pieces, Piece::Between, rest, 1);
                rest = take(&mut pieces, Piece::Word, rest, quoted(rest, quote));
                let closed = usize::from(rest.starts_with(quote));
                rest = take(&mut pieces, Piece::Between, rest, closed);
            }
            None => rest = take(&mut pieces, Piece::Word, rest, rest.find(is_between).unwrap_or(rest.len())),
        }
    }
    pieces
}

/// Takes a piece off, unless it is empty, and gives what follows.
fn take<'a>(
    pieces: &mut Vec<Piece<'a>>,
    kind: fn(&'a str) -> Piece<'a>,
    rest: &'a str,
    length: usize,
) -> &'a str {
    let (piece, rest) = rest.split_at(length);
    if !piece.is_empty() {
        pieces.push(kind(piece));
    }
    rest
}

/// How long a text is until the quote that ends it, or to the end of the line where that is missing.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if c == quote && !escaped {
            return at;
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

const fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'')
}

fn is_between(c: char) -> bool {
    c.is_whitespace() || is_quote(c) || matches!(c, ',' | ':' | '=' | '{' | '}' | '[' | ']')
}
