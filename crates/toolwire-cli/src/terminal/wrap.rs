//! Long text in lines that fit.

use unicode_width::UnicodeWidthChar;

use super::width;

/// The words of a text in lines of at most this many columns; a word that is longer has a line of its own.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A text in lines of at most this many columns that together are exactly the text, with every space in it. A line
/// ends behind a space where there is one.
pub(crate) fn folded(text: &str, columns: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(end) = overflow(rest, columns) {
        let end = rest.get(..end).and_then(|line| line.rfind(' ')).map_or(end, |space| space + 1);
        let (line, behind) = rest.split_at(end);
        lines.push(line);
        rest = behind;
    }
    lines.push(rest);
    lines
}

/// Where a text is wider than so many columns, if it is; not before its second character.
fn overflow(text: &str, columns: usize) -> Option<usize> {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns && at > 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_loses_nothing() {
        assert_eq!(folded("ab cd  efghijk", 5), ["ab ", "cd  ", "efghi", "jk"]);
        assert_eq!(folded("日本", 1), ["日", "本"]);
        assert_eq!(folded("", 5), [""]);
        for text in ["a  b   c    d     e", "    ", "日本語日本語 x", "e\u{301}e\u{301}e"] {
            for columns in 0..8 {
                assert_eq!(folded(text, columns).concat(), text);
            }
        }
    }

    #[test]
    fn lines_fit_unless_a_word_does_not() {
        assert_eq!(wrapped("a bc  def\ng", 5), ["a bc", "def g"]);
        assert_eq!(wrapped("toolong x", 3), ["toolong", "x"]);
        assert!(wrapped(" ", 3).is_empty());
    }
}
