//! Words on a screen: how wide it is, and how a text fits.

use std::io::IsTerminal;

use crate::terminal::{self, width};

/// How wide text for people is where nothing says otherwise, and at most.
const TEXT_COLUMNS: usize = 80;
/// The narrowest screen that is taken for one.
const LEAST_COLUMNS: usize = 20;
/// How wide tables may be when nobody looks at them on a screen.
const PIPED_COLUMNS: usize = 120;

/// How wide a table may be.
pub(crate) fn columns() -> usize {
    if !std::io::stdout().is_terminal() {
        return PIPED_COLUMNS;
    }
    crossterm::terminal::size().map_or(TEXT_COLUMNS, |(columns, _)| usize::from(columns).max(LEAST_COLUMNS))
}

/// How wide text may be that has a margin of this many columns: no screen is too wide for it, but some are narrow.
pub(crate) fn room(margin: usize) -> usize {
    columns().min(TEXT_COLUMNS).saturating_sub(margin).max(LEAST_COLUMNS)
}

/// The text with its lines broken between words, and every line indented.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let room = room(indent);
    let mut lines = Vec::new();
    for paragraph in text.trim_end().lines() {
        // What is indented is meant to be, as code in a description is.
        if paragraph.starts_with([' ', '\t']) || width(paragraph) <= room {
            lines.push(paragraph.trim_end().to_owned());
            continue;
        }
        lines.extend(terminal::wrapped(paragraph, room));
    }
    indented(&lines.join("\n"), indent)
}

/// The text with every line indented.
pub(crate) fn indented(text: &str, indent: usize) -> String {
    let indent = " ".repeat(indent);
    let lines =
        text.lines().map(|line| if line.is_empty() { String::new() } else { format!("{indent}{line}") });
    lines.collect::<Vec<_>>().join("\n")
}

/// A number of bytes, as people say it.
pub(crate) fn size(bytes: usize) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    // One digit behind the point, in whole numbers so that nothing is rounded up to the next unit.
    let mut tenths = bytes / 100;
    let mut units = UNITS.iter().copied();
    let mut unit = units.next().unwrap_or_default();
    for next in units {
        if tenths < 10_000 {
            break;
        }
        tenths /= 1000;
        unit = next;
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_code_stays() {
        let text = format!("{}end\n    code that is kept as it is\n\nlast", "word ".repeat(20));
        let shown = wrapped(&text, 4);
        assert!(shown.lines().all(|line| width(line) <= TEXT_COLUMNS), "{shown}");
        assert!(shown.contains("\n        code that is kept as it is\n\n    last"), "{shown}");
    }

    #[test]
    fn sizes_are_short() {
        for (bytes, expected) in
            [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_999, "999.9 kB"), (12_345_678, "12.3 MB")]
        {
            assert_eq!(size(bytes), expected);
        }
    }
}
