//! Text that somebody else has written, made safe to print.

use std::fmt::Write;

/// A server's text without what could control the terminal. Line feeds and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    let shown = |c: char| (!c.is_control() || matches!(c, '\n' | '\t')) && !turns_around(c);
    text.chars().map(|c| if shown(c) { c } else { '\u{fffd}' }).collect()
}

/// The same for names, commands, paths and the like, which have one line whatever is in them: what could begin
/// another, or is not seen, is written as an escape.
pub(crate) fn printable_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // These join letters and pictures, and prose needs them.
            '\u{200c}' | '\u{200d}' => line.push(c),
            c if is_unseen(c) => escape(&mut line, c),
            c => line.push(c),
        }
    }
    line
}

/// Adds a character as an escape, which a shell understands between `$'` and `'`.
pub(crate) fn escape(line: &mut String, c: char) {
    let code = u32::from(c);
    // Writing to a string cannot fail.
    let _ = match c {
        '\n' => line.write_str("\\n"),
        '\r' => line.write_str("\\r"),
        '\t' => line.write_str("\\t"),
        _ if code < 0x80 => write!(line, "\\x{code:02x}"),
        _ if code < 0x1_0000 => write!(line, "\\u{code:04x}"),
        _ => write!(line, "\\U{code:08x}"),
    };
}

/// Whether a character controls the terminal, begins a line, takes no room on a screen, or turns around what follows.
pub(crate) const fn is_unseen(c: char) -> bool {
    c.is_ascii_control()
        || turns_around(c)
        || matches!(c,
            '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character changes the direction of the text behind it, which can make it look like another.
pub(super) const fn turns_around(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_cannot_control_the_terminal() {
        assert_eq!(printable("a\tb\n\u{1b}[31mred\u{9b}\u{7}"), "a\tb\n\u{fffd}[31mred\u{fffd}\u{fffd}");
        assert_eq!(printable("nur\u{202e}gpj.exe"), "nur\u{fffd}gpj.exe");
    }

    #[test]
    fn one_line_stays_one_and_shows_what_was_hidden_in_it() {
        let line = printable_line("a\tb\r\nc\u{1b}[2J\u{2028}\u{202e}\u{200b}\u{e0041}é👩\u{200d}💻");
        assert_eq!(line, "a\\tb\\r\\nc\\x1b[2J\\u2028\\u202e\\u200b\\U000e0041é👩\u{200d}💻");
        assert_eq!(printable_line("C:\\new  two"), "C:\\new  two");
    }
}
