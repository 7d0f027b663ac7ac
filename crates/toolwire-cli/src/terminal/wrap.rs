//! Long text in lines that fit.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_unless_a_word_does_not() {
        assert_eq!(wrapped("a bc  def\ng", 5), ["a bc", "def g"]);
        assert_eq!(wrapped("toolong x", 3), ["toolong", "x"]);
        assert!(wrapped(" ", 3).is_empty());
    }
}
